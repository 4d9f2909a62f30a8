/**
 * Contract for stream stores: how checkpoints move, and how messages are dead-lettered. Registered by
 * `StreamStoreSuite`.
 */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Cases, committed, only } from "./bench.ts"

const id = (text: string) => EntryId.make(text)

export const committing = ({ append, bench, it }: Cases): void => {
  it.effect("the checkpoint only moves forward in the order of ids", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("checkpoint")
      const ownership = yield* party().own("one")
      const checkpoint = committed(service, ownership.stream)
      assert.isTrue(Option.isNone(yield* checkpoint))
      const steps = [
        ["9-1", "Committed", "9-1"],
        ["9-1", "Behind", "9-1"],
        ["8-99", "Behind", "9-1"],
        ["9-10", "Committed", "9-10"],
        ["9-9", "Behind", "9-10"],
        ["10-0", "Committed", "10-0"],
        ["1750000000000-18446744073709551614", "Committed", "1750000000000-18446744073709551614"],
        ["1750000000000-18446744073709551613", "Behind", "1750000000000-18446744073709551614"],
        ["1750000000000-18446744073709551615", "Committed", "1750000000000-18446744073709551615"]
      ] as const
      for (const [to, reply, after] of steps) {
        assert.strictEqual(yield* service.commit(ownership, id(to)), reply, to)
        assert.deepStrictEqual(yield* checkpoint, Option.some(id(after)))
      }
    }))

  it.effect("a commit cannot pass an existing data stream's last message", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { party, service } = yield* bench("beyond")
      const ownership = yield* party().own("one")
      const checkpoint = committed(service, ownership.stream)
      yield* append(ownership.stream, [["n", "1"]])
      yield* append(ownership.stream, [["n", "2"]])
      const [first, last] = yield* service.messages(ownership.stream, id("0-0"), 10)
      const [millis, sequence] = last!.id.split("-")
      assert.strictEqual(yield* service.commit(ownership, first!.id), "Committed")
      for (const beyond of [`${millis}-${Number(sequence) + 1}`, `${Number(millis) + 1}-0`, "18446744073709551615-0"]) {
        assert.strictEqual(yield* service.commit(ownership, id(beyond), true), "Beyond")
      }
      assert.strictEqual(yield* service.end(ownership), "Open")
      assert.deepStrictEqual(yield* checkpoint, Option.some(first!.id))
      assert.strictEqual(yield* service.commit(ownership, last!.id), "Committed")
    }))

  it.effect("B55: a replaced owner cannot commit, and the next owner continues at the checkpoint", () =>
    Effect.gen(function*() {
      const { lapse, party, service } = yield* bench("replaced")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      yield* service.commit(ownership, id("5-0"))
      yield* lapse(ownership)
      assert.strictEqual(yield* service.commit(ownership, id("6-0")), "NotOwner")
      const other = yield* b.take(ownership.stream, ownership.entry)
      assert.strictEqual(yield* service.commit(ownership, id("6-0")), "NotOwner")
      const message = { id: id("6-0"), fields: [["n", "6"]] as const }
      assert.strictEqual(yield* service.deadLetterMessage(ownership, message, "stale"), "NotOwner")
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      assert.strictEqual(yield* service.commit(other, id("6-0")), "Committed")
    }))

  it.effect("a committed end is known to every owner of the announcement", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("end")
      const [a, b] = [party(), party()]
      const ownership = yield* a.own("one")
      // Once the data stream exists, only its own announcement's end counts
      yield* append?.(ownership.stream, [["n", "1"]]) ?? Effect.void
      assert.strictEqual(yield* service.end(ownership), "Open")
      assert.strictEqual(yield* service.commit(ownership, id("5-0")), "Committed")
      assert.strictEqual(yield* service.end(ownership), "Open")
      assert.strictEqual(yield* service.commit(ownership, id("5-0"), true), "Committed")
      assert.strictEqual(yield* service.commit(ownership, id("5-0"), true), "Behind")
      assert.strictEqual(yield* service.end(ownership), "Ended")
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      yield* service.release(ownership)
      const other = yield* b.take(ownership.stream, ownership.entry)
      assert.strictEqual(yield* service.end(other), "Ended")
      // After its dead letter is redriven, the data stream continues under the old announcement
      yield* service.deadLetter(other, "poison")
      yield* service.redrive(only(yield* service.deadLetters(undefined, 10)).id)
      const redriven = yield* b.take(ownership.stream, only(yield* b.read()).entry)
      assert.strictEqual(yield* service.end(redriven), "Ended")
      assert.strictEqual(yield* service.commit(redriven, id("6-0")), "Committed")
      assert.strictEqual(yield* service.end(redriven), "Open")
    }))

  it.effect("a finished stream stays ended for later announcements until it gets new messages", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("ended")
      const a = party()
      const ownership = yield* a.own("one")
      yield* service.commit(ownership, id("5-0"))
      yield* service.done(ownership)
      const repeated = yield* a.own("one")
      assert.strictEqual(yield* service.end(repeated), "Ended")
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      if (append === undefined) return
      yield* append(ownership.stream, [["n", "1"]])
      assert.strictEqual(yield* service.end(repeated), "Reopened")
      yield* service.commit(repeated, id("6-0"))
      assert.strictEqual(yield* service.end(repeated), "Open")
    }))

  it.effect("an owner's seek discards only its own announcement's end", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("seek")
      const a = party()
      const first = yield* a.own("one")
      yield* service.commit(first, id("5-0"), true)
      assert.strictEqual(
        yield* service.seek(first.stream, { id: id("3-0"), offset: 3 }, { owner: first, from: id("5-0") }),
        "Moved"
      )
      assert.strictEqual(yield* service.end(first), "Open")
      yield* service.done(first)
      const next = yield* a.own("one")
      assert.strictEqual(
        yield* service.seek(next.stream, { id: id("0-0"), offset: 0 }, { owner: next, from: id("3-0") }),
        "Moved"
      )
      // The data stream has no messages, so it is still ended
      assert.strictEqual(yield* service.end(next), "Ended")
      assert.deepStrictEqual(yield* service.checkpoint(next.stream), Option.some({ id: id("0-0"), offset: 0 }))
      assert.strictEqual(yield* service.seek(next.stream, { id: id("1-0"), offset: 1 }), "Owned")
      assert.strictEqual(
        yield* service.seek(next.stream, { id: id("1-0"), offset: 1 }, { owner: first }),
        "NotOwner"
      )
      assert.strictEqual(yield* service.seek(next.stream, { id: id("1-0"), offset: 1 }, { force: true }), "Moved")
      assert.strictEqual(yield* service.end(next), "Open")
      assert.strictEqual(yield* service.commit(next, id("6-0")), "NotOwner")
    }))

  it.effect("keepCheckpoints neither changes nor creates checkpoints", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("keep")
      const ownership = yield* party().own("one")
      yield* service.commit(ownership, id("5-0"))
      yield* service.keepCheckpoints([ownership.stream, stream("two")])
      yield* service.keepCheckpoints([])
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      assert.isTrue(Option.isNone(yield* committed(service, stream("two"))))
    }))

  it.effect("an invalid message id is not committed", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("no id")
      const ownership = yield* party().own("one")
      yield* service.commit(ownership, id("5-0"))
      for (const text of ["6", "", "six", "6-", "6-x", "18446744073709551616-0", "6-18446744073709551616"]) {
        const failure = yield* Effect.flip(service.commit(ownership, text as EntryId))
        assert.isFalse(failure._tag === "BackendError" && failure.isRetryable, text)
        yield* Effect.flip(service.deadLetterMessage(ownership, { id: text as EntryId, fields: [["n", "6"]] }, "no id"))
      }
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      assert.deepStrictEqual(yield* service.deadMessages(ownership.stream, undefined, 10), [])
    }))

  it.effect("each message is dead-lettered once, in any order, without moving the checkpoint", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("dead-letter message")
      const ownership = yield* party().own("one")
      const letter = (n: number) => ({ id: id(`${n}-0`), fields: [["n", String(n)], ["n", "again"]] as const })
      const dead = Effect.map(
        service.deadMessages(ownership.stream, undefined, 100),
        (letters) => letters.map(({ message }) => message)
      )
      for (const n of [4, 1, 2]) {
        assert.strictEqual(yield* service.deadLetterMessage(ownership, letter(n), "unreadable"), "DeadLettered")
      }
      assert.isTrue(Option.isNone(yield* committed(service, ownership.stream)))
      yield* service.commit(ownership, id("5-0"))
      for (const n of [5, 4, 1, 2, 5]) {
        assert.strictEqual(yield* service.deadLetterMessage(ownership, letter(n), "again"), "DeadLettered")
      }
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* dead, ["4-0", "1-0", "2-0", "5-0"])
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(id("5-0")))
      // A redriven message is no longer a dead letter, and may fail again
      const [first] = yield* service.deadMessages(ownership.stream, undefined, 1)
      assert.isTrue(yield* service.redriveMessage(ownership.stream, first!.id))
      yield* service.deadLetterMessage(ownership, letter(4), "once more")
      assert.deepStrictEqual<ReadonlyArray<string>>(yield* dead, ["1-0", "2-0", "5-0", "4-0"])
      // A different message with the same id: the data stream was deleted and written again
      yield* service.deadLetterMessage(ownership, { id: id("4-0"), fields: [["n", "new"]] }, "another")
      yield* service.deadLetterMessage(ownership, { id: id("4-0"), fields: [["n", "4"]] }, "shorter")
      assert.lengthOf(yield* dead, 6)
    }))

  it.effect("dead messages are listed in order, and redriven once and unchanged", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("redrive")
      const ownership = yield* party().own("one")
      // A message may contain the field names of a dead letter
      const one = {
        id: id("3-0"),
        fields: [["n", "3"], ["n", "three"], ["simba-id", "x"], ["simba-reason", "y"]] as const
      }
      const two = { id: id("4-0"), fields: Array.from({ length: 4000 }, (_, i) => [`f${i}`, String(i)] as const) }
      yield* service.deadLetterMessage(ownership, one, "unreadable")
      yield* service.deadLetterMessage(ownership, two, "too long")
      const dead = yield* service.deadMessages(ownership.stream, undefined, 10)
      assert.deepStrictEqual(
        dead.map(({ fields, message, reason }) => ({ fields, message, reason })),
        [
          { fields: one.fields, message: one.id, reason: "unreadable" },
          { fields: two.fields, message: two.id, reason: "too long" }
        ]
      )
      assert.deepStrictEqual(yield* service.deadMessages(ownership.stream, undefined, 1), dead.slice(0, 1))
      assert.deepStrictEqual(yield* service.deadMessages(ownership.stream, dead[0]!.id, 10), dead.slice(1))
      assert.deepStrictEqual(yield* service.deadMessages(stream("two"), undefined, 10), [])
      for (const letter of dead) {
        assert.isTrue(yield* service.redriveMessage(ownership.stream, letter.id))
        assert.isFalse(yield* service.redriveMessage(ownership.stream, letter.id))
      }
      assert.deepStrictEqual(yield* service.deadMessages(ownership.stream, undefined, 10), [])
      const messages = yield* service.messages(ownership.stream, two.id, 10)
      assert.deepStrictEqual(messages.map(({ fields }) => fields), [one.fields, two.fields])
    }))

  it.effect("a data stream that does not exist has no messages", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("no messages")
      assert.deepStrictEqual(yield* service.messages(stream("one"), id("0-0"), 10), [])
    }))
}
