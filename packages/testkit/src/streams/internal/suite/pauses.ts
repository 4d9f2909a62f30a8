/** Contract for stream stores: what pausing a service or a data stream changes. Registered by `StreamStoreSuite`. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Cases } from "./bench.ts"

export const pausing = ({ bench, it }: Cases): void => {
  it.effect("a service and its data streams can be paused independently, for all clients", () =>
    Effect.gen(function*() {
      const { name, service, store, stream } = yield* bench("pauses")
      const other = yield* store.open(name)
      assert.deepStrictEqual(yield* service.paused, { service: false, streams: [] })
      assert.isFalse(yield* service.setPaused(undefined, false))
      assert.isTrue(yield* service.setPaused(stream("one"), true))
      assert.isFalse(yield* service.setPaused(stream("one"), true))
      assert.isTrue(yield* service.setPaused(undefined, true))
      assert.deepStrictEqual(yield* other.paused, { service: true, streams: [stream("one")] })
      assert.deepStrictEqual((yield* other.inspect).paused, { service: true, streams: [stream("one")] })
      assert.isTrue(yield* other.setPaused(undefined, false))
      assert.deepStrictEqual(yield* service.paused, { service: false, streams: [stream("one")] })
      assert.isTrue(yield* other.setPaused(stream("one"), false))
      assert.isFalse(yield* other.setPaused(stream("one"), false))
      assert.deepStrictEqual(yield* service.paused, { service: false, streams: [] })
    }))
}
