/** Contract for stream stores: how a data stream's messages are read and counted. Registered by `StreamStoreSuite`. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { type Cases, only } from "./bench.ts"

const first = EntryId.make("0-0")

export const messaging = ({ append, bench, it, trim }: Cases): void => {
  if (append === undefined) return

  it.effect("messages arrive in order from the requested position, with their fields", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("messages")
      const one = stream("one")
      const fields = [["n", "1"], ["n", "one"], ["", ""], ["ü", "☃"]] as const
      const ids = [yield* append(one, fields)]
      for (const n of ["2", "3", "4"]) ids.push(yield* append(one, [["n", n]]))
      const all = yield* service.messages(one, first, 10)
      assert.deepStrictEqual(all.map(({ id }) => id), ids)
      assert.deepStrictEqual(all[0]!.fields, fields)
      assert.deepStrictEqual(yield* service.messages(one, ids[0]!, 2), all.slice(1, 3))
      assert.deepStrictEqual(yield* service.awaitMessages(one, ids[0]!, 2), all.slice(1, 3))
      assert.deepStrictEqual(yield* service.messages(one, ids[3]!, 2), [])
    }))

  it.effect("a waiting reader receives new messages only from its own data stream", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("waiting")
      const streams = ["a", "b", "c"].map(stream)
      const fibers = yield* Effect.forEach(streams, (stream) =>
        Effect.forkChild(service.awaitMessages(stream, first, 10), { startImmediately: true }))
      const late = yield* Effect.forkChild(service.awaitMessages(streams[1]!, first, 10), { startImmediately: true })
      for (const [i, label] of [[1, "b"], [0, "a"], [2, "c"]] as const) {
        const id = yield* append(streams[i]!, [["label", label]])
        const message = { id, fields: [["label", label]] }
        assert.deepStrictEqual<unknown>(yield* Fiber.join(fibers[i]!), [message])
        if (i === 1) {
          assert.deepStrictEqual<unknown>(yield* Fiber.join(late), [message])
        }
      }
    }))

  it.effect("successive reads return each message exactly once", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("following")
      const one = stream("one")
      const count = 30
      const reader = yield* Effect.forkChild(
        Effect.gen(function*() {
          const found: Array<string> = []
          let after = first
          while (found.length < count) {
            const messages = yield* service.awaitMessages(one, after, 4)
            assert.isAtMost(messages.length, 4)
            found.push(...messages.map(({ fields }) => only(fields)[1]))
            after = messages[messages.length - 1]!.id
          }
          return found
        }),
        { startImmediately: true }
      )
      for (let i = 0; i < count; i++) {
        yield* append(one, [["n", String(i)]])
        if (i % 3 === 0) yield* Effect.yieldNow
      }
      assert.deepStrictEqual(yield* Fiber.join(reader), Array.from({ length: count }, (_, i) => String(i)))
    }))

  it.effect("a reader that stops waiting does not affect other readers", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("left")
      const [one, two] = [stream("one"), stream("two")]
      const gone = yield* Effect.forkChild(service.awaitMessages(one, first, 1), { startImmediately: true })
      const stays = yield* Effect.forkChild(service.awaitMessages(two, first, 1), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(gone)
      yield* append(one, [["n", "1"]])
      const id = yield* append(two, [["n", "2"]])
      assert.deepStrictEqual(yield* Fiber.join(stays), [{ id, fields: [["n", "2"]] }])
    }))

  if (trim === undefined) return

  it.effect("the extent counts added messages and those that remain after trimming", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("extent")
      const one = stream("one")
      const extent = Effect.map(service.extent(one), Option.getOrUndefined)
      assert.isUndefined(yield* extent)
      const ids: Array<EntryId> = []
      for (let n = 0; n < 5; n++) ids.push(yield* append(one, [["n", String(n)]]))
      const last = ids[4]!
      assert.deepInclude(yield* extent, { length: 5, first: ids[0]!, last, added: 5 })
      yield* trim(one, ids[2]!)
      assert.deepInclude(yield* extent, { length: 3, first: ids[2]!, last, added: 5 })
      // Now no messages remain
      yield* trim(one, EntryId.make("9999999999999999-0"))
      assert.deepInclude(yield* extent, { length: 0, first: undefined, last, added: 5 })
      const extents = yield* Effect.forEach(["one", "two"], (label) => service.extent(stream(label)), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(extents.map(Option.isSome), [true, false])
    }))

  it.effect("count returns the extent and the number of messages between two ids", () =>
    Effect.gen(function*() {
      const { service, stream } = yield* bench("count")
      const one = stream("one")
      assert.isTrue(Option.isNone(yield* service.count(one, first)))
      const ids: Array<EntryId> = []
      for (let n = 0; n < 250; n++) ids.push(yield* append(one, [["n", String(n)]]))
      const most = EntryId.make("18446744073709551615-18446744073709551615")
      const before = EntryId.make("1-0")
      const counts = (removed: number) =>
        Effect.gen(function*() {
          const extent = Option.getOrThrow(yield* service.extent(one))
          const bounds = [0, 1, 49, 50, 51, 100, 149, 150, 249]
          const ends = [undefined, before, most, ...bounds.map((index) => ids[index]!)]
          for (const after of [first, before, most, ...bounds.map((index) => ids[index]!)]) {
            for (const last of ends) {
              const [from, to] = [ids.indexOf(after), last === undefined || last === most ? 249 : ids.indexOf(last)]
              const expected = after === most ? 0 : Math.max(0, to - Math.max(from, removed - 1))
              const found = yield* service.count(one, after, last)
              assert.deepStrictEqual(Option.getOrThrow(found), { ...extent, counted: expected }, `${after} ${last}`)
            }
          }
        })
      yield* counts(0)
      yield* trim(one, ids[50]!)
      yield* counts(50)
      yield* trim(one, most)
      yield* counts(250)
    }))
}
