/**
 * Implements Effect's `Redis` service and this library's `Subscriber` with ioredis.
 *
 * It opens one connection for commands and, on the first subscription, a second one shared by all subscriptions. Each
 * `Redis.reserve` opens another connection. Behind Sentinel, the layer also connects to each Sentinel to detect
 * failovers. Effect modules that use `Redis`, such as `RateLimiter` and `PersistedQueue`, can use this layer too.
 *
 * @since 0.1.0
 */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Metric from "effect/Metric"
import type * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { Cluster, ClusterNode, Redis as Client } from "ioredis"
import { CommandSink } from "./internal/client/commandSink.ts"
import * as Redis from "./internal/client/effectRedis.ts"
import { fromRedis } from "./internal/client/errors.ts"
import type { ClusterSettings } from "./internal/client/ioredis/connection.ts"
import * as down from "./internal/client/ioredis/connectionsDown.ts"
import type { Driver } from "./internal/client/ioredis/driver.ts"
import type { ClientOptions } from "./internal/client/ioredis/forcedSettings.ts"
import { defined, driverOptions, environmentBeside } from "./internal/client/ioredis/options.ts"
import { onWallClock } from "./internal/client/ioredis/wallClock.ts"
import { RedisTopology } from "./RedisTopology.ts"

/**
 * Options for a connection to one server.
 *
 * **Example** (A server behind Sentinel)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 *
 * const options: IoRedis.Options = {
 *   client: { sentinels: [{ host: "sentinel-1", port: 26379 }], name: "main" },
 *   commandTimeout: "500 millis"
 * }
 *
 * const RedisLive = IoRedis.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * The server's URL. It starts with `redis://`, or with `rediss://` for TLS, and may contain a user, a password and a
   * database number. Default: `redis://localhost:6379`.
   */
  readonly url?: string | Redacted.Redacted | undefined
  /**
   * Further ioredis options, for example for TLS or Sentinel. The layer overrides options that affect commands during
   * an outage, and refuses `keyPrefix`.
   */
  readonly client?: ClientOptions | undefined
  /**
   * The timeout for a command. A connection that stays silent for twice this time is replaced. Keep the timeout well
   * below the transition of your mutexes. Default: 1 second.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /** The timeout for one connection attempt. Default: 2 seconds. */
  readonly connectTimeout?: Duration.Input | undefined
  /**
   * Limits for the connection pool behind `Redis.reserve`, which opens connections on demand. A data-stream consumer
   * uses one, plus one for every 128 data streams whose handlers are waiting. `maxConnections` defaults to 256.
   */
  readonly pool?: Redis.PoolOptions | undefined
  /**
   * Whether to check the server when the layer is built. The check refuses an unusable server. It logs a warning for
   * each setting that may break a lease, and an Info line if the append-only file is disabled. A data-stream client
   * also warns if keyspace events are disabled. Default: `true`.
   */
  readonly serverChecks?: boolean | undefined
}

/**
 * Options for the connections to a Redis Cluster.
 *
 * **Example** (A Cluster whose nodes announce internal addresses)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 *
 * const options: IoRedis.ClusterOptions = {
 *   nodes: [{ host: "localhost", port: 7000 }],
 *   cluster: { natMap: { "10.0.0.1:6379": { host: "localhost", port: 7000 } } }
 * }
 *
 * const RedisLive = IoRedis.layerCluster(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface ClusterOptions extends Omit<Options, "url"> {
  /**
   * One or more nodes, from which the layer discovers the others. Each is a port, `host:port`, a URL, or an object. The
   * user, password and TLS setting in a URL apply to all nodes, unless `client` sets them.
   */
  readonly nodes: ReadonlyArray<ClusterNode>
  /**
   * Further ioredis options for the Cluster, such as `natMap`. `client` configures the connection to each node. The
   * layer refuses `scaleReads`, because replicas may return stale data.
   */
  readonly cluster?: ClusterSettings["cluster"] | undefined
}

/**
 * The ioredis client behind the `Redis` service, for commands that the service does not support.
 *
 * **Example** (Checking the connection)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 * import { Effect } from "effect"
 *
 * const isReady = Effect.map(IoRedis.IoRedis, ({ client }) => client.status === "ready")
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class IoRedis extends Context.Service<IoRedis, {
  readonly client: Client | Cluster
  /** Fails while the server does not reply to commands or the subscriber cannot receive messages. */
  readonly health: Effect.Effect<void, BackendError>
}>()("@effect-simba/redis/IoRedis") {}

