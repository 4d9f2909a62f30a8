/** Contract for stream stores: who may move a checkpoint to any message. Registered by `StreamStoreSuite`. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type Cases, committed } from "./bench.ts"

const at = (text: string, offset?: number) => ({ id: EntryId.make(text), offset })

export const seeking = ({ bench, it }: Cases): void => {
  it.effect("only the current owner may seek, and a seek reopens an ended data stream", () =>
    Effect.gen(function*() {
      const { lapse, party, service } = yield* bench("seek")
      const ownership = yield* party().own("one")
      yield* service.commit(ownership, EntryId.make("5-0"), true, 5)
      assert.strictEqual(yield* service.end(ownership), "Ended")
      assert.strictEqual(
        yield* service.seek(ownership.stream, at("3-0", 3), { owner: ownership, from: EntryId.make("5-0") }),
        "Moved"
      )
      assert.deepStrictEqual(yield* service.checkpoint(ownership.stream), Option.some(at("3-0", 3)))
      assert.strictEqual(yield* service.end(ownership), "Open")
      yield* lapse(ownership)
      assert.strictEqual(yield* service.seek(ownership.stream, at("9-0"), { owner: ownership }), "NotOwner")
      const next = yield* party().take(ownership.stream, ownership.entry)
      assert.strictEqual(yield* service.seek(ownership.stream, at("9-0"), { owner: ownership }), "NotOwner")
      assert.strictEqual(
        yield* service.seek(ownership.stream, at("0-0", 0), { owner: next, from: EntryId.make("3-0") }),
        "Moved"
      )
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(EntryId.make("0-0")))
    }))

  it.effect("an owner's late seek does not move a checkpoint that has advanced since", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("late seek")
      const ownership = yield* party().own("one")
      const { stream } = ownership
      const seek = (to: string, from: string | undefined) =>
        service.seek(stream, at(to), { owner: ownership, from: from === undefined ? from : EntryId.make(from) })
      assert.strictEqual(yield* seek("0-0", undefined), "Moved")
      yield* service.commit(ownership, EntryId.make("7-0"))
      assert.strictEqual(yield* seek("0-0", undefined), "Changed")
      assert.strictEqual(yield* seek("9-0", "0-0"), "Changed")
      assert.deepStrictEqual(yield* committed(service, stream), Option.some(EntryId.make("7-0")))
      assert.strictEqual(yield* seek("3-0", "7-0"), "Moved")
      assert.deepStrictEqual(yield* committed(service, stream), Option.some(EntryId.make("3-0")))
    }))

  it.effect("an operator may move the checkpoint only if the data stream has no owner", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("operator")
      const ownership = yield* party().own("one")
      yield* service.commit(ownership, EntryId.make("5-0"))
      assert.strictEqual(yield* service.seek(ownership.stream, at("1-0")), "Owned")
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(EntryId.make("5-0")))
      yield* service.release(ownership)
      assert.strictEqual(yield* service.seek(ownership.stream, at("1-0")), "Moved")
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(EntryId.make("1-0")))
    }))

  it.effect("a forced seek takes the data stream from its owner, and the next owner gets a larger token", () =>
    Effect.gen(function*() {
      const { lease, party, pass, renew, service } = yield* bench("forced", Duration.seconds(2))
      const ownership = yield* party().own("one")
      yield* service.commit(ownership, EntryId.make("5-0"))
      assert.strictEqual(yield* service.seek(ownership.stream, at("1-0"), { force: true }), "Moved")
      assert.strictEqual(yield* service.commit(ownership, EntryId.make("6-0")), "NotOwner")
      assert.strictEqual(yield* service.seek(ownership.stream, at("6-0"), { owner: ownership }), "NotOwner")
      const dead = { id: EntryId.make("6-0"), fields: [] }
      assert.strictEqual(yield* service.deadLetterMessage(ownership, dead, "late"), "NotOwner")
      assert.strictEqual(yield* service.fail(ownership), "NotOwner")
      assert.strictEqual(yield* service.done(ownership), "NotOwner")
      assert.deepStrictEqual(yield* renew(ownership), { _tag: "Lost", reason: "Vanished" })
      assert.deepStrictEqual(yield* committed(service, ownership.stream), Option.some(EntryId.make("1-0")))
      yield* pass(lease)
      const next = yield* party().take(ownership.stream, ownership.entry)
      assert.isAbove(next.token, ownership.token)
      assert.strictEqual(yield* service.commit(ownership, EntryId.make("6-0")), "NotOwner")
      assert.strictEqual(yield* service.commit(next, EntryId.make("2-0")), "Committed")
    }))

  it.effect("a seek to an invalid id is refused without affecting the owner", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("no position")
      const ownership = yield* party().own("one")
      yield* Effect.flip(service.seek(ownership.stream, { id: "six" as EntryId, offset: undefined }, { force: true }))
      assert.strictEqual(yield* service.commit(ownership, EntryId.make("6-0")), "Committed")
    }))
}
