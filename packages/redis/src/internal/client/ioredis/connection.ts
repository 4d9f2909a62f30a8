/** One ioredis client as a scoped resource, with settings that fit leases: fail at once, reconnect for ever. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { Cluster, type ClusterNode, type ClusterOptions, Redis as Client, type RedisOptions } from "ioredis"
import type { CommandSink } from "../commandSink.ts"
import { isReply } from "../errors.ts"
import type { Parts } from "./url.ts"

/** `replyMapping` and `stringNumbers` decide what replies look like, and must stay at their defaults. */
export type ClientOptions = Omit<RedisOptions, "replyMapping" | "stringNumbers" | "keyPrefix">

export interface Settings {
  /** What the URL says. Options that are given besides win. */
  readonly server: Parts
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
  /** Learns that a server is a replica. */
  readonly onReplica?: () => void
}

export interface ClusterSettings extends Omit<Settings, "server"> {
  readonly nodes: ReadonlyArray<ClusterNode>
  readonly cluster: Omit<ClusterOptions, "redisOptions" | "keyPrefix">
}

export type Role = "commands" | "subscriber" | "reserved"

type Send = Redis.Redis["Service"]["send"]

/** 50 ms, doubling up to a second, varied by a fifth: soon enough for a lease, and no herd after a restart. */
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
    // A server that loads is asked again soon, and not when it guesses to be done, in whole seconds
    maxLoadingRetryTime: 200,
    // One that hangs leaves time to ask the others
    sentinelCommandTimeout: Math.min(commandTimeout, connectTimeout / (1 + (settings.client.sentinels?.length ?? 0))),
    ...settings.client,
    connectTimeout,
    lazyConnect: true,
    stringNumbers: false,
    // A command during an outage fails at once, and none is sent again later: whoever asked decides what to do next
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

/** Of a Cluster, what the last node said that was asked. */
const reasonOf = (error: unknown): unknown =>
  error instanceof Error && "lastNodeError" in error && isReply(error.lastNodeError) ? error.lastNodeError : error

/** The command that was refused. Its arguments are dropped, since a password may be among them. */
export const takeRefused = (cause: unknown): string | undefined => {
  if (!isReply(cause) || !("command" in cause)) return undefined
  const { name } = cause.command as { readonly name: string }
  cause.command = { name, args: [] }
  return name
}

/**
 * Connects within the connect timeout, or fails with the reason that the server or the network gave; closes with the
 * scope. ioredis bounds parts of the way only: a server that accepts and then says nothing would hold it up.
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
          // ioredis would go on in database 0
          if (takeRefused(cause) === "select") client.disconnect(true)
          // What the server says tells more than what the connection says of it
          if (!isReply(lastError)) lastError = cause
          runLog(Effect.logDebug(`Redis connection (${role})`, cause))
        })
        return client
      }),
      (client) => Effect.sync(() => client.disconnect())
    )
    yield* Effect.callback<void, Redis.RedisError>((resume) => {
      // A Cluster whose first node to be asked was away asks another, and says so by this alone
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

/** A connection to one server, or through Sentinel. Only the one for commands reconnects by itself. */
export const open = (role: Role, settings: Settings): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  opened(role, settings, (random) => {
    const options = optionsFor(role, settings)
    if (role === "commands") {
      options.retryStrategy = reconnectDelay(random)
      // For this `watched` does it
      delete options.socketTimeout
    }
    // After a fail-over the old primary is a replica: leave it, once, however many commands it has refused
    options.reconnectOnError = (error) => {
      if (!error.message.includes("READONLY")) return false
      settings.onReplica?.()
      return !client.stream.writableEnded
    }
    const client = new Client({ ...settings.server, ...options })
    return client
  })

/** The connections to a Cluster: one per node that is needed. */
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
      // At first it is only that the node which was asked for the state of the Cluster is away: another one is drawn
      clusterRetryStrategy: (attempt) => !wasReady ? delay(1) : role === "reserved" ? null : delay(attempt),
      redisOptions
    })
    cluster.once("ready", () => {
      wasReady = true
    })
    return cluster.on("+node", failWhatWasSent)
  })

/**
 * A Cluster of ioredis sends again what a node that is gone has left without an answer, also what that node has done. It
 * does so by the error, which is another here; what was never sent has the one that it knows.
 */
const failWhatWasSent = (node: Client) => {
  node.on("connect", () =>
    node.stream.prependOnceListener("close", () => {
      const lost = new Error("the connection was lost before the answer came")
      for (let item = node.commandQueue.shift(); item !== undefined; item = node.commandQueue.shift()) {
        item.command.reject(lost)
      }
    }))
}

/** A connection to any node that can be reached: every node passes on what is published on any. */
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

/** A command that fails does so later, like one that succeeds: ioredis answers by promises. */
export const sendDirect = (cluster: Cluster): CommandSink["send"] => (command, args, done) => {
  cluster.call(command, args as Array<string>).then(
    (reply) => done(undefined, reply),
    (cause: unknown) => done({ cause }, undefined)
  )
  return undefined
}

export const direct = (client: Client | Cluster, send: CommandSink["send"]): CommandSink => ({
  isReady: () => client.status === "ready",
  afterCurrentTask: queueMicrotask,
  send
})

export const sendBy = (
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

/**
 * Scripts are loaded on every primary, since any of them may be asked to run one. Whoever is away does not keep the others
 * from it: a script that a node does not know is sent to it as text.
 */
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
