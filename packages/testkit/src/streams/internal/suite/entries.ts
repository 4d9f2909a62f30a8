/**
 * Contract for stream stores: how announcements are read, and how pending ones are listed. Registered by
 * `StreamStoreSuite`.
 */
import { ServiceName } from "@effect-simba/core/streams/StreamStore"
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { announcedOf, type Cases, only } from "./bench.ts"

export const reading = ({ bench, it }: Cases): void => {
  it.effect("G6: announcements older than the group are read", () =>
    Effect.gen(function*() {
      const { name, party, store, stream } = yield* bench("before")
      const service = yield* store.open(ServiceName.make(`${name}:late`))
      yield* service.announce([{ stream: stream("one"), info: {} }])
      assert.isTrue(yield* service.prepare)
      assert.isFalse(yield* service.prepare)
      const { consumer } = party()
      const entries = yield* service.read({ consumer, count: 10, block: Duration.millis(10) })
      assert.strictEqual(announcedOf(only(entries)).stream, stream("one"))
    }))

  it.effect("reading creates the group if it does not exist", () =>
    Effect.gen(function*() {
      const { name, party, store, stream } = yield* bench("none")
      const service = yield* store.open(ServiceName.make(`${name}:unprepared`))
      yield* service.announce([{ stream: stream("one"), info: {} }])
      const { consumer } = party()
      const entries = yield* service.read({ consumer, count: 10, block: Duration.millis(10) })
      assert.strictEqual(entries.length, 1)
      assert.isFalse(yield* service.prepare)
    }))

  it.effect("G7: consumers receive at most as many entries as requested, and never the same entry", () =>
    Effect.gen(function*() {
      const { announce, party } = yield* bench("count")
      for (let i = 0; i < 5; i++) yield* announce(String(i))
      const [a, b] = [party(), party()]
      const first = yield* a.read(2)
      const second = yield* b.read(2)
      const third = yield* a.read(2)
      assert.deepStrictEqual([first.length, second.length, third.length], [2, 2, 1])
      assert.strictEqual(new Set([...first, ...second, ...third].map(({ entry }) => entry)).size, 5)
    }))

  it.effect("G31: a read without new entries times out without an error", () =>
    Effect.gen(function*() {
      const { during, party } = yield* bench("empty")
      const block = Duration.millis(200)
      assert.deepStrictEqual(yield* during(party().read(10, block), Duration.millis(250)), [])
    }))

  it.effect("a waiting read receives new entries immediately", () =>
    Effect.gen(function*() {
      const { announce, party } = yield* bench("waiting")
      const fiber = yield* Effect.forkChild(party().read(10, Duration.minutes(1)), { startImmediately: true })
      yield* Effect.yieldNow
      const entry = yield* announce("one")
      assert.strictEqual(only(yield* Fiber.join(fiber)).entry, entry)
    }))

  it.effect("pending entries can be listed and filtered by consumer and idle time", () =>
    Effect.gen(function*() {
      const { announce, party, pass, pending } = yield* bench("pending")
      const labels = ["a", "b", "c", "d", "e"]
      for (const label of labels) yield* announce(label)
      const [a, b] = [party(), party()]
      const mine = yield* a.read(3)
      yield* pass(Duration.seconds(3))
      const others = yield* b.read(3)
      const all = yield* pending()
      assert.deepStrictEqual(all.map(({ content }) => content), [...mine, ...others])
      assert.deepStrictEqual(
        all.map(({ consumer }) => consumer),
        [a, a, a, b, b].map(({ consumer }) => consumer)
      )
      const idle = all.map(({ idle }) => Duration.toMillis(idle))
      const [first, last] = [Math.min(...idle.slice(0, 3)), Math.max(...idle.slice(3))]
      assert.isAtLeast(first - last, 3000)
      assert.deepStrictEqual((yield* pending({ consumer: b.consumer })).map(({ content }) => content), others)
      assert.deepStrictEqual(
        (yield* pending({ minIdle: Duration.millis(first) })).map(({ content }) => content),
        mine
      )
      assert.deepStrictEqual(yield* pending({ consumer: party().consumer }), [])
    }))

  it.effect("G1: Go consumers' pending entries are recognized by the consumer's name alone", () =>
    Effect.gen(function*() {
      const { announce, goConsumer, party, pending, service } = yield* bench("go consumer")
      const [other, reader, owner] = [goConsumer(), party(), party()]
      yield* announce("one")
      yield* announce("two")
      yield* other.read(1)
      yield* reader.read(1)
      const ownership = yield* owner.own("owned")
      const kinds = Effect.map(
        pending(),
        (entries) =>
          entries.map(({ deliveries, goConsumer }) => [deliveries, goConsumer?.lease ?? (goConsumer && "free")])
      )
      const expected = [[1, "free"], [1, undefined], [1, undefined]]
      assert.deepStrictEqual(yield* kinds, expected)
      yield* service.release(ownership)
      assert.deepStrictEqual(yield* kinds, expected)
    }))

  it.effect("pending entries whose content is known are not read again", () =>
    Effect.gen(function*() {
      const { announce, party, service } = yield* bench("known")
      yield* announce("one")
      yield* announce("two")
      const [one] = yield* party().read(2)
      const known = { ...announcedOf(one!), info: { known: true } }
      const { entries } = yield* service.pending({
        minIdle: Duration.zero,
        count: 10,
        known: (entry) => entry === known.entry ? known : undefined
      })
      assert.strictEqual(entries[0]!.content, known)
      assert.deepStrictEqual(announcedOf(entries[1]!.content).info, {})
    }))

  it.effect("G4: each page of pending entries continues where the last one ended", () =>
    Effect.gen(function*() {
      const { announce, party, service } = yield* bench("pages")
      for (let i = 0; i < 7; i++) yield* announce(String(i))
      const entries = yield* party().read(7)
      const found: Array<string> = []
      let after: Parameters<typeof service.pending>[0]["after"]
      let calls = 0
      do {
        const page = yield* service.pending({ minIdle: Duration.zero, after, count: 3 })
        found.push(...page.entries.map(({ content }) => content.entry))
        after = page.next
      } while (after !== undefined && ++calls < 10)
      assert.deepStrictEqual(found, entries.map(({ entry }) => entry))
      assert.isBelow(calls, 4)
    }))
}
