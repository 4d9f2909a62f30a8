/**
 * Mutexes for tests: the production scripts and layers, on a fake Redis under `TestClock`.
 *
 * If your code uses only `Mutex`, `Mutex.layerMemory` is enough.
 *
 * **Example** (Testing a service that holds a mutex)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { TestMutex } from "@effect-simba/testkit"
 * import { Effect, Fiber } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * it.effect("the second waits for the first", () =>
 *   Effect.gen(function*() {
 *     const work = Effect.sleep("1 minute").pipe(Mutex.withLock("report"))
 *     const both = yield* Effect.forkChild(Effect.all([work, work], { concurrency: "unbounded" }))
 *     yield* TestClock.adjust("119 seconds")
 *     assert.isUndefined(both.pollUnsafe())
 *     yield* TestClock.adjust("1 second")
 *     yield* Fiber.join(both)
 *   }).pipe(Effect.provide(TestMutex.layerFakeRedis(RedisMutex.layerStore))))
 * ```
 *
 * @since 0.1.0
 */
import * as Mutex from "@effect-simba/core/Mutex"
import type * as MutexStore from "@effect-simba/core/MutexStore"
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FakeRedis from "./FakeRedis.ts"
import type { Redis } from "./internal/client/effectRedis.ts"
import * as notedMutex from "./internal/simulation/notedMutex.ts"
import type { Client } from "./Simulation.ts"

/** The services required by hooks in the options. They must not become `any` when the layer is merged with others. */
type HookServices<R> = [R] extends [infer Services] ? Services : never

type StoreLayer<E> = Layer.Layer<MutexStore.MutexStore, E, Redis | Subscriber>

/**
 * Provides `Mutex` and `Redis` for one simulated process on a fake Redis.
 *
 * **When to use**
 *
 * Build it several times with different names to test how processes interact.
 *
 * **Details**
 *
 * Pass `RedisMutex.layerStore` from `@effect-simba/redis` as `store`.
 *
 * **Example** (Two processes)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { FakeRedis, TestMutex } from "@effect-simba/testkit"
 * import { Context, Effect, Layer } from "effect"
 *
 * const processOf = (name: string) =>
 *   Effect.map(Layer.build(TestMutex.layerClient(RedisMutex.layerStore, { name })), Context.get(Mutex.Mutex))
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const [a, b] = yield* Effect.all([processOf("a"), processOf("b")])
 *   yield* a.acquire("m")
 *   return yield* b.acquireIfAvailable("m") // None
 * })).pipe(Effect.provide(FakeRedis.layer()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = <E, R = never>(
  store: StoreLayer<E>,
  options?: Mutex.Options<R> & FakeRedis.ClientOptions
): Layer.Layer<Mutex.Mutex | Redis, E | BackendError | InvalidConfig, FakeRedis.FakeRedis | HookServices<R>> =>
  Mutex.layer({ ...options, processName: options?.processName ?? options?.name }).pipe(
    Layer.provide(store),
    Layer.provideMerge(FakeRedis.layerClient(options))
  )

/**
 * Provides `Mutex` on a fake Redis, with the production scripts, codecs and layers. Provides `Redis` and `FakeRedis`
 * too.
 *
 * **Details**
 *
 * Pass `RedisMutex.layerStore` from `@effect-simba/redis` as `store`. Use `FakeRedis` to inspect the server or make it
 * fail.
 *
 * **Example** (Testing a service that fences its writes)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Mutex } from "@effect-simba/core"
 * import { RedisFence, RedisMutex } from "@effect-simba/redis"
 * import { FakeRedis, TestMutex } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * it.effect("writes the report", () =>
 *   Effect.gen(function*() {
 *     yield* Mutex.withLock("report")((lease) => RedisFence.set(lease, "report:latest", "42"))
 *     const server = yield* FakeRedis.FakeRedis
 *     assert.deepStrictEqual(yield* server.dump("report:latest"), { type: "string", value: "42" })
 *   }).pipe(Effect.provide(TestMutex.layerFakeRedis(RedisMutex.layerStore))))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFakeRedis = <E, R = never>(
  store: StoreLayer<E>,
  options?: Mutex.Options<R> & FakeRedis.ClientOptions & FakeRedis.Options
): Layer.Layer<Mutex.Mutex | Redis | FakeRedis.FakeRedis, E | BackendError | InvalidConfig, HookServices<R>> =>
  layerClient(store, options).pipe(Layer.provideMerge(FakeRedis.layer(options)))

/**
 * Wraps a `Mutex` to note what a simulated program does, for the checkers of a `Simulation`.
 *
 * **Details**
 *
 * It notes all grants, waits in `acquire` and `withLock`, and work in `withLock`, `withLockIfAvailable` and
 * `whileLeader`, including finalizers. The program under test does not have to call `note`.
 *
 * **Example** (Simulating an unchanged program)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { type Simulation, TestMutex } from "@effect-simba/testkit"
 * import { Effect, Layer } from "effect"
 *
 * const simulated = <A, E>(program: Effect.Effect<A, E, Mutex.Mutex>, store: Layer.Layer<MutexStore.MutexStore>) =>
 *   (client: Simulation.Client) =>
 *     Effect.provide(program, TestMutex.layerNoted(client).pipe(Layer.provide(Mutex.layer()), Layer.provide(store)))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerNoted = (client: Client): Layer.Layer<Mutex.Mutex, never, Mutex.Mutex> =>
  Layer.effect(Mutex.Mutex, Effect.map(Mutex.Mutex, (mutex) => notedMutex.make(mutex, client)))