/**
 * Pings every server. Fails if a server does not reply or if the subscriber is disconnected.
 *
 * **When to use**
 *
 * Use it in readiness probes. A process whose subscriber is down can still acquire mutexes, but each of its turns may
 * delay the other contenders by up to a full lease.
 *
 * **Example** (A readiness probe)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 * import { Effect } from "effect"
 *
 * const status = IoRedis.health.pipe(
 *   Effect.as(204),
 *   Effect.catch((error) => Effect.as(Effect.logWarning(error.message), 503))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const health: Effect.Effect<void, BackendError, IoRedis> = Effect.flatMap(IoRedis, ({ health }) => health)

/**
 * The metric `simba_redis_connections_down`: the number of connections that are currently lost, by `role`.
 *
 * @category metrics
 * @since 0.1.0
 */
export const connectionsDown: { readonly [Role in "commands" | "subscriber"]: Metric.Gauge<number> } =
  down.connectionsDown

const provide = Effect.fnUntraced(function*(driver: Driver) {
  const { subscriptions } = driver
  const redis = yield* Redis.make({
    send: driver.send,
    subscribe: (channel, onMessage) =>
      subscriptions.listen(channel, (message) => {
        if (message !== undefined) onMessage({ channel, message })
      }).pipe(
        Effect.mapError((error) => Redis.redisError(error.cause)),
        Effect.as(Effect.never)
      ),
    connect: Effect.gen(function*() {
      const scope = yield* Scope.make()
      const send = yield* driver.reserved.pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
      return { send, close: Scope.close(scope, Exit.void) }
    }),
    pool: driver.pool
  })
  const health = Effect.suspend(() => {
    const problem = subscriptions.problem()
    return problem === undefined ? Effect.mapError(driver.ping, fromRedis("ping")) : Effect.fail(problem)
  })
  return Context.make(Redis.Redis, { ...redis, reserve: onWallClock(redis.reserve) }).pipe(
    Context.add(Subscriber, {
      subscribe: subscriptions.subscribe,
      listen: subscriptions.listen,
      countable: true,
      bound: undefined
    }),
    Context.add(IoRedis, { client: driver.client, health }),
    Context.add(CommandSink, driver.sink),
    Context.add(RedisTopology, driver.topology)
  )
})

/** Loads ioredis when a layer needs it, because it is an optional peer dependency. */
const loading = <D>(load: () => Promise<D>) =>
  Effect.tryPromise({
    try: load,
    catch: (cause) =>
      new InvalidConfig({ option: "ioredis", problem: `it cannot be loaded: install ioredis 6 (${String(cause)})` })
  })

/** Connections use real time, even under `TestClock`. */
const layerOf = <D, E>(
  load: () => Promise<D>,
  open: (driver: D) => Effect.Effect<Driver, E, Scope.Scope>
) => Layer.effectContext(onWallClock(Effect.flatMap(Effect.flatMap(loading(load), open), provide)))

const loadDriver = () => import("./internal/client/ioredis/driver.ts")

/**
 * The services provided by the layers in this module.
 *
 * **Details**
 *
 * The stores in this package send commands through `CommandSink`. Unlike `Redis`, it does not need a fiber for each
 * command.
 *
 * @category models
 * @since 0.1.0
 */
export type Provided = Redis.Redis | Subscriber | IoRedis | CommandSink

