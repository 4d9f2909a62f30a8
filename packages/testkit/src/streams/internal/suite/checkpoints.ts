import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Cases, only } from "./bench.ts"

const id = (text: string) => EntryId.make(text)

export const committing = ({ append, bench, it }: Cases): void => {
  it.effect("the checkpoint moves forward only, in the order of ids", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("checkpoint")
      const held = yield* party().own("one")
      const checkpoint = service.checkpoint(held.stream)
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
      for (const [to, answer, after] of steps) {
        assert.strictEqual(yield* service.commit(held, id(to)), answer, to)
        assert.deepStrictEqual(yield* checkpoint, Option.some(id(after)))
      }
    }))

  it.effect("B55: whoever was replaced commits nothing, and the next goes on where it was", () =>
    Effect.gen(function*() {
      const { lapse, party, service } = yield* bench("replaced")
      const [a, b] = [party(), party()]
      const held = yield* a.own("one")
      yield* service.commit(held, id("5-0"))
      yield* lapse(held)
      assert.strictEqual(yield* service.commit(held, id("6-0")), "NotOwner")
      const other = yield* b.take(held.stream, held.entry)
      assert.strictEqual(yield* service.commit(held, id("6-0")), "NotOwner")
      const message = { id: id("6-0"), fields: [["n", "6"]] as const }
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "stale"), "NotOwner")
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(id("5-0")))
      assert.strictEqual(yield* service.commit(other, id("6-0")), "Committed")
    }))

  it.effect("the end is known to the owners of the announcement under which it was committed", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("end")
      const [a, b] = [party(), party()]
      const held = yield* a.own("one")
      assert.strictEqual(yield* service.end(held), "Open")
      assert.strictEqual(yield* service.commit(held, id("5-0")), "Committed")
      assert.strictEqual(yield* service.end(held), "Open")
      assert.strictEqual(yield* service.commit(held, id("5-0"), true), "Committed")
      assert.strictEqual(yield* service.commit(held, id("5-0"), true), "Behind")
      assert.strictEqual(yield* service.end(held), "Ended")
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(id("5-0")))
      yield* service.release(held)
      const other = yield* b.take(held.stream, held.entry)
      assert.strictEqual(yield* service.end(other), "Ended")
      // Redriven, it goes on with its old announcement
      yield* service.deadLetter(other, "poison")
      yield* service.redrive(only(yield* service.deadLetters(undefined, 10)).id)
      const redriven = yield* b.take(held.stream, only(yield* b.read()).entry)
      assert.strictEqual(yield* service.end(redriven), "Ended")
      assert.strictEqual(yield* service.commit(redriven, id("6-0")), "Committed")
      assert.strictEqual(yield* service.end(redriven), "Open")
    }))

  it.effect("what is done has ended, and is over for a later announcement if it was deleted", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("ended")
      const a = party()
      const held = yield* a.own("one")
      yield* service.commit(held, id("5-0"))
      yield* service.done(held)
      const again = yield* a.own("one")
      assert.strictEqual(yield* service.end(again), "Ended")
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(id("5-0")))
      if (append === undefined) return
      yield* append(held.stream, [["n", "1"]])
      assert.strictEqual(yield* service.end(again), "Reopened")
      yield* service.commit(again, id("6-0"))
      assert.strictEqual(yield* service.end(again), "Open")
    }))

  it.effect("keeping the checkpoints of what has some and of what has none changes nothing else", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("keep")
      const held = yield* party().own("one")
      yield* service.commit(held, id("5-0"))
      yield* service.keepCheckpoints([held.stream, stream("two")])
      yield* service.keepCheckpoints([])
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(id("5-0")))
      assert.isTrue(Option.isNone(yield* service.checkpoint(stream("two"))))
    }))

  it.effect("a message that is deadLettered is passed", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("dead-letter message")
      const held = yield* party().own("one")
      const message = { id: id("3-0"), fields: [["n", "3"], ["n", "three"]] as const }
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "unreadable"), "Committed")
      assert.deepStrictEqual(yield* service.checkpoint(held.stream), Option.some(message.id))
      assert.strictEqual(yield* service.deadLetterMessage(held, message, "unreadable"), "Behind")
    }))

  it.effect("dead messages are listed in order, and replayed once, as they were", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("replay")
      const held = yield* party().own("one")
      const one = { id: id("3-0"), fields: [["n", "3"], ["n", "three"]] as const }
      const two = { id: id("4-0"), fields: Array.from({ length: 4000 }, (_, i) => [`f${i}`, String(i)] as const) }
      yield* service.deadLetterMessage(held, one, "unreadable")
      yield* service.deadLetterMessage(held, two, "too long")
      const dead = yield* service.deadMessages(held.stream, undefined, 10)
      assert.deepStrictEqual(
        dead.map(({ fields, message, reason }) => ({ fields, message, reason })),
        [
          { fields: one.fields, message: one.id, reason: "unreadable" },
          { fields: two.fields, message: two.id, reason: "too long" }
        ]
      )
      assert.deepStrictEqual(yield* service.deadMessages(held.stream, undefined, 1), dead.slice(0, 1))
      assert.deepStrictEqual(yield* service.deadMessages(held.stream, dead[0]!.id, 10), dead.slice(1))
      assert.deepStrictEqual(yield* service.deadMessages(stream("two"), undefined, 10), [])
      for (const letter of dead) {
        assert.isTrue(yield* service.replayMessage(held.stream, letter.id))
        assert.isFalse(yield* service.replayMessage(held.stream, letter.id))
      }
      assert.deepStrictEqual(yield* service.deadMessages(held.stream, undefined, 10), [])
      const messages = yield* service.messages(held.stream, two.id, 10)
      assert.deepStrictEqual(messages.map(({ fields }) => fields), [one.fields, two.fields])
    }))

  it.effect("a stream that has no messages yet has none", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("no messages")
      assert.deepStrictEqual(yield* service.messages(stream("one"), id("0-0"), 10), [])
    }))
}
