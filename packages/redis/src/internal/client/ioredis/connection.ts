/** An ioredis client as a scoped resource. Its settings suit leases: commands fail at once, reconnects never end. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { Cluster, type ClusterNode, type ClusterOptions, Redis as Client, type RedisOptions } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import * as Redis from "../effectRedis.ts"
import { isReply } from "../errors.ts"
import type { Parts } from "./url.ts"

/** The defaults of `replyMapping` and `stringNumbers` decide the shape of replies. */
export type ClientOptions = Omit<RedisOptions, "replyMapping" | "stringNumbers" | "keyPrefix">

export interface Settings {
  /** The parts of the URL. `client` options win over them. */
  readonly server: Parts
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
  /** Called when a server turns out to be a replica. */
  readonly onReplica?: () => void
}

export interface ClusterSettings extends Omit<Settings, "server"> {
  readonly nodes: ReadonlyArray<ClusterNode>
  readonly cluster: Omit<ClusterOptions, "redisOptions" | "keyPrefix">
}

export type Role = "commands" | "subscriber" | "reserved"

type Send = Redis.Redis["Service"]["send"]

/** 50 ms, doubling up to a second: soon enough for a lease. Varied by a fifth, against a herd after a restart. */
const reconnectDelay = (random: () => number) => (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1000) * (0.8 + 0.4 * random())

const optionsFor = (
  role: Role,
  settings: Omit<Settings, "server">
): ClientOptions & { readonly stringNumbers: false } => {
  const commandTimeout = Duration.toMillis(settings.commandTimeout)
  const connectTimeout = Duration.toMillis(settings.connectTimeout)
  return {
    connectionName: `simba:${role}`,
    // A loading server estimates its end in whole seconds, which is too late for a lease
    maxLoadingRetryTime: 200,
    // A hanging Sentinel leaves time to ask the others
    sentinelCommandTimeout: Math.min(commandTimeout, connectTimeout / (1 + (settings.client.sentinels?.length ?? 0))),
    ...settings.client,
    connectTimeout,
    lazyConnect: true,
    stringNumbers: false,
    // During an outage a command fails at once and is never sent later: the caller decides about a retry
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    ...(role === "reserved" ? {} : { commandTimeout, socketTimeout: 2 * commandTimeout })
  }
}

interface Connectable {
  readonly connect: () => Promise<void>
  readonly disconnect: (reconnect?: boolean) => void
  readonly on: (event: "error", listener: (cause: unknown) => void) => unknown
  readonly once: (event: "ready", listener: () => void) => unknown
}

/** For a Cluster, the reply of the last node that was asked. */
const reasonOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && isReply(error.lastNodeError) ? error.lastNodeError : error

/** The name of the refused command. Drops its arguments, which may contain a password. */
export const refusedCommand = (cause: unknown): string | undefined => {
  if (!isReply(cause) || !("command" in cause)) return undefined
  const { name } = cause.command as { readonly name: string }
  cause.command = { name, args: [] }
  return name
}

/**
 * Connects within the connect timeout or fails with the cause; closes with the scope. ioredis has no limit for a server
 * that accepts the connection and stays silent.
 */
const opened = <C extends Connectable>(
  role: Role,
  settings: Omit<Settings, "server">,
  make: (random: () => number) => C
): Effect.Effect<C, Redis.RedisError, Scope.Scope> =>
  Effect.gen(function*() {
    const random = yield* Random.Random
    const runLog = Effect.runForkWith(yield* Effect.context<never>())
    let lastError: unknown
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const client = make(() => random.nextDoubleUnsafe())
        client.on("error", (error) => {
          const cause = reasonOf(error)
          // ioredis would continue in database 0
          if (refusedCommand(cause) === "select") client.disconnect(true)
          // A reply of the server explains more than the error of the connection that follows
          if (!isReply(lastError)) lastError = cause
          runLog(Effect.logDebug(`Redis connection (${role})`, cause))
        })
        return client
      }),
      (client) => Effect.sync(() => client.disconnect())
    )
    yield* Effect.callback<void, Redis.RedisError>((resume) => {
      // A Cluster that reached its second node only emits `ready`, and rejects `connect`
      client.once("ready", () => resume(Effect.void))
      client.connect().then(
        () => resume(Effect.void),
        (cause: unknown) => resume(Effect.fail(new Redis.RedisError({ cause: lastError ?? cause })))
      )
    }).pipe(Effect.timeoutOrElse({
      duration: settings.connectTimeout,
      orElse: () =>
        Effect.fail(
          new Redis.RedisError({
            cause: lastError ?? new Error(`no connection within ${Duration.format(settings.connectTimeout)}`)
          })
        )
    }))
    return client
  })

