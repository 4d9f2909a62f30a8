/** Opens ioredis clients as scoped resources, with the settings from `forcedSettings`. Used by the drivers. */
import { replyTimeout } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { type Cluster, type ClusterOptions, Redis as Client, type RedisOptions, SentinelConnector } from "ioredis"
import * as Redis from "../effectRedis.ts"
import { isReply } from "../errors.ts"
import * as log from "../log.ts"
import * as causes from "./causes.ts"
import { type ClientOptions, reconnectDelay, type Role, type Settings, withForced } from "./forcedSettings.ts"
import { defined } from "./options.ts"
import { Pace } from "./pace.ts"
import { ClusterClient } from "./slotRefresh.ts"
import type { Parts } from "./url.ts"
import { onWallClock } from "./wallClock.ts"

export interface SingleSettings extends Settings {
  /** The URL's parts. Options in `client` take precedence. */
  readonly server: Parts
  /** Called if the server turns out to be a replica. */
  readonly onReplica: () => void
}

export interface ClusterSettings extends Settings {
  readonly nodes: ReadonlyArray<
    { readonly [Key in "host" | "port" | "username" | "password" | "tls"]?: RedisOptions[Key] | undefined }
  >
  readonly cluster: Omit<ClusterOptions, "redisOptions" | "keyPrefix">
}

export const hostPort = (
  { host, port }: { readonly host?: string | undefined; readonly port?: number | undefined },
  normal = 6379
) => `${host ?? "localhost"}:${port ?? normal}`

/** Avoids `instanceof`, because the application's client may come from another copy of ioredis. */
export const isCluster = (client: Client | Cluster): client is Cluster => "nodes" in client

/** The address to which commands currently go. */
export const addressOf = (client: Client | Cluster): string => {
  if (isCluster(client)) return "the Cluster"
  const { options, stream } = client
  if (options.path) return options.path
  if (!options.sentinels) return hostPort(options)
  return stream && "remoteAddress" in stream && stream.remoteAddress !== undefined
    ? hostPort({ host: stream.remoteAddress as string, port: stream.remotePort as number })
    : `the primary "${options.name}"`
}

export const targetOf = (options: ClientOptions): causes.Target => ({
  address: options.path ??
    (options.sentinels?.map((sentinel) => hostPort(sentinel, 26379)).join(", ") ?? hostPort(options)),
  tls: Boolean(options.tls),
  primary: options.sentinels ? options.name : undefined
})

/** Unwraps the error from the last node that the Cluster client tried. */
export const reasonOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && error.lastNodeError ? error.lastNodeError : error

/** Returns the refused command's name. Removes its arguments, which may contain a password. */
export const refusedCommand = (cause: unknown): string | undefined => {
  if (!isReply(cause) || !("command" in cause)) return undefined
  const { name } = cause.command as { readonly name: string }
  cause.command = { name, args: [] }
  return name
}

const mistakes = new WeakMap<Client | Cluster, Error>()

/** Returns the misconfiguration, such as an old password, that keeps this library's client from reconnecting. */
export const mistakeOf = (client: Client): Error | undefined => mistakes.get(client)

/**
 * Disconnects. Emits `close` again if it was already emitted, because ioredis would wait for it and keep the process
 * alive.
 */
export const close = (client: Client | Cluster): void => {
  client.disconnect()
  if (!isCluster(client) && client.stream?.closed) client.stream.emit("close")
}

/**
 * Connects within the connect timeout, or fails with the cause. Disconnects when the scope closes. ioredis itself has
 * no timeout for a server that accepts the connection but stays silent.
 */
const opened = <C extends Client | Cluster>(
  role: Role,
  { connectTimeout }: Settings,
  target: causes.Target,
  make: (random: () => number) => C
): Effect.Effect<C, Redis.RedisError, Scope.Scope> =>
  Effect.gen(function*() {
    const random = yield* Random.Random
    const runLog = Effect.runForkWith(yield* Effect.context<never>())
    let lastError: unknown
    const fail = (cause: unknown) => Effect.fail(Redis.redisError(causes.ofConnecting(cause, target)))
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const client = make(() => random.nextDoubleUnsafe())
        client.on("error", (error) => {
          const cause = reasonOf(error)
          // After a refused SELECT, ioredis would continue in database 0
          if (refusedCommand(cause) === "select") client.disconnect(true)
          // The server's error reply is more informative than the connection error that follows
          if (!isReply(lastError)) lastError = cause
          const problem = causes.ofConnecting(cause, target)
          if (client.status !== "ready" && !problem.isRetryable) mistakes.set(client, problem)
          runLog(log.debug(`Redis connection (${role})`, cause))
        })
        client.on("ready", () => mistakes.delete(client))
        return client
      }),
      (client) => Effect.sync(() => close(client))
    )
    const ready = Effect.callback<void, Redis.RedisError>((resume) => {
      // If the first node was unreachable and a later one was not, a Cluster emits `ready` but rejects `connect`
      client.once("ready", () => resume(Effect.void))
      client.connect().then(
        () => resume(Effect.void),
        (cause: unknown) => resume(fail(lastError ?? cause))
      )
    })
    yield* onWallClock(replyTimeout(
      ready,
      connectTimeout,
      () => fail(lastError ?? causes.ofSilence(Duration.format(connectTimeout), target))
    ))
    return client
  })

/**
 * Passes `disconnectTimeout` on to connections to Sentinels. Otherwise ioredis would wait two seconds for each Sentinel
 * that closes its connection, and keep the process alive meanwhile.
 */
