import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { announcedOf, type Cases, only } from "./bench.ts"

export const announcing = ({ bench, it }: Cases): void => {
  it.effect("announcements are answered in order, and read as they were made", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("announce")
      const announcements = [
        { stream: stream("b"), info: { size: 3, tags: ["x", "ü"], nested: { a: null } } },
        { stream: stream("a"), info: {} }
      ]
      const answers = yield* service.announce(announcements)
      assert.deepStrictEqual(answers.map(({ isNew }) => isNew), [true, true])
      const entries = (yield* party().read()).map(announcedOf)
      assert.deepStrictEqual(entries.map(({ entry }) => entry), answers.map(({ entry }) => entry))
      assert.deepStrictEqual(entries.map(({ info, stream }) => ({ stream, info })), announcements)
    }))

  it.effect("announcing again answers the unfinished entry, and adds none", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("again")
      const one = stream("one")
      const entry = yield* announce("one")
      const again = () => Effect.map(service.announce([{ stream: one, info: { other: true } }]), only)
      assert.deepStrictEqual(yield* again(), { entry, isNew: false })
      const a = party()
      yield* a.read()
      assert.deepStrictEqual(yield* again(), { entry, isNew: false })
      const held = yield* a.take(one, entry)
      assert.deepStrictEqual(yield* again(), { entry, isNew: false })
      yield* service.done(held)
      const later = yield* again()
      assert.isTrue(later.isNew)
      assert.notStrictEqual(later.entry, entry)
    }))

  it.effect("one announcement names a data stream twice: the second is that of the first", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("twice")
      const announcement = { stream: stream("one"), info: {} }
      const [first, second] = yield* service.announce([announcement, announcement])
      assert.deepStrictEqual(second, { entry: first!.entry, isNew: false })
    }))

  it.effect("an unfinished announcement is found, a finished or unknown one is not", () =>
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

  it.effect("a large announcement is made in order", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("large")
      const streams = Array.from({ length: 1100 }, (_, i) => stream(String(i)))
      const answers = yield* service.announce(streams.map((stream) => ({ stream, info: {} })))
      assert.strictEqual(new Set(answers.map(({ entry }) => entry)).size, streams.length)
      const entries = (yield* party().read(2000)).map(announcedOf)
      assert.deepStrictEqual(entries.map(({ stream }) => stream), streams)
      assert.deepStrictEqual(entries.map(({ entry }) => entry), answers.map(({ entry }) => entry))
    }))
}
