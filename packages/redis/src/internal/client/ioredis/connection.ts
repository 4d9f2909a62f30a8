/**
 * An ioredis client as a scoped resource, with the settings of `forcedSettings`. The drivers open their connections here.
 */
import { replyTimeout } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { type Cluster, type ClusterOptions, Redis as Client } from "ioredis"
import * as Redis from "../effectRedis.ts"
import { isReply } from "../errors.ts"
import * as log from "../log.ts"
import * as causes from "./causes.ts"
import { ClusterClient } from "./clusterClient.ts"
import { type ClientOptions, reconnectDelay, type Role, type Settings, withForced } from "./forcedSettings.ts"
import type { Parts } from "./url.ts"
import { onWallClock } from "./wallClock.ts"

export interface SingleSettings extends Settings {
  /** The parts of the URL. `client` options win over them. */
  readonly server: Parts
  /** Called when the server turns out to be a replica. */
  readonly onReplica: () => void
}

export interface ClusterSettings extends Settings {
  readonly nodes: ReadonlyArray<{ readonly host?: string | undefined; readonly port?: number | undefined }>
  readonly cluster: Omit<ClusterOptions, "redisOptions" | "keyPrefix">
}

const hostPort = (
  { host, port }: { readonly host?: string | undefined; readonly port?: number | undefined },
  normal = 6379
) => `${host ?? "localhost"}:${port ?? normal}`

/** Does not compare classes: the application's client may come from another copy of ioredis. */
export const isCluster = (client: Client | Cluster): client is Cluster => "nodes" in client

/** Where commands go now. */
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

/** For a Cluster, the error from the last node that was tried. */
const reasonOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && error.lastNodeError ? error.lastNodeError : error

/** The name of the refused command. Drops its arguments, which may contain a password. */
export const refusedCommand = (cause: unknown): string | undefined => {
  if (!isReply(cause) || !("command" in cause)) return undefined
  const { name } = cause.command as { readonly name: string }
  cause.command = { name, args: [] }
  return name
}

/**
 * Connects within the connect timeout or fails with the cause; closes with the scope. ioredis has no timeout for a
 * server that accepts the connection and stays silent.
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
          // ioredis would continue in database 0
          if (refusedCommand(cause) === "select") client.disconnect(true)
          // The server's error reply explains more than the connection error that follows
          if (!isReply(lastError)) lastError = cause
          runLog(log.debug(`Redis connection (${role})`, cause))
        })
        return client
      }),
      (client) => Effect.sync(() => client.disconnect())
    )
    const ready = Effect.callback<void, Redis.RedisError>((resume) => {
      // If only a later node was reachable, a Cluster emits `ready` but rejects `connect`
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

/** Connects to one server, directly or through Sentinel. Only the command connection reconnects on its own. */
export const open = (role: Role, settings: SingleSettings): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, targetOf({ ...settings.server, ...settings.client }), (random) => {
    const options = withForced(role, settings)
    if (role === "commands") {
      options.retryStrategy = reconnectDelay(random)
      // A strategy that gives up would close the client forever once no Sentinel can be reached
      options.sentinelRetryStrategy = options.retryStrategy
      // `withTimeouts` watches the silence of this connection
      delete options.socketTimeout
    }
    // After a failover, the old primary is a replica. Disconnect only once, even if it refuses many commands
    options.reconnectOnError = (error) => {
      if (!error.message.includes("READONLY")) return false
      settings.onReplica()
      return !client.stream.writableEnded
    }
    // Behind Sentinels, ioredis would ignore `tls`, and send the password in plain text
    const client = new Client({ enableTLSForSentinelMode: true, ...settings.server, ...options })
    return client
  })

const clusterTarget = ({ client, nodes }: ClusterSettings): causes.Target => ({
  isCluster: true,
  address: nodes.map((node) => hostPort(node)).join(", "),
  tls: Boolean(client.tls)
})

/** Another connection with the options of the application's client, or of a node. */
export const duplicate = (
  client: Client,
  role: "subscriber" | "reserved",
  settings: Settings
): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, targetOf(client.options), () => client.duplicate(withForced(role, settings)))

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
      // Before the first `ready`, only this node is known to be down: try another one
      clusterRetryStrategy: (attempt) => !wasReady ? delay(1) : role === "reserved" ? null : delay(attempt),
      redisOptions
    })
    cluster.once("ready", () => {
      wasReady = true
    })
    return cluster.on("+node", rejectUnanswered)
  })

/** ioredis does not wait for the reply to ASKING before a redirected command. If it fails, so does that command. */
const observeAsking = (node: Client) => {
  const asking = node.asking.bind(node)
  node.asking = (...args: ReadonlyArray<never>) => {
    const reply = asking(...args)
    reply.catch(() => {})
    return reply
  }
}

/**
 * ioredis's Cluster client resends commands that were in flight to a lost node, which may have executed them. It
 * recognizes them by their error, so they are rejected with a different error.
 */
export const rejectUnanswered = (node: Client) => {
  observeAsking(node)
  node.on("connect", () =>
    node.stream.prependOnceListener("close", () => {
      const lost = causes.lost(addressOf(node))
      for (let item = node.commandQueue.shift(); item !== undefined; item = node.commandQueue.shift()) {
        item.command.reject(lost)
      }
    }))
}

/** Connections for blocking commands, beside the application's own Cluster client. */
export const duplicateCluster = (
  cluster: Cluster,
  settings: Settings
): Effect.Effect<Cluster, Redis.RedisError, Scope.Scope> =>
  openCluster("reserved", {
    ...settings,
    cluster: cluster.options,
    nodes: cluster.nodes("all").map(({ options: { host, port } }) => ({ host, port }))
  })
