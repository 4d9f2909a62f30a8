/**
 * Mutexes on Redis in one layer, for applications that need nothing else of Redis.
 *
 * @since 0.1.0
 */
import * as Mutex from "@effect-simba/core/Mutex"
import type * as MutexConfig from "@effect-simba/core/MutexConfig"
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { within } from "./internal/client/ioredis/options.ts"
import * as IoRedis from "./IoRedis.ts"
import * as RedisMutexStore from "./RedisMutexStore.ts"

/**
 * Options of the mutexes and of their connection.
 *
 * **Details**
 *
 * `commandTimeout` is for both, unless `redis` has its own.
 *
 * **Example** (Mutexes and their connection)
 *
 * ```ts
 * import { RedisMutex } from "@effect-simba/redis"
 *
 * const options: RedisMutex.Options = {
 *   ttl: "5 seconds",
 *   contender: "billing-1",
 *   redis: { url: "rediss://locks.example.com:6380" }
 * }
 *
 * const MutexLive = RedisMutex.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options extends MutexConfig.Options {
  /** The connection. Default: as for `IoRedis.layer`. */
  readonly redis?: IoRedis.Options | undefined
}

/**
 * Provides `Mutex` on the Redis server at `redis.url`, by default `redis://localhost:6379`.
 *
 * **Example** (An application)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.log("only one of us").pipe(Mutex.withLock("report"))
 *
 * NodeRuntime.runMain(Effect.provide(program, RedisMutex.layer({ redis: { url: "redis://localhost:6379" } })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Mutex.Mutex, BackendError | InvalidConfig> =>
  Mutex.layer(options).pipe(
    Layer.provide(RedisMutexStore.layer),
    Layer.provide(within(options, IoRedis.layer))
  )

const switchedOn = (name: string) =>
  Effect.flatMap(
    Config.Boolean(name).pipe(Config.withDefault(true)),
    (on) =>
      on ? Effect.void : Effect.fail(
        new InvalidConfig({
          option: name,
          problem: "it is off, and a mutex that silently excludes nobody is worse than none: " +
            "switch it on, or provide MutexStore.layerMemory yourself where one process is all there is"
        })
      )
  )

/**
 * Like `layer`, with options from the environment, unless they are given.
 *
 * **Details**
 *
 * Reads `SIMBA_REDIS_TTL`, `SIMBA_REDIS_TRANSITION`, and the variables of `IoRedis.layerFromEnv`. Refuses to build when
 * `SIMBA_ENABLED` or `SIMBA_REDIS_ENABLED` is false.
 *
 * **Example** (An application that operators configure)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { RedisMutex } from "@effect-simba/redis"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.log("only one of us").pipe(Mutex.withLock("report"))
 *
 * NodeRuntime.runMain(Effect.provide(program, RedisMutex.layerFromEnv({ transition: "10 seconds" })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options?: Options
): Layer.Layer<Mutex.Mutex, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.as(
    Effect.andThen(switchedOn("SIMBA_ENABLED"), switchedOn("SIMBA_REDIS_ENABLED")),
    Mutex.layerFromEnv(options).pipe(
      Layer.provide(RedisMutexStore.layer),
      Layer.provide(within(options, IoRedis.layerFromEnv))
    )
  ))
