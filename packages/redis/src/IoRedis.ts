/**
 * Effect's `Redis` service, and our `Subscriber`, on ioredis.
 *
 * It opens one connection for commands, and with the first subscription one for all subscriptions. Each
 * `Redis.reserve` has a connection of its own, and so has each Sentinel that is named, to learn of fail-overs.
 * Effect's own users of `Redis`, such as `RateLimiter` and `PersistedQueue`, run on it too.
 *
 * @since 0.1.0
 */
import type { BackendError } from "@effect-simba/core/SimbaError"
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import type { Cluster, ClusterNode, Redis as Client } from "ioredis"
import { CommandSink } from "./internal/client/commandSink.ts"
import * as Redis from "./internal/client/effectRedis.ts"
import { fromRedis } from "./internal/client/errors.ts"
import { withTimeouts } from "./internal/client/ioredis/commandTimeouts.ts"
import * as connection from "./internal/client/ioredis/connection.ts"
import * as switches from "./internal/client/ioredis/failover.ts"
import * as channels from "./internal/client/ioredis/subscriptions.ts"
import * as url from "./internal/client/ioredis/url.ts"
import { RedisTopology } from "./RedisTopology.ts"

/**
 * Options of a connection to one server.
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
  /** `redis://`, or `rediss://` for TLS, with user, password and database. Default: `redis://localhost:6379`. */
  readonly url?: string | Redacted.Redacted | undefined
  /**
   * Further ioredis options (TLS, Sentinel, names). This layer sets those that decide about commands during an outage, and
   * refuses `keyPrefix`.
   */
  readonly client?: connection.ClientOptions | undefined
  /**
   * How long a command may take before it has failed. A connection that is silent for twice as long is replaced. Keep it well
   * below the transition of your mutexes. Default: 1 second.
   */
  readonly commandTimeout?: Duration.Input | undefined
  /** How long one attempt to connect may take. Default: 2 seconds. */
  readonly connectTimeout?: Duration.Input | undefined
  /** Limits of the connections behind `Redis.reserve`. */
  readonly pool?: Redis.PoolOptions | undefined
}

/**
 * Options of connections to a Redis Cluster.
 *
 * **Example** (Nodes that know one another by other addresses)
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
  /** One or more nodes, from which the others are found. */
  readonly nodes: ReadonlyArray<ClusterNode>
  /** Further ioredis options for the Cluster, such as `natMap`. `client` is for the connection to each node. */
  readonly cluster?: connection.ClusterSettings["cluster"] | undefined
}

/**
 * The ioredis client behind the `Redis` service, for commands that the service lacks.
 *
 * **Example** (Whether the connection is up)
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
}>()("@effect-simba/redis/IoRedis") {}

const duration = (option: string, input: Duration.Input) => {
  const value = Duration.fromInput(input)
  return Option.isSome(value) && Duration.isFinite(value.value) && Duration.toMillis(value.value) >= 1
    ? Effect.succeed(value.value)
    : Effect.fail(new InvalidConfig({ option, problem: "it must be a finite duration of at least 1 millisecond" }))
}

const timeouts = Effect.fnUntraced(function*(options: Pick<Options, "commandTimeout" | "connectTimeout">) {
  return {
    commandTimeout: yield* duration("commandTimeout", options.commandTimeout ?? "1 second"),
    connectTimeout: yield* duration("connectTimeout", options.connectTimeout ?? "2 seconds")
  }
})

/** An option that is there, and undefined, counts as not given: it hides neither the environment nor the URL. */
const given = <A extends object>(options: A | undefined): Partial<A> =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<A>

/** Scripts name their channels themselves, and look for keys by pattern: ioredis would prefix neither. */
const driverOptions = <A extends object>(input: A | undefined): Effect.Effect<Partial<A>, InvalidConfig> => {
  const options = given(input)
  return "keyPrefix" in options && options.keyPrefix !== ""
    ? Effect.fail(
      new InvalidConfig({
        option: "keyPrefix",
        problem: "it is not supported, since channels would not have it: use another database, or other names"
      })
    )
    : Effect.succeed(options)
}

