/**
 * Contract for stream stores: which consumers and entries are removed, and what an inspection counts. Registered by
 * `StreamStoreSuite`.
 */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, only } from "./bench.ts"

export const tidying = ({ bench, it }: Cases): void => {
  it.effect("B51: an idle consumer is removed unless it has pending entries", () =>
    Effect.gen(function*() {
      const { party, pass, pending, service } = yield* bench("reap")
      const [a, b, c] = [party(), party(), party()]
      yield* service.done(yield* a.own("one"))
      const ownership = yield* b.own("two")
      const idle = Duration.seconds(3)
      yield* pass(idle)
      yield* service.done(yield* c.own("three"))
      assert.deepStrictEqual(yield* service.reap(idle), { consumers: 1, entries: 0 })
      const { consumers } = yield* service.inspect
      assert.deepStrictEqual(consumers.map(({ name }) => name).sort(), [b.consumer, c.consumer].sort())
      assert.strictEqual(only(yield* pending()).content.entry, ownership.entry)
    }))

  it.effect("B51: a leaving consumer is removed immediately unless it has pending entries", () =>
    Effect.gen(function*() {
      const { party, service } = yield* bench("leave")
      const [a, b] = [party(), party()]
      assert.isTrue(yield* service.removeConsumer(a.consumer))
      yield* service.done(yield* a.own("one"))
      const ownership = yield* b.own("two")
      assert.isTrue(yield* service.removeConsumer(a.consumer))
      assert.isFalse(yield* service.removeConsumer(b.consumer))
      assert.deepStrictEqual((yield* service.inspect).consumers.map(({ name }) => name), [b.consumer])
      yield* service.done(ownership)
    }))

  it.effect("B53: an inspection counts announcements, pending entries and consumers", () =>
    Effect.gen(function*() {
      const { announce, party, pass, service, stream } = yield* bench("inspect")
      const a = party()
      for (const label of ["one", "two", "three"]) yield* announce(label)
      const [first] = yield* a.read(2)
      yield* pass(Duration.millis(300))
      const before = yield* service.inspect
      assert.strictEqual(before.announced, 3)
      assert.strictEqual(before.pending, 2)
      assert.isAtLeast(Duration.toMillis(before.oldest), 300)
      const consumer = only(before.consumers)
      assert.strictEqual(consumer.name, a.consumer)
      assert.strictEqual(consumer.pending, 2)
      yield* service.done(yield* a.take(stream("one"), first!.entry))
      const after = yield* service.inspect
      assert.strictEqual(after.announced, 2)
      assert.strictEqual(after.pending, 1)
    }))

  it.effect("removing old data never removes unfinished entries", () =>
    Effect.gen(function*() {
      const { announce, party, service, stream } = yield* bench("unfinished")
      const a = party()
      const entry = yield* announce("one")
      yield* announce("two")
      yield* a.read(1)
      for (let i = 0; i < 2; i++) yield* service.reap(Duration.zero)
      assert.strictEqual((yield* service.inspect).announced, 2)
      yield* a.take(stream("one"), entry)
    }))
}
