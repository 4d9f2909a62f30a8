/**
 * Contract for stream stores: how ownership of a data stream ends, and when its end counts as a failure. Registered by
 * `StreamStoreSuite`.
 */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, failed, only, short } from "./bench.ts"

export const ending = ({ bench, it }: Cases): void => {
  it.effect("finishing a finished stream again returns AlreadyDone", () =>
    Effect.gen(function*() {
      const { party, pending, service } = yield* bench("done")
      const a = party()
      const ownership = yield* a.own("one")
      assert.strictEqual(yield* service.done(ownership), "Done")
      assert.strictEqual(yield* service.done(ownership), "AlreadyDone")
      assert.deepStrictEqual(yield* pending(), [])
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("G18: all requests from a previous owner are refused", () =>
    Effect.gen(function*() {
      const { lapse, party, pending, renew, service } = yield* bench("stale")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* lapse(ownership)
      const nobodys = [
        yield* service.done(ownership),
        yield* service.release(ownership),
        yield* service.fail(ownership),
        yield* service.deadLetter(ownership, "stale")
      ]
      assert.deepStrictEqual(nobodys, ["NotOwner", "NotOwner", "NotOwner", "NotOwner"])
      const other = yield* b.take(ownership.stream, ownership.entry)
      const stale = [
        yield* service.done(ownership),
        yield* service.release(ownership),
        yield* service.fail(ownership),
        yield* service.deadLetter(ownership, "stale"),
        yield* service.handOver(ownership, a, short)
      ]
      assert.deepStrictEqual(stale, ["NotOwner", "NotOwner", "NotOwner", "NotOwner", "NotOwner"])
      assert.strictEqual(only(yield* pending()).consumer, b.consumer)
      assert.strictEqual((yield* renew(other))._tag, "Renewed")
      assert.strictEqual((yield* service.inspect).deadLetters, 0)
      assert.strictEqual(yield* service.done(other), "Done")
      assert.strictEqual(yield* service.done(ownership), "AlreadyDone")
    }))

  it.effect("G20: a yielded stream stays unfinished and can be claimed immediately", () =>
    Effect.gen(function*() {
      const { next, party, pending, service } = yield* bench("release")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      const hints = yield* service.signals
      assert.strictEqual(yield* service.release(ownership), "Released")
      const { entry, stream } = ownership
      assert.deepStrictEqual(yield* next(hints), { _tag: "Released", stream, entry })
      // Other consumers find the entry by its idle time
      const minIdle = Duration.seconds(30)
      assert.strictEqual(only(yield* pending({ minIdle })).content.entry, entry)
      const other = yield* b.take(stream, entry, { minIdle })
      assert.isAbove(other.token, ownership.token)
      assert.strictEqual(other.failures, 0)
      assert.strictEqual(yield* service.release(ownership), "NotOwner")
    }))

  it.effect("B52: a commit resets the failure count, and too many failures cause a dead letter", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("failures")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      const last = (n: number) => `${n}-0` as typeof ownership.entry
      assert.strictEqual(yield* failed(service, ownership), 1)
      assert.strictEqual(yield* failed(service, ownership, { attempt: 2 }), 2)
      // Repeats a request whose reply was lost
      assert.strictEqual(yield* failed(service, ownership, { attempt: 2 }), 2)
      // A late duplicate of an earlier request
      assert.strictEqual(yield* failed(service, ownership, { attempt: 1 }), 2)
      assert.strictEqual(yield* service.commit(ownership, last(1)), "Committed")
      assert.strictEqual(yield* failed(service, ownership), 1)
      assert.strictEqual(yield* service.commit(ownership, last(1)), "Behind")
      assert.strictEqual(yield* failed(service, ownership), 2)
      yield* service.release(ownership)
      // One more failure would be too many
      const repeated = yield* b.take(ownership.stream, ownership.entry, { maxFailures: 3 })
      assert.strictEqual(repeated.failures, 2)
      yield* service.release(repeated)
      const refused = yield* a.refused(ownership.stream, ownership.entry, { maxFailures: 2 })
      assert.deepStrictEqual(refused, { _tag: "DeadLettered", failures: 2 })
      assert.strictEqual(only(yield* service.deadLetters(undefined, 10)).entry, ownership.entry)
      assert.strictEqual((yield* a.refused(ownership.stream, ownership.entry))._tag, "Gone")
    }))

  it.effect("an expired lease counts as a failure, a yielded lease does not", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("counting", short)
      const [a, b] = [party(), party()]
      let ownership = yield* a.own("one")
      for (let i = 0; i < 3; i++) {
        yield* service.release(ownership)
        ownership = yield* b.take(ownership.stream, ownership.entry)
        assert.strictEqual(ownership.failures, 0)
      }
      for (let i = 1; i <= 2; i++) {
        yield* pass(short)
        ownership = yield* b.take(ownership.stream, ownership.entry)
        assert.strictEqual(ownership.failures, i)
      }
      yield* pass(short)
      const refused = yield* a.refused(ownership.stream, ownership.entry, { maxFailures: 3 })
      assert.deepStrictEqual(refused, { _tag: "DeadLettered", failures: 3 })
    }))

  it.effect("an expired lease does not count as a failure if its handler was idle", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("idle", short)
      const b = party()
      let ownership = yield* b.own("one")
      for (const [reports, failures] of [[[false], 0], [[false, undefined], 0], [[false, true], 1], [[], 2]] as const) {
        for (const isBusy of reports) yield* service.renew([{ ...ownership, isBusy }], short)
        yield* pass(short)
        ownership = yield* b.take(ownership.stream, ownership.entry)
        assert.strictEqual(ownership.failures, failures)
      }
    }))

  it.effect("a streak of failures ends on progress, or after some time without a failure", () =>
    Effect.gen(function*() {
      const { lease, party, pass, service } = yield* bench("rows")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      const streakEndsAfter = Duration.seconds(3)
      const fail = (hasProgressed?: boolean) => failed(service, ownership, { streakEndsAfter, hasProgressed })
      assert.deepStrictEqual([yield* fail(), yield* fail(), yield* fail(true)], [1, 2, 1])
      yield* service.renew([{ ...ownership, hasProgressed: true }], lease)
      assert.deepStrictEqual([yield* fail(), yield* fail()], [1, 2])
      yield* service.release(ownership)
      // There are enough failures, but all within too short a time
      const repeated = yield* b.take(ownership.stream, ownership.entry, {
        maxFailures: 2,
        deadLetterAfter: Duration.hours(1)
      })
      assert.strictEqual(repeated.failures, 2)
      yield* pass(streakEndsAfter)
      assert.strictEqual(yield* failed(service, repeated, { streakEndsAfter }), 1)
      // The streak ends some time after the last failure, not the first
      const half = Duration.divideUnsafe(streakEndsAfter, 2)
      yield* pass(half)
      assert.strictEqual(yield* failed(service, repeated, { streakEndsAfter }), 2)
      assert.strictEqual(yield* failed(service, repeated, { streakEndsAfter: half }), 3)
    }))

  it.effect("a dead letter keeps its fields and reason, and can be redriven", () =>
    Effect.gen(function*() {
      const { announce, party, renew, service, stream } = yield* bench("letters")
      const a = party()
      const entry = yield* announce("one", { kind: "poison" })
      yield* a.read()
      const ownership = yield* a.take(stream("one"), entry)
      yield* service.fail(ownership)
      assert.strictEqual(yield* service.deadLetter(ownership, "it does not work"), "DeadLettered")
      assert.strictEqual((yield* renew(ownership))._tag, "Lost")
      const letter = only(yield* service.deadLetters(undefined, 10))
      assert.strictEqual(letter.entry, entry)
      assert.strictEqual(letter.stream, stream("one"))
      assert.strictEqual(letter.reason, "it does not work")
      assert.strictEqual(letter.fields.length, 1)
      assert.deepStrictEqual(yield* service.deadLetters(letter.id, 10), [])
      assert.strictEqual((yield* service.inspect).deadLetters, 1)
      assert.isTrue(yield* service.redrive(letter.id))
      assert.isFalse(yield* service.redrive(letter.id))
      const repeated = only(yield* a.read())
      assert.deepInclude(repeated, { _tag: "Announced", stream: stream("one"), info: { kind: "poison" } })
      assert.strictEqual((yield* a.take(stream("one"), repeated.entry)).failures, 0)
    }))

  it.effect("redriving a dead letter does not announce a data stream that was announced in the meantime", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("redriven")
      const a = party()
      yield* service.deadLetter(yield* a.own("one"), "it does not work")
      const [letter] = yield* service.deadLetters(undefined, 10)
      const entry = yield* announce("one")
      for (const isRead of [false, true]) {
        if (isRead) assert.strictEqual(only(yield* a.read()).entry, entry)
        assert.strictEqual(yield* service.redrive(letter!.id), !isRead)
        assert.strictEqual((yield* service.inspect).announced, 1)
      }
      assert.strictEqual((yield* service.inspect).deadLetters, 0)
      yield* service.done(yield* a.take(stream("one"), entry))
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))
}