class Sentinels extends SentinelConnector {
  constructor(options: unknown) {
    super(options as RedisOptions)
    const connect: (endpoint: object, others?: object) => object = this["connectToSentinel"].bind(this)
    const { disconnectTimeout } = this.options
    this["connectToSentinel"] = (endpoint: object, others?: object) =>
      connect(endpoint, { ...others, disconnectTimeout })
  }
}

const optionsFor = (role: Role, settings: Settings) => {
  const options = withForced(role, settings)
  if (options.sentinels) options.Connector ??= Sentinels
  return options
}

/** Connects to one server, directly or through Sentinel. Only the command connection reconnects by itself. */
export const open = (role: Role, settings: SingleSettings): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, targetOf({ ...settings.server, ...settings.client }), (random) => {
    const options = optionsFor(role, settings)
    if (role === "commands") {
      options.retryStrategy = reconnectDelay(random)
      // If the strategy gave up while no Sentinel is reachable, ioredis would close the client permanently
      options.sentinelRetryStrategy = options.retryStrategy
      // `withTimeouts` detects when this connection goes silent
      delete options.socketTimeout
    }
    const pace = new Pace()
    // After a failover, the old primary becomes a replica
    options.reconnectOnError = (error) => {
      if (!error.message.includes("READONLY")) return false
      settings.onReplica()
      return pace.isDue()
    }
    // Without `enableTLSForSentinelMode`, ioredis ignores `tls` when it uses Sentinels, and sends the password in plain
    // text
    return new Client({ enableTLSForSentinelMode: true, ...settings.server, ...options })
  })

const clusterTarget = ({ client, nodes }: ClusterSettings): causes.Target => ({
  isCluster: true,
  address: nodes.map((node) => hostPort(node)).join(", "),
  tls: Boolean(client.tls)
})

/** Opens another connection with the options of the application's client or a node, on the same database. */
export const duplicate = (
  client: Client,
  role: "subscriber" | "reserved",
  settings: Settings
): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, targetOf(client.options), () => {
    const { Connector, sentinelCommandTimeout, sentinels } = client.options
    // While it reconnects, an ioredis client keeps the database in `prevCondition`, and selects it later
    const condition = client["prevCondition" as "condition"] ?? client.condition
    const own = defined({ Connector, db: condition?.select, sentinelCommandTimeout, sentinels })
    return client.duplicate(optionsFor(role, { ...settings, client: { ...own, ...settings.client } }))
  })

/** Connects to a Cluster, and to each node on demand. */
export const openCluster = (
  role: Role,
  settings: ClusterSettings
): Effect.Effect<Cluster, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, clusterTarget(settings), (random) => {
    const { retryStrategy: _, ...redisOptions } = withForced(role, settings)
    const delay = reconnectDelay(random)
    let wasReady = false
    const cluster = new ClusterClient([...settings.nodes], {
      ...settings.cluster,
      lazyConnect: true,
      enableOfflineQueue: false,
      // Before the first `ready`, try the next node soon, because only one node is known to be down
      clusterRetryStrategy: (attempt) => !wasReady ? delay(1) : role === "reserved" ? null : delay(attempt),
      redisOptions
    })
    cluster.once("ready", () => {
      wasReady = true
    })
    return cluster.on("+node", (node: Client) => rejectUnanswered(node))
  })

/**
 * Ignores a failed ASKING, because ioredis does not await its reply. The redirected command fails too, which notifies
 * the caller.
 */
const observeAsking = (node: Client) => {
  const asking = node.asking.bind(node)
  node.asking = (...args: ReadonlyArray<never>) => {
    const reply = asking(...args)
    reply.catch(() => {})
    return reply
  }
}

const observed = new WeakSet<Client>()

/**
 * Rejects in-flight commands when the connection to a node is lost. ioredis's Cluster client would resend them,
 * although the node may have executed them. It recognizes such commands by their error, so this function rejects them
 * with a different error. ioredis may still resend the application's own commands, which `isOwn` excludes.
 */
export const rejectUnanswered = (node: Client, isOwn: (command: object) => boolean = () => true) => {
  if (observed.has(node)) return
  observed.add(node)
  observeAsking(node)
  const reject = () => {
    const lost = causes.lost(addressOf(node))
    const { commandQueue } = node
    for (let at = 0; at < commandQueue.length;) {
      const { command } = commandQueue.peekAt(at)!
      if (isOwn(command)) {
        commandQueue.removeOne(at)
        command.reject(lost)
      } else at++
    }
  }
  const onConnect = () => node.stream.prependOnceListener("close", reject)
  if (node.status === "connect" || node.status === "ready") onConnect()
  node.on("connect", onConnect)
}

const nodesOf = (cluster: Cluster): ClusterSettings["nodes"] =>
  cluster.nodes("all").map(({ options: { host, password, port, tls, username } }) => ({
    host,
    port,
    username,
    password,
    tls
  }))

/**
 * Opens a Cluster client for blocking commands. It starts from the nodes that the other client currently knows, because
 * the nodes in the settings may be gone.
 */
export const duplicateCluster = (
  cluster: Cluster,
  settings: ClusterSettings
): Effect.Effect<Cluster, Redis.RedisError, Scope.Scope> =>
  Effect.suspend(() => {
    const known = nodesOf(cluster)
    return openCluster("reserved", known.length === 0 ? settings : { ...settings, nodes: known })
  })

/** Returns the settings from the application's Cluster client. */
export const settingsOf = (cluster: Cluster, settings: Settings): ClusterSettings => ({
  ...settings,
  cluster: cluster.options,
  nodes: nodesOf(cluster)
})
