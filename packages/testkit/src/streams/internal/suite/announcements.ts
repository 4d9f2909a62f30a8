/**
 * Contract for stream stores: what announcing a data stream does, and how often the data stream is processed.
 * Registered by `StreamStoreSuite`.
 */
import type { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { announcedOf, type Cases, only } from "./bench.ts"

export const announcing = ({ append, bench, it }: Cases): void => {
  it.effect("announcements are read in order and unchanged", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("announce")
      const announcements = [
        { stream: stream("b"), info: { size: 3, tags: ["x", "ü"], nested: { a: null } } },
        { stream: stream("a"), info: {} }
      ]
      const replies = yield* service.announce(announcements)
      assert.deepStrictEqual(replies.map(({ isNew }) => isNew), [true, true])
      const entries = (yield* party().read()).map(announcedOf)
      assert.deepStrictEqual(entries.map(({ entry }) => entry), replies.map(({ entry }) => entry))
      assert.deepStrictEqual(entries.map(({ info, stream }) => ({ stream, info })), announcements)
    }))

  it.effect("a repetition adds an announcement only if the last one is finished", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("again")
      const one = stream("one")
      const entry = yield* announce("one")
      // Without a new message, the repetition would count as the producer's retry
      const written = append === undefined ? Effect.void : append(one, [["n", "1"]])
      const repeated = () =>
        Effect.andThen(written, Effect.map(service.announce([{ stream: one, info: { other: true } }]), only))
      const a = party()
      yield* a.read()
      const ownership = yield* a.take(one, entry)
      assert.deepStrictEqual(yield* repeated(), { entry, isNew: false })
      assert.strictEqual((yield* service.inspect).announced, 1)
      yield* service.done(ownership)
      const next = announcedOf(only(yield* a.read()))
      assert.deepInclude(next, { stream: one, info: { other: true } })
      assert.deepStrictEqual(yield* repeated(), { entry: next.entry, isNew: false })
      yield* service.done(yield* a.take(one, next.entry))
      yield* service.done(yield* a.take(one, announcedOf(only(yield* a.read())).entry))
      assert.strictEqual((yield* service.inspect).announced, 0)
      assert.isTrue((yield* repeated()).isNew)
    }))

  it.effect("each repetition is a separate round, up to the next end message", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { announce, party, service, stream } = yield* bench("rounds")
      const one = stream("one")
      const a = party()
      const ends: Array<EntryId> = []
      const round = Effect.gen(function*() {
        yield* append(one, [["n", "1"]])
        ends.push(yield* append(one, [["end", "true"]]))
      })
      let entry = yield* announce("one")
      yield* round
      assert.strictEqual(yield* announce("one"), entry)
      // The producer retries because it did not receive a reply, so there are no new messages
      assert.strictEqual(yield* announce("one"), entry)
      yield* round
      yield* announce("one")
      yield* round
      for (const end of ends) {
        assert.strictEqual(announcedOf(only(yield* a.read())).stream, one)
        const ownership = yield* a.take(one, entry)
        yield* service.commit(ownership, end, true)
        yield* service.done(ownership)
        entry = Option.match(yield* service.find(one), { onNone: () => entry, onSome: (found) => found.entry })
      }
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("two announcements without new messages between them make a single round", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { announce, party, service, stream } = yield* bench("twice")
      const one = stream("one")
      const a = party()
      const end = yield* append(one, [["end", "true"]])
      const entry = yield* announce("one")
      assert.strictEqual(yield* announce("one"), entry)
      yield* a.read()
      const ownership = yield* a.take(one, entry)
      yield* service.commit(ownership, end, true)
      yield* service.done(ownership)
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("one announcement covers all rounds written before it", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { announce, party, service, stream } = yield* bench("all rounds")
      const one = stream("one")
      const a = party()
      const ends = [yield* append(one, [["end", "true"]]), yield* append(one, [["end", "true"]])]
      const entry = yield* announce("one")
      assert.strictEqual(yield* announce("one"), entry)
      for (const end of ends) {
        const ownership = yield* a.take(one, announcedOf(only(yield* a.read())).entry)
        yield* service.commit(ownership, end, true)
        yield* service.done(ownership)
      }
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("a data stream that is done without an end message stays done, regardless of unread messages", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { announce, party, service, stream } = yield* bench("by hand")
      const one = stream("one")
      const a = party()
      const id = yield* append(one, [["n", "1"]])
      yield* append(one, [["n", "2"]])
      yield* announce("one")
      const ownership = yield* a.take(one, announcedOf(only(yield* a.read())).entry)
      yield* service.commit(ownership, id)
      yield* service.done(ownership)
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("a repetition before the end message is part of the same round", () =>
    Effect.gen(function*() {
      if (append === undefined) return
      const { announce, party, service, stream } = yield* bench("same round")
      const one = stream("one")
      const a = party()
      const entry = yield* announce("one")
      yield* append(one, [["n", "1"]])
      yield* announce("one")
      const end = yield* append(one, [["end", "true"]])
      yield* a.read()
      const ownership = yield* a.take(one, entry)
      yield* service.commit(ownership, end, true)
      yield* service.done(ownership)
      assert.strictEqual((yield* service.inspect).announced, 0)
    }))

  it.effect("find returns only unfinished announcements", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("find")
      const one = stream("one")
      assert.isTrue(Option.isNone(yield* service.find(one)))
      const entry = yield* announce("one", { kind: "test" })
      yield* announce("two")
      const expected = { _tag: "Announced", entry, stream: one, info: { kind: "test" } }
      const found = Effect.map(service.find(one), Option.getOrUndefined)
      assert.deepInclude(yield* found, expected)
      const a = party()
      yield* a.read()
      assert.deepInclude(yield* found, expected)
      yield* service.done(yield* a.take(one, entry))
      assert.isUndefined(yield* found)
    }))

  it.effect("many announcements are made in order", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("large")
      const streams = Array.from({ length: 1100 }, (_, i) => stream(String(i)))
      const replies = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      assert.strictEqual(new Set(replies.map(({ entry }) => entry)).size, streams.length)
      const entries = (yield* party().read(2000)).map(announcedOf)
      assert.deepStrictEqual(entries.map(({ stream }) => stream), streams)
      assert.deepStrictEqual(entries.map(({ entry }) => entry), replies.map(({ entry }) => entry))
    }))
}
