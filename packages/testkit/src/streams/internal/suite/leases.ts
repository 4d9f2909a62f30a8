/** Contract for stream stores: who may take a data stream, and who is refused. Registered by `StreamStoreSuite`. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, only, short } from "./bench.ts"

export const taking = ({ bench, it }: Cases): void => {
  it.effect("while one consumer owns a data stream, others receive the owner and the remaining time", () =>
    Effect.gen(function*() {
      const { lease, party } = yield* bench("take")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      assert.strictEqual(ownership.failures, 0)
      assert.isAbove(ownership.token, 0)
      const refused = yield* b.refused(ownership.stream, ownership.entry)
      assert.strictEqual(refused._tag, "Occupied")
      if (refused._tag !== "Occupied") return
      assert.strictEqual(refused.owner, a.consumer)
      assert.isAtMost(Duration.toMillis(refused.timeLeft), Duration.toMillis(lease))
      assert.isAbove(Duration.toMillis(refused.timeLeft), 0)
    }))

  it.effect("G9: another session with the same name cannot take an owned data stream", () =>
    Effect.gen(function*() {
      const { party, renew } = yield* bench("same name")
      const [first, second] = [party("twin"), party("twin")]
      const ownership = yield* first.own("one")
      assert.strictEqual((yield* second.refused(ownership.stream, ownership.entry))._tag, "Occupied")
      assert.strictEqual((yield* first.refused(ownership.stream, ownership.entry))._tag, "Occupied")
      assert.strictEqual((yield* renew(ownership))._tag, "Renewed")
    }))

  it.effect("a repeated request with the same epoch returns the same result and renews the lease", () =>
    Effect.gen(function*() {
      const lease = Duration.seconds(6)
      const { party, pass, renew } = yield* bench("repeated", lease)
      const a = party()
      const ownership = yield* a.own("one")
      yield* pass(Duration.times(lease, 0.6))
      const repeated = yield* a.take(ownership.stream, ownership.entry, { epoch: ownership.epoch })
      assert.deepStrictEqual(repeated, ownership)
      yield* pass(Duration.times(lease, 0.6))
      assert.strictEqual((yield* renew(ownership))._tag, "Renewed")
    }))

  it.effect("a recently delivered entry is not taken", () =>
    Effect.gen(function*() {
      const { announce, party, pass, stream } = yield* bench("recent")
      const [a, b] = [party(), party()]
      const entry = yield* announce("one")
      yield* a.read()
      const minIdle = Duration.seconds(3)
      assert.strictEqual((yield* b.refused(stream("one"), entry, { minIdle }))._tag, "NotIdle")
      yield* pass(minIdle)
      yield* b.take(stream("one"), entry, { minIdle })
    }))

  it.effect("an undelivered entry is not taken, because the group will deliver it", () =>
    Effect.gen(function*() {
      const { announce, party, stream } = yield* bench("undelivered")
      const entry = yield* announce("one")
      assert.strictEqual((yield* party().refused(stream("one"), entry))._tag, "Undelivered")
    }))

  it.effect("a late request is refused once its session has yielded the data stream", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("late")
      const [a, b] = [party(), party()]
      const entry = yield* announce("one")
      yield* a.read()
      const early = a.epoch()
      const ownership = yield* a.take(stream("one"), entry)
      assert.strictEqual(yield* service.release(ownership), "Released")
      for (const epoch of [ownership.epoch, early]) {
        assert.strictEqual((yield* a.refused(stream("one"), entry, { epoch }))._tag, "NotIdle")
      }
      const next = yield* b.take(stream("one"), entry)
      assert.strictEqual(next.failures, 0)
      assert.strictEqual(yield* service.release(next), "Released")
      yield* a.take(stream("one"), entry)
    }))

  it.effect("a late request is refused even after another consumer has owned and yielded the data stream", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("late for others")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* service.release(ownership)
      yield* service.release(yield* b.take(ownership.stream, ownership.entry))
      const late = yield* a.refused(ownership.stream, ownership.entry, { epoch: ownership.epoch })
      assert.deepStrictEqual(late, { _tag: "NotIdle" })
      assert.strictEqual((yield* b.take(ownership.stream, ownership.entry)).failures, 0)
    }))

  it.effect("a late request is refused even after a hand-over", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("late hand-over", short)
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      assert.strictEqual(yield* service.handOver(ownership, b, short), "HandedOver")
      const { info: _, ...handedOver } = only(yield* service.handedOver(b.consumer, b.session))
      assert.strictEqual(yield* service.release(handedOver), "Released")
      assert.strictEqual(
        (yield* b.refused(ownership.stream, ownership.entry, { epoch: handedOver.epoch }))._tag,
        "NotIdle"
      )
      assert.strictEqual((yield* b.take(ownership.stream, ownership.entry)).failures, 0)
      yield* pass(short)
      assert.strictEqual((yield* a.take(ownership.stream, ownership.entry)).failures, 1)
    }))

  it.effect("an entry that is finished or never existed is gone", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("gone")
      const a = party()
      const ownership = yield* a.own("one")
      yield* service.done(ownership)
      assert.strictEqual((yield* a.refused(ownership.stream, ownership.entry))._tag, "Gone")
      assert.strictEqual((yield* a.refused(stream("two"), EntryId.make("1-1")))._tag, "Gone")
    }))

  it.effect("taking an expired lease returns a larger token and counts a failure", () =>
    Effect.gen(function*() {
      const { party, pass } = yield* bench("run out", short)
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* pass(short)
      const next = yield* b.take(ownership.stream, ownership.entry, { minIdle: short })
      assert.isAbove(next.token, ownership.token)
      assert.strictEqual(next.failures, 1)
    }))

  it.effect("exactly one of many concurrent requests takes the data stream", () =>
    Effect.gen(function*() {
      const { announce, party, stream } = yield* bench("race")
      const entry = yield* announce("one")
      yield* party().read()
      const results = yield* Effect.forEach(
        Array.from({ length: 10 }, () => party()),
        (party) => party.ask(stream("one"), entry),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.map(({ result }) => result._tag).sort(), [
        ...Array.from({ length: 9 }, () => "Occupied"),
        "Taken"
      ])
    }))

  it.effect("one call can take many data streams, with results in order", () =>
    Effect.gen(function*() {
      const { lease, party, service, stream } = yield* bench("batch")
      const [a, b] = [party(), party()]
      const streams = Array.from({ length: 450 }, (_, i) => stream(String(i)))
      const entries = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      yield* a.read(1000)
      yield* b.take(streams[7]!, entries[7]!.entry)
      const requests = streams.map((stream, i) => ({
        stream,
        entry: entries[i]!.entry,
        consumer: a.consumer,
        epoch: a.epoch(),
        lease,
        minIdle: Duration.zero,
        maxFailures: 10
      }))
      const results = yield* service.take(requests)
      assert.deepStrictEqual(
        results.map(({ _tag }) => _tag),
        streams.map((_, i) => i === 7 ? "Occupied" : "Taken")
      )
      const ownership = requests.flatMap((request, i) => {
        const result = results[i]!
        return result._tag === "Taken" ? [{ ...request, token: result.token }] : []
      })
      const renewed = yield* service.renew(ownership, lease)
      assert.strictEqual(renewed.length, ownership.length)
      assert.isTrue(renewed.every(({ _tag }) => _tag === "Renewed"))
    }))

  it.effect("an empty request returns nothing", () =>
    Effect.gen(function*() {
      const { lease, service } = yield* bench("nothing")
      assert.deepStrictEqual(yield* service.take([]), [])
      assert.deepStrictEqual(yield* service.renew([], lease), [])
    }))
}
