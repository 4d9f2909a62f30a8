/**
 * For testing stream handlers: a client on an in-memory Redis, under `TestClock`.
 *
 * **Example** (Testing a handler)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { TestStreams } from "@effect-simba/testkit/streams"
 * import { Effect, Ref, Schema } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 * import { TestClock } from "effect/testing"
 *
 * const Order = Schema.Struct({ amount: Schema.FiniteFromString })
 *
 * it.effect("adds up", () =>
 *   Effect.gen(function*() {
 *     const sum = yield* Ref.make(0)
 *     yield* Effect.forkChild(StreamClient.run(
 *       StreamMessages.process(Order, ({ value }) => Ref.update(sum, (n) => n + value.amount))
 *     ))
 *     yield* StreamClient.announce("orders:eu", {})
 *     yield* Redis.use((redis) => redis.send("XADD", "orders:eu", "*", "amount", "42"))
 *     yield* TestClock.adjust("5 seconds")
 *     assert.strictEqual(yield* Ref.get(sum), 42)
 *   }).pipe(Effect.provide(TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders" }))))
 * ```
 *
 * @since 0.1.0
 */
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import type { StreamStore } from "@effect-simba/core/streams/StreamStore"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Layer from "effect/Layer"
import * as FakeRedis from "../FakeRedis.ts"
import type { Redis } from "../internal/client/effectRedis.ts"

type StoreLayer<E> = Layer.Layer<StreamStore, E, Redis | Subscriber>

/**
 * Provides `StreamClient` for one simulated process on a fake Redis, and `Redis`, with which tests can add messages.
 *
 * **When to use**
 *
 * Build it several times with different names to test how consumers join, leave and die.
 *
 * **Details**
 *
 * Pass `RedisStreams.layerStore` from `@effect-simba/redis/streams` as `store`. `processName` defaults to `name`.
 *
 * **Gotchas**
 *
 * The clock stops when the test ends, so nothing can time out any more. Heal links that are still cut, because commands
 * on them would never time out. Set `gracePeriod` to 0 if revoked handlers do not end, because the client would wait
 * for them forever.
 *
 * **Example** (Cutting off one of two consumers)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
 * import { TestStreams } from "@effect-simba/testkit/streams"
 * import { Context, Effect, Layer } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const processOf = (name: string) =>
 *   Layer.build(TestStreams.layerClient(RedisStreams.layerStore, { service: "orders", name, gracePeriod: 0 })).pipe(
 *     Effect.map(Context.get(StreamClient.StreamClient))
 *   )
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const [a, b] = yield* Effect.all([processOf("a"), processOf("b")])
 *   yield* a.announce("orders:eu")
 *   yield* Effect.forkChild(a.run(Effect.never))
 *   yield* Effect.forkChild(b.run(Effect.never))
 *   yield* TestClock.adjust("1 second")
 *   const link = yield* FakeNetwork.link("a")
 *   yield* link.partition()
 *   yield* TestClock.adjust("5 seconds")
 *   yield* link.heal() // so that it can leave at the end
 *   return yield* b.owned // the data streams of `a`
 * })).pipe(Effect.provide(FakeRedis.layer()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = <E>(
  store: StoreLayer<E>,
  options: StreamClient.Options & FakeRedis.ClientOptions
): Layer.Layer<StreamClient.StreamClient | Redis, E | BackendError | InvalidConfig, FakeRedis.FakeRedis> =>
  StreamClient.layer({ ...options, processName: options.processName ?? options.name }).pipe(
    Layer.provide(store),
    Layer.provideMerge(FakeRedis.layerClient(options))
  )

/**
 * Provides `StreamClient` on a fake Redis, with the production scripts, codecs and layers. Provides `Redis` and
 * `FakeRedis` too.
 *
 * **Details**
 *
 * Pass `RedisStreams.layerStore` from `@effect-simba/redis/streams` as `store`. Use `Redis` to add messages, and
 * `FakeRedis` to inspect the server or make it fail.
 *
 * **Example** (The production store, in memory)
 *
 * ```ts
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { TestStreams } from "@effect-simba/testkit/streams"
 *
 * const OrdersTest = TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders", capacity: 8 })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFakeRedis = <E>(
  store: StoreLayer<E>,
  options: StreamClient.Options & FakeRedis.ClientOptions & FakeRedis.Options
): Layer.Layer<StreamClient.StreamClient | Redis | FakeRedis.FakeRedis, E | BackendError | InvalidConfig> =>
  layerClient(store, options).pipe(Layer.provideMerge(FakeRedis.layer(options)))
