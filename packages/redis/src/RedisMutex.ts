/**
 * Mutexes on Redis. They open their own connection or use the application's `Redis` service.
 *
 * @since 0.1.0
 */
import * as Mutex from "@effect-simba/core/Mutex"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import type { MutexStore } from "@effect-simba/core/MutexStore"
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Redis } from "./internal/client/effectRedis.ts"
import { within } from "./internal/client/ioredis/options.ts"
import { complete } from "./internal/mutex/environment.ts"
import * as store from "./internal/mutex/store.ts"
import * as IoRedis from "./IoRedis.ts"

/**
 * Options for the mutexes and their connection.
 *
 * **Details**
 *
 * `commandTimeout` applies to both the mutexes and the connection, unless `redis` sets its own.
 *
 * **Example** (Mutexes and their connection)
 *
 * ```ts
 * import { RedisMutex } from "@effect-simba/redis"
 *
 * const options: RedisMutex.Options = {
 *   ttl: "5 seconds",
 *   processName: "billing-1",
 *   redis: { url: "rediss://locks.example.com:6380" }
 * }
 *
 * const MutexLive = RedisMutex.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<R = never> extends Mutex.Options<R> {
  /** Options for the connection, as for `IoRedis.layer`. */
  readonly redis?: IoRedis.Options | undefined
}

/**
 * The services that the hook requires. Without this conditional type, they would become `any` when the layer is merged
 * with others.
 */
type HookServices<R> = [R] extends [infer Services] ? Services : never

/**
 * Provides `Mutex` on the Redis server at `redis.url` (default: `redis://localhost:6379`), together with the connection
 * to that server.
 *
 * **Details**
 *
 * The application can use the same connection: through `Redis` for commands and for Effect modules that build on it,
 * and through `IoRedis` for health checks. Data streams can share it through `RedisStreams.layerRedis`.
 *
 * **Example** (An application)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.log("only one process runs this").pipe(Mutex.withLock("report"))
 *
 * NodeRuntime.runMain(Effect.provide(program, RedisMutex.layer({ redis: { url: "redis://localhost:6379" } })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  options?: Options<R>
): Layer.Layer<Mutex.Mutex | IoRedis.Provided, BackendError | InvalidConfig, HookServices<R>> =>
  // Validate the options first, to report a mistake even if the server is down
  Layer.unwrap(Effect.as(
    MutexConfig.make(options),
    layerRedis(options).pipe(Layer.provideMerge(within(options, IoRedis.layer)))
  ))

/**
 * Provides `Mutex` using the current `Redis`.
 *
 * **When to use**
 *
 * Use it if the application already has a connection, for example from `IoRedis.layerClient`, `IoRedis.layerCluster`,
 * or another provider of Effect's `Redis` service.
 *
 * **Gotchas**
 *
 * Most providers other than `IoRedis` do not provide a `Subscriber`. Each channel then needs a separate subscription
 * through the provider. Waiters poll every two seconds, because the provider does not report reconnects.
 *
 * **Example** (Mutexes and data streams on one `IoRedis` layer)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Layer } from "effect"
 *
 * const Live = Layer.mergeAll(RedisMutex.layerRedis(), RedisStreams.layerRedis({ service: "orders" })).pipe(
 *   Layer.provideMerge(IoRedis.layer({ url: "redis://localhost:6379" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRedis = <R = never>(
  options?: Mutex.Options<R>
): Layer.Layer<Mutex.Mutex, BackendError | InvalidConfig, Redis | HookServices<R>> =>
  Layer.provide(Mutex.layer(options), layerStore)

/**
 * Provides `MutexStore` using the current `Redis`.
 *
 * **Details**
 *
 * Fails with `BackendError` if Redis is unreachable or does not reply for 30 seconds. Needs Redis 6.2 or newer.
 *
 * **Example** (Testing a custom provider with the contract suite for stores)
 *
 * ```ts
 * import { RedisMutex } from "@effect-simba/redis"
 * import { Layer } from "effect"
 * import type { Redis } from "effect/persistence/Redis"
 *
 * const storeOn = <E>(redis: Layer.Layer<Redis, E>) => Layer.provide(RedisMutex.layerStore, redis)
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStore: Layer.Layer<MutexStore, BackendError, Redis> = store.layer

/**
 * Like `layer`, with options from `Config`.
 *
 * **Example** (Options whose names the application chooses)
 *
 * ```ts
 * import { RedisMutex } from "@effect-simba/redis"
 * import { Config } from "effect"
 *
 * const MutexLive = RedisMutex.layerConfig({
 *   ttl: Config.Duration("LOCK_TTL"),
 *   redis: { url: Config.Redacted("LOCK_REDIS") }
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Mutex.Mutex | IoRedis.Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))

const switchedOn = (name: string) =>
  Effect.flatMap(
    Config.Boolean(name).pipe(Config.withDefault(true)),
    (on) =>
      on ? Effect.void : Effect.fail(
        new InvalidConfig({
          option: name,
          problem: "it is false, and a mutex that silently excludes nobody is worse than none: " +
            "enable it, or provide Mutex.layerMemory yourself if there is only one process"
        })
      )
  )

/**
 * Like `layer`, with options from the environment. Options in code take precedence.
 *
 * **Details**
 *
 * Reads `SIMBA_REDIS_TTL`, `SIMBA_REDIS_TRANSITION` and the variables that `IoRedis.layerFromEnv` reads. The
 * `processName` comes from `POD_NAME` or, if that is not set, from `POD_IP`. The layer fails to build if
 * `SIMBA_ENABLED` or `SIMBA_REDIS_ENABLED` is false.
 *
 * **Example** (An application configured by its operators)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.log("only one process runs this").pipe(Mutex.withLock("report"))
 *
 * NodeRuntime.runMain(Effect.provide(program, RedisMutex.layerFromEnv({ transition: "10 seconds" })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = <R = never>(
  options?: Options<R>
): Layer.Layer<Mutex.Mutex | IoRedis.Provided, BackendError | InvalidConfig | Config.ConfigError, HookServices<R>> =>
  Layer.unwrap(Effect.gen(function*() {
    yield* switchedOn("SIMBA_ENABLED")
    yield* switchedOn("SIMBA_REDIS_ENABLED")
    const completed = yield* complete(options ?? {})
    yield* MutexConfig.make(completed)
    return layerRedis(completed).pipe(Layer.provideMerge(within(options, IoRedis.layerFromEnv)))
  }))