/**
 * Provides `Redis`, `Subscriber` and `IoRedis` for one Redis server.
 *
 * **Details**
 *
 * Pass `client: { sentinels, name }` for a server behind Sentinel. The layer fails with `BackendError` if it cannot
 * connect. If a connection is lost later, the layer reconnects in the background. Meanwhile, commands fail immediately
 * with a retryable error.
 *
 * **Example** (Mutexes on a Redis server)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = RedisMutex.layerRedis({ ttl: "10 seconds" }).pipe(
 *   Layer.provide(IoRedis.layer({ url: "redis://localhost:6379" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options = {}
): Layer.Layer<Provided, BackendError | InvalidConfig> => layerOf(loadDriver, ({ single }) => single(options))

/**
 * Provides `Redis`, `Subscriber` and `IoRedis` for a Redis Cluster.
 *
 * **Details**
 *
 * Commands follow MOVED and ASK redirections. A command fails if its connection is lost before the reply. Scripts are
 * loaded on every reachable primary. `KEYS` and `DBSIZE` query every primary. The first subscription opens a connection
 * to each primary, because a script counts only the subscribers on its own node. These connections follow topology
 * changes.
 *
 * **Gotchas**
 *
 * Effect's `RateLimiter` and `PersistedQueue` do not work on a Cluster, because their scripts use keys from several
 * slots.
 *
 * **Example** (Mutexes on a Cluster)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = RedisMutex.layerRedis().pipe(
 *   Layer.provide(IoRedis.layerCluster({ nodes: [{ host: "localhost", port: 7000 }] }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCluster = (
  options: ClusterOptions
): Layer.Layer<Provided, BackendError | InvalidConfig> =>
  layerOf(() => import("./internal/client/ioredis/clusterDriver.ts"), ({ cluster }) => cluster(options))

/**
 * Provides `Redis`, `Subscriber` and `IoRedis` using an ioredis client that the application already has.
 *
 * **Details**
 *
 * Commands share the client's connection, which the layer does not close. Subscriptions and `Redis.reserve` open
 * further connections with the client's options, except for its timeouts. The layer connects a `lazyConnect` client
 * that is not connected yet. As with `layer`, the client reconnects after each failover: when a Sentinel reports the
 * failover, or when a reply to this layer shows that the server has become a replica.
 *
 * `commandTimeout` applies to this layer's commands. During an outage, they fail immediately and are not sent later,
 * even if the client is configured to queue its own commands.
 *
 * **Gotchas**
 *
 * The layer refuses a client that has a `keyPrefix`, changes the shape of replies (`stringNumbers`, `replyMapping`),
 * reads from replicas (`scaleReads`), subscribes or monitors, or is closed. Listen for your client's `error` event,
 * because otherwise ioredis prints errors. Do not send blocking commands on the shared connection: they delay renewals.
 *
 * **Example** (Reusing the application's client)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { Layer } from "effect"
 * import { Redis } from "ioredis"
 *
 * const client = new Redis("redis://localhost:6379")
 *
 * const MutexLive = RedisMutex.layerRedis().pipe(
 *   Layer.provide(IoRedis.layerClient(client))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = (
  client: Client | Cluster,
  options: Pick<Options, "commandTimeout" | "connectTimeout" | "pool" | "serverChecks"> = {}
): Layer.Layer<Provided, BackendError | InvalidConfig> =>
  layerOf(() => import("./internal/client/ioredis/clientDriver.ts"), ({ ofClient }) => ofClient(client, options))

/**
 * Like `layer`, with options from `Config`.
 *
 * **Example** (One layer from `Config` for mutexes and data streams)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Config, Layer } from "effect"
 *
 * const Live = Layer.mergeAll(RedisMutex.layerRedis(), RedisStreams.layerRedis({ service: "orders" })).pipe(
 *   Layer.provideMerge(IoRedis.layerConfig({ url: Config.Redacted("ORDERS_REDIS") }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layer))

/**
 * Like `layerCluster`, with options from `Config`.
 *
 * **Example** (The nodes from one variable)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 * import { Config } from "effect"
 *
 * const RedisLive = IoRedis.layerClusterConfig({
 *   nodes: Config.map(Config.String("REDIS_NODES"), (text) => text.split(","))
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClusterConfig = (
  options: Config.Wrap<ClusterOptions>
): Layer.Layer<Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.unwrap(Effect.map(Config.unwrap(options), layerCluster))

/**
 * Like `layer`, with options from the environment. Options in code take precedence.
 *
 * **Details**
 *
 * Reads `REDIS_URL` (default `redis://localhost:6379`), `REDIS_USERNAME`, `REDIS_PASSWORD`, `REDIS_DB`,
 * `REDIS_SENTINEL_PASSWORD`, `REDIS_COMMAND_TIMEOUT` and `REDIS_CONNECT_TIMEOUT`.
 *
 * **Example** (An address from the environment, and a custom timeout)
 *
 * ```ts
 * import { IoRedis, RedisMutex } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = RedisMutex.layerRedis().pipe(
 *   Layer.provide(IoRedis.layerFromEnv({ commandTimeout: "500 millis" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options: Options = {}
): Layer.Layer<Provided, BackendError | InvalidConfig | Config.ConfigError> =>
  layerOf(loadDriver, ({ single }) =>
    Effect.gen(function*() {
      const environment = yield* environmentBeside(options)
      const client = { ...environment.client, ...yield* driverOptions(options.client) }
      return yield* single({ ...environment, ...defined(options), client })
    }))
