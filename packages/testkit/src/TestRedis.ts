/**
 * A fake Redis server and one client in a single layer, which is enough for most tests.
 *
 * @since 0.1.0
 */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Layer from "effect/Layer"
import * as FakeRedis from "./FakeRedis.ts"
import type { Redis } from "./internal/client/effectRedis.ts"

/**
 * Provides a fake Redis server and a client, for code that needs `Redis`. The server uses the test's `Clock`.
 *
 * **Gotchas**
 *
 * Each build of this layer is a separate server.
 *
 * **Example** (A counter that expires)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { TestRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 * import { TestClock } from "effect/testing"
 *
 * it.effect("counts within a minute", () =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     yield* redis.send("SET", "calls", "1", "PX", "60000")
 *     assert.strictEqual(yield* redis.send("INCR", "calls"), 2)
 *     yield* TestClock.adjust("2 minutes")
 *     assert.strictEqual(yield* redis.send("INCR", "calls"), 1)
 *   }).pipe(Effect.provide(TestRedis.layer())))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: FakeRedis.Options & FakeRedis.ClientOptions
): Layer.Layer<FakeRedis.FakeRedis | Redis | Subscriber> =>
  FakeRedis.layerClient(options).pipe(Layer.provideMerge(FakeRedis.layer(options)))