const partsOf = (text: Options["url"]) =>
  text === undefined ? Effect.succeed<url.Parts>({}) : url.read(Redacted.isRedacted(text) ? Redacted.value(text) : text)

/** What a URL that is given in code says, and what the environment says besides. A password belongs to its user. */
const besides = (environment: connection.ClientOptions | undefined, { db, password, username }: url.Parts) => {
  const { password: _, username: __, ...rest } = environment ?? {}
  return { ...(password === undefined ? environment : rest), ...given({ db, password, username }) }
}

/** What a topology brings: how to send, where to subscribe, how to open a connection for blocking commands. */
interface Driver {
  readonly client: Client | Cluster
  readonly send: Redis.Redis["Service"]["send"]
  readonly direct: CommandSink["send"]
  readonly subscriber: Effect.Effect<Client, Redis.RedisError, Scope.Scope>
  readonly reserved: Effect.Effect<Redis.Redis["Service"]["send"], Redis.RedisError, Scope.Scope>
  readonly pool: Redis.PoolOptions | undefined
  readonly topology: RedisTopology
}

const provide = Effect.fnUntraced(function*(driver: Driver) {
  const subscriptions = yield* channels.make(driver.subscriber)
  const redis = yield* Redis.make({
    send: driver.send,
    subscribe: (channel, onMessage) =>
      subscriptions.listen(channel, (message) => {
        if (message !== undefined) onMessage({ channel, message })
      }).pipe(
        Effect.mapError((error) => new Redis.RedisError({ cause: error.cause })),
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
  return Context.make(Redis.Redis, redis).pipe(
    Context.add(Subscriber, {
      subscribe: subscriptions.subscribe,
      listen: subscriptions.listen,
      countable: driver.topology._tag === "Single",
      bound: undefined
    }),
    Context.add(IoRedis, { client: driver.client }),
    Context.add(CommandSink, connection.commandSink(driver.client, driver.direct)),
    Context.add(RedisTopology, driver.topology)
  )
})

const make = Effect.fnUntraced(function*(options: Options = {}) {
  const server = yield* partsOf(options.url)
  const client = yield* driverOptions(options.client)
  if (client.db !== undefined && (!Number.isInteger(client.db) || client.db < 0)) {
    return yield* new InvalidConfig({ option: "db", problem: "it must be a whole number, and not below 0" })
  }
  const settings = { server, client, ...yield* timeouts(options) }
  const { follow, onReplica } = yield* switches.watch(settings)
  const open = (role: connection.Role) => follow(connection.open(role, { ...settings, onReplica }))
  const commands = yield* Effect.mapError(open("commands"), fromRedis("connect"))
  const direct = yield* withTimeouts(commands, settings.commandTimeout)
  return yield* provide({
    client: commands,
    send: connection.sendThrough(direct),
    direct,
    subscriber: open("subscriber"),
    reserved: Effect.map(open("reserved"), connection.send),
    pool: options.pool,
    topology: { _tag: "Single" }
  })
})

const makeCluster = Effect.fnUntraced(function*(options: ClusterOptions) {
  if (options.nodes.length === 0) {
    return yield* new InvalidConfig({ option: "nodes", problem: "name at least one node of the cluster" })
  }
  const settings = {
    nodes: options.nodes,
    client: yield* driverOptions(options.client),
    cluster: yield* driverOptions(options.cluster),
    ...yield* timeouts(options)
  }
  const client = yield* Effect.mapError(connection.openCluster("commands", settings), fromRedis("connect"))
  return yield* provide({
    client,
    send: connection.sendCluster(client),
    direct: connection.sendToCluster(client),
    subscriber: connection.openNode(client, settings),
    reserved: Effect.map(connection.openCluster("reserved", settings), connection.sendCluster),
    pool: options.pool,
    topology: {
      _tag: "Cluster",
      primaries: Effect.sync(() => client.nodes("master").map(connection.send))
    }
  })
})

/**
 * Provides `Redis`, `Subscriber` and `IoRedis` on one Redis server.
 *
 * **Details**
 *
 * Give `client: { sentinels, name }` for a server behind Sentinel. Fails with `BackendError` when it cannot connect. A
 * connection that is lost later is restored in the background; meanwhile commands fail at once with a retryable error.
 *
 * **Example** (Mutexes on a Redis server)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layer({ ttl: "10 seconds" }).pipe(
 *   Layer.provide(RedisMutexStore.layer),
 *   Layer.provide(IoRedis.layer({ url: "redis://localhost:6379" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options?: Options
): Layer.Layer<Redis.Redis | Subscriber | IoRedis, BackendError | InvalidConfig> => Layer.effectContext(make(options))

/**
 * Provides `Redis`, `Subscriber` and `IoRedis` on a Redis Cluster.
 *
 * **Details**
 *
 * Commands follow MOVED and ASK, and fail when the connection is lost before the answer. Scripts are loaded on every
 * primary in reach. The subscriber stays with one node, and moves to another when that node is gone.
 *
 * **Gotchas**
 *
 * Subscribers cannot be counted on a Cluster, so a waiter that died costs a confirm period at its turn.
 *
 * **Example** (Mutexes on a Cluster)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layer().pipe(
 *   Layer.provide(RedisMutexStore.layer),
 *   Layer.provide(IoRedis.layerCluster({ nodes: [{ host: "localhost", port: 7000 }] }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCluster = (
  options: ClusterOptions
): Layer.Layer<Redis.Redis | Subscriber | IoRedis, BackendError | InvalidConfig> =>
  Layer.effectContext(makeCluster(options))

/**
 * Reads the options of a connection from the environment.
 *
 * **Details**
 *
 * `REDIS_URL` (default `redis://localhost:6379`), `REDIS_USERNAME`, `REDIS_PASSWORD`, `REDIS_DB`,
 * `REDIS_COMMAND_TIMEOUT` and `REDIS_CONNECT_TIMEOUT`.
 *
 * **Example** (Another variable for the address)
 *
 * ```ts
 * import { IoRedis } from "@effect-simba/redis"
 * import { Config, Effect, Layer } from "effect"
 *
 * const RedisLive = Layer.unwrap(Effect.gen(function*() {
 *   const options = yield* IoRedis.config
 *   const url = yield* Config.Redacted("LOCKS_URL")
 *   return IoRedis.layer({ ...options, url })
 * }))
 * ```
 *
 * @category configuration
 * @since 0.1.0
 */
export const config: Config.Config<Options> = Config.flatMap(
  // Made when it is read, for the sake of programs that never do
  Config.succeed(undefined),
  () =>
    Config.all({
      url: Config.Redacted("REDIS_URL").pipe(Config.withDefault(Redacted.make("redis://localhost:6379"))),
      username: Config.option(Config.String("REDIS_USERNAME")),
      password: Config.option(Config.Redacted("REDIS_PASSWORD")),
      db: Config.option(Config.Int("REDIS_DB")),
      commandTimeout: Config.Duration("REDIS_COMMAND_TIMEOUT").pipe(Config.withDefault(Duration.seconds(1))),
      connectTimeout: Config.Duration("REDIS_CONNECT_TIMEOUT").pipe(Config.withDefault(Duration.seconds(2)))
    }).pipe(Config.map(({ commandTimeout, connectTimeout, db, password, url, username }) => ({
      url,
      commandTimeout,
      connectTimeout,
      client: {
        ...(Option.isSome(username) ? { username: username.value } : {}),
        ...(Option.isSome(password) ? { password: Redacted.value(password.value) } : {}),
        ...(Option.isSome(db) ? { db: db.value } : {})
      }
    })))
)

/**
 * Like `layer`, with options from `config`, unless they are given.
 *
 * **Example** (An address from the environment, and a limit of one's own)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layerFromEnv().pipe(
 *   Layer.provide(RedisMutexStore.layer),
 *   Layer.provide(IoRedis.layerFromEnv({ commandTimeout: "500 millis" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options?: Options
): Layer.Layer<Redis.Redis | Subscriber | IoRedis, BackendError | InvalidConfig | Config.ConfigError> =>
  Layer.effectContext(Effect.gen(function*() {
    const environment = yield* config
    const client = besides(environment.client, yield* partsOf(options?.url))
    return yield* make({ ...environment, ...given(options), client: { ...client, ...given(options?.client) } })
  }))
