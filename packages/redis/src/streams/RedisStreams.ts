/**
 * Data streams on Redis in one layer, for applications that need nothing else of Redis.
 *
 * @since 0.1.0
 */
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import type * as StreamConfig from "@effect-simba/core/streams/StreamConfig"
import type * as Config from "effect/Config"
import * as Layer from "effect/Layer"
import { within } from "../internal/client/ioredis/options.ts"
import * as IoRedis from "../IoRedis.ts"
import * as RedisStreamStore from "./RedisStreamStore.ts"

/**
 * Options of the client and of its connection.
 *
 * **Details**
 *
 * `commandTimeout` is for both, unless `redis` has its own.
 *
 * **Example** (A client and its connection)
 *
 * ```ts
 * import { RedisStreams } from "@effect-simba/redis/streams"
 *
 * const options: RedisStreams.Options = {
 *   service: "orders",
 *   capacity: 200,
 *   redis: { url: "rediss://streams.example.com:6380" }
 * }
 *
 * const StreamsLive = RedisStreams.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options extends StreamConfig.Options {
  /** The connection. Default: as for `IoRedis.layer`. */
  readonly redis?: IoRedis.Options | undefined
}

/**
 * Provides `StreamClient` on the Redis server at `redis.url`, by default `redis://localhost:6379`.
 *
 * **Details**
 *
 * Besides the connections of `IoRedis`, a consumer has one that waits for announcements, and one that waits for the
 * messages of all its data streams.
 *
 * **Example** (An application)
 *
 * ```ts
 * import { StreamClient, StreamLease } from "@effect-simba/core/streams"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = StreamClient.run(Effect.gen(function*() {
 *   const { stream } = yield* StreamLease.StreamLease
 *   yield* Effect.log(`${stream} is mine`)
 * }))
 *
 * // Leaves in order at a signal, which Effect.runPromise would not
 * NodeRuntime.runMain(
 *   Effect.provide(program, RedisStreams.layer({ service: "orders", redis: { url: "redis://localhost:6379" } }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<StreamClient.StreamClient, BackendError | InvalidConfig> =>
  StreamClient.layer(options).pipe(
    Layer.provide(RedisStreamStore.layer),
    Layer.provide(within(options, IoRedis.layer))
  )

/**
 * Like `layer`, with options from the environment, unless they are given.
 *
 * **Details**
 *
 * Reads the variables of `StreamClient.layerFromEnv` and `IoRedis.layerFromEnv`.
 *
 * **Example** (An application that operators configure)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = StreamClient.announce("orders:eu", { region: "eu" })
 *
 * NodeRuntime.runMain(Effect.provide(program, RedisStreams.layerFromEnv({ service: "orders" })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options: Options
): Layer.Layer<StreamClient.StreamClient, BackendError | InvalidConfig | Config.ConfigError> =>
  StreamClient.layerFromEnv(options).pipe(
    Layer.provide(RedisStreamStore.layer),
    Layer.provide(within(options, IoRedis.layerFromEnv))
  )
