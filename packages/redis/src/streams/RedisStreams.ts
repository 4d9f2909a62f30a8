/**
 * Data streams on Redis. They open their own connection or use the application's `Redis` service.
 *
 * @since 0.1.0
 */
import type { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import type { StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Redis } from "../internal/client/effectRedis.ts"
import { within } from "../internal/client/ioredis/options.ts"
import * as IoRedis from "../IoRedis.ts"
import { complete } from "./internal/environment.ts"
import * as store from "./internal/store.ts"

/**
 * Options for the client and its connection.
 *
 * **Details**
 *
 * `commandTimeout` applies to both the client and the connection, unless `redis` sets its own.
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
export interface Options extends StreamClient.Options {
  /** Options for the connection, as for `IoRedis.layer`. */
  readonly redis?: IoRedis.Options | undefined
}

/**
 * Provides `StreamClient` on the Redis server at `redis.url` (default: `redis://localhost:6379`), together with the
 * connection to that server.
 *
 * **Details**
 *
 * In addition to `IoRedis`'s connections, a consumer opens one connection to wait for announcements, and one for
 * every 128 data streams whose handlers are waiting for messages.
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
 * // Shuts down gracefully on a signal, unlike Effect.runPromise
 * NodeRuntime.runMain(
 *   Effect.provide(program, RedisStreams.layer({ service: "orders", redis: { url: "redis://localhost:6379" } }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<StreamClient.StreamClient | IoRedis.Provided, BackendError | InvalidConfig> =>
  layerRedis(options).pipe(Layer.provideMerge(within(options, IoRedis.layer)))

/**
 * Provides `StreamClient` using the current `Redis`.
 *
 * **When to use**
 *
 * Use it if the application already has a connection, for example one shared with mutexes, a connection to a Cluster,
 * or another provider of Effect's `Redis` service.
 *
 * **Gotchas**
 *
 * On a Cluster, the names of the service and its data streams must contain the same hash tag, such as `{orders}`. If
 * the service's name does not contain one, the layer fails with `InvalidConfig`.
 *
 * **Example** (A client on a Cluster)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Layer } from "effect"
 *
 * const OrdersLive = RedisStreams.layerRedis({ service: "{orders}" }).pipe(
 *   Layer.provide(IoRedis.layerCluster({ nodes: [{ host: "localhost", port: 7000 }] }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRedis = (
  options: StreamClient.Options
): Layer.Layer<StreamClient.StreamClient, BackendError | InvalidConfig, Redis> =>
  Layer.provide(StreamClient.layer(options), layerStore)

/**
 * Provides `StreamStore` using the current `Redis`.
 *
 * **Details**
 *
 * Fails with `BackendError` if Redis is unreachable or does not reply for 30 seconds. Needs Redis 6.2 or newer.
 *
 * **Example** (The store on a custom provider)
 *
 * ```ts
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Layer } from "effect"
 * import type { Redis } from "effect/persistence/Redis"
 *
 * const storeOn = <E>(redis: Layer.Layer<Redis, E>) => Layer.provide(RedisStreams.layerStore, redis)
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStore: Layer.Layer<StreamStore, BackendError, Redis> = store.layer

/**
 * Like `layer`, with options from `Config`.
 *
 * **Example** (Options whose names the application chooses)
 *
 * ```ts
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Config } from "effect"
 *
 * const OrdersLive = RedisStreams.layerConfig({
 *   service: Config.succeed("orders"),
 *   capacity: Config.Int("ORDERS_CAPACITY"),
 *   redis: { url: Config.Redacted("ORDERS_REDIS") }
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<StreamClient.StreamClient | IoRedis.Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))

/**
 * Like `layer`, with options from the environment. Options in code take precedence.
 *
 * **Details**
 *
 * Reads the variables that `IoRedis.layerFromEnv` reads. The `processName` comes from `POD_NAME` or, if that is not
 * set, from `POD_IP`.
 *
 * **Example** (An application configured by its operators)
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
): Layer.Layer<StreamClient.StreamClient | IoRedis.Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.map(complete(options), layerRedis)).pipe(
    Layer.provideMerge(within(options, IoRedis.layerFromEnv))
  )