/** Connects to one server, or through Sentinel. Only the command connection reconnects by itself. */
export const open = (role: Role, settings: Settings): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, (random) => {
    const options = optionsFor(role, settings)
    if (role === "commands") {
      options.retryStrategy = reconnectDelay(random)
      // `withTimeouts` watches the silence of this connection
      delete options.socketTimeout
    }
    // After a fail-over the old primary is a replica. Many refused commands are one reason to leave it
    options.reconnectOnError = (error) => {
      if (!error.message.includes("READONLY")) return false
      settings.onReplica?.()
      return !client.stream.writableEnded
    }
    const client = new Client({ ...settings.server, ...options })
    return client
  })

/** Connects to a Cluster, on demand to each node. */
export const openCluster = (
  role: Role,
  settings: ClusterSettings
): Effect.Effect<Cluster, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, (random) => {
    const { retryStrategy: _, ...redisOptions } = optionsFor(role, settings)
    const delay = reconnectDelay(random)
    let wasReady = false
    const cluster = new Cluster([...settings.nodes], {
      ...settings.cluster,
      lazyConnect: true,
      enableOfflineQueue: false,
      // Before the first `ready` only the node that was asked is known to be down: another one is drawn
      clusterRetryStrategy: (attempt) => !wasReady ? delay(1) : role === "reserved" ? null : delay(attempt),
      redisOptions
    })
    cluster.once("ready", () => {
      wasReady = true
    })
    return cluster.on("+node", rejectUnanswered)
  })

/**
 * A Cluster client of ioredis resends the unanswered commands of a lost node, which that node may have executed. It
 * recognises them by their error, so they are rejected with another one.
 */
const rejectUnanswered = (node: Client) => {
  node.on("connect", () =>
    node.stream.prependOnceListener("close", () => {
      const lost = new Error("the connection was lost before the reply")
      for (let item = node.commandQueue.shift(); item !== undefined; item = node.commandQueue.shift()) {
        item.command.reject(lost)
      }
    }))
}

/** Connects to any reachable node: every node forwards all messages. */
export const openNode = (
  cluster: Cluster,
  settings: ClusterSettings
): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  Effect.gen(function*() {
    const known = cluster.nodes("all").filter((node) => node.status === "ready" || node.status === "wait")
    const [first, ...others] = yield* Random.shuffle(known)
    if (first === undefined) {
      return yield* new Redis.RedisError({ cause: new Error("no node of the cluster is known to be up") })
    }
    const openAt = ({ options: { host, port } }: Client) =>
      opened(
        "subscriber",
        settings,
        () => new Client({ ...optionsFor("subscriber", settings), host: host ?? "localhost", port: port ?? 6379 })
      )
    return yield* others.reduce((before, node) => Effect.catch(before, () => openAt(node)), openAt(first))
  })

const sendTo = (
  call: (command: string, args: ReadonlyArray<string>) => Promise<unknown>
): Send => (<A = unknown>(command: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<A, Redis.RedisError>((resume) => {
    call(command, args).then(
      (reply) => resume(Effect.succeed(reply as A)),
      (cause: unknown) => resume(Effect.fail(new Redis.RedisError({ cause })))
    )
  }))

export const send = (client: Client): Send => sendTo((command, args) => client.call(command, ...args))

export const sendToCluster = (cluster: Cluster): CommandSink["send"] => (command, args, done) => {
  cluster.call(command, args as Array<string>).then(
    (reply) => done(undefined, reply),
    (cause: unknown) => done({ cause }, undefined)
  )
  return undefined
}

export const commandSink = (client: Client | Cluster, send: CommandSink["send"]): CommandSink => ({
  isReady: () => client.status === "ready",
  afterCurrentTask: queueMicrotask,
  send
})

export const sendThrough = (
  send: CommandSink["send"]
): Send => (<A = unknown>(command: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<A, Redis.RedisError>((resume) => {
    send(command, args, (failure, reply) =>
      resume(
        failure === undefined
          ? Effect.succeed(reply as A)
          : Effect.fail(new Redis.RedisError({ cause: failure.cause }))
      ))
  }))

/** Loads a script on every primary. A primary that is down gets the text with the first call that misses it. */
const loadEverywhere = (cluster: Cluster, args: ReadonlyArray<string>): Promise<unknown> =>
  Promise.allSettled(cluster.nodes("master").map((node) => node.call("SCRIPT", ...args))).then((results) => {
    const loaded = results.find((result) => result.status === "fulfilled")
    if (loaded !== undefined) return loaded.value
    const failed = results.find((result) => result.status === "rejected")
    throw failed === undefined ? new Error("no primary of the cluster is known to be up") : failed.reason
  })

export const sendCluster = (cluster: Cluster): Send =>
  sendTo((command, args) => {
    if (command.toUpperCase() !== "SCRIPT") return cluster.call(command, ...args)
    if (args[0]?.toUpperCase() === "LOAD") return loadEverywhere(cluster, args)
    return Promise.all(cluster.nodes("master").map((node) => node.call(command, ...args))).then((replies) => replies[0])
  })
