/** One ioredis client as a scoped resource, with settings that fit leases: fail at once, reconnect for ever. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { Redis as Client, type RedisOptions } from "ioredis"

/** `replyMapping` decides the types of ioredis itself, and must stay at its default. */
export type ClientOptions = Omit<RedisOptions, "replyMapping">

export interface Settings {
  readonly url: string | undefined
  readonly client: ClientOptions
  readonly commandTimeout: Duration.Duration
  readonly connectTimeout: Duration.Duration
}

export type Role = "commands" | "subscriber" | "reserved"

/** 50 ms, doubling up to a second, varied by a fifth: soon enough for a lease, and no herd after a restart. */
const reconnectDelay = (random: () => number) => (attempt: number): number =>
  Math.min(50 * 2 ** Math.min(attempt - 1, 5), 1000) * (0.8 + 0.4 * random())

const optionsFor = (role: Role, settings: Settings, random: () => number): ClientOptions => {
  const commandTimeout = Duration.toMillis(settings.commandTimeout)
  return {
    connectionName: `simba:${role}`,
    ...settings.client,
    connectTimeout: Duration.toMillis(settings.connectTimeout),
    lazyConnect: true,
    // A command during an outage fails at once, and none is sent again later: whoever asked decides what to do next
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    retryStrategy: role === "reserved" ? () => null : reconnectDelay(random),
    // After a fail-over the old primary is a replica: leave it
    reconnectOnError: (error) => error.message.includes("READONLY"),
    ...(role === "reserved" ? {} : { commandTimeout, socketTimeout: 2 * commandTimeout })
  }
}

export const send = (client: Client) => <A = unknown>(command: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<A, Redis.RedisError>((resume) => {
    client.call(command, ...args).then(
      (reply) => resume(Effect.succeed(reply as A)),
      (cause: unknown) => resume(Effect.fail(new Redis.RedisError({ cause })))
    )
  })

/** Connects, or fails with the reason that the server or the network gave. */
export const open = (
  role: Role,
  settings: Settings
): Effect.Effect<Client, Redis.RedisError, Scope.Scope> =>
  Effect.gen(function*() {
    const random = yield* Random.Random
    const runLog = Effect.runForkWith(yield* Effect.context<never>())
    const options = optionsFor(role, settings, () => random.nextDoubleUnsafe())
    let lastError: unknown
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const client = settings.url === undefined
          ? new Client(options)
          : new Client(settings.url, options)
        client.on("error", (cause: unknown) => {
          lastError = cause
          runLog(Effect.logDebug(`Redis connection (${role})`, cause))
        })
        return client
      }),
      (client) => Effect.sync(() => client.disconnect())
    )
    yield* Effect.callback<void, Redis.RedisError>((resume) => {
      client.connect().then(
        () => resume(Effect.void),
        (cause: unknown) => resume(Effect.fail(new Redis.RedisError({ cause: lastError ?? cause })))
      )
    })
    return client
  })
