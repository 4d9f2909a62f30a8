/**
 * Helpers for most tests in this package: layers on a test's own server, contenders, polling, and server statistics.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import { LeaseId, MutexName } from "@effect-simba/core/MutexName"
import type { Ownership } from "@effect-simba/core/MutexState"
import {
  acquire,
  type AcquireRequest,
  type AcquireResult,
  guard,
  inboxOf,
  MutexStore,
  release,
  type Ticket,
  wakeUps
} from "@effect-simba/core/MutexStore"
import * as SimbaError from "@effect-simba/core/SimbaError"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Logger, type Scope } from "effect"
import { Redis as Client } from "ioredis"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import { RedisServerError } from "./redisProtocol.ts"
import { RedisServer, type Reply, type Server } from "./redisServer.ts"

/**
 * Polls until the condition holds. Retries polls that fail with a `RedisServerError`, for example while a server
 * changes its role. The timeout only serves to end a failed test.
 */
export const until = <E, R>(
  what: string,
  condition: Effect.Effect<boolean, E, R>
): Effect.Effect<void, E, R> =>
  Effect.suspend(() => {
    let last = ""
    const poll = Effect.catchIf(condition, (error) => error instanceof RedisServerError, (error) => {
      last = ` (${error.message})`
      return Effect.succeed(false)
    })
    return Effect.gen(function*() {
      while (!(yield* poll)) yield* Effect.sleep("10 millis")
    }).pipe(
      Effect.timeoutOrElse({
        duration: "45 seconds",
        orElse: () => Effect.die(new Error(`not within 45 seconds: ${what}${last}`))
      })
    )
  })

let count = 0

/** Returns a name not used by any other test. */
export const freshName = (label: string): MutexName => MutexName.make(`${label} ${++count}`)

const random = Math.random().toString(36).slice(2, 8).padEnd(8, "0")

/** Returns an id's counter, which identifies a waiter in messages to its layer. */
export const counterOf = (id: string): string => id.slice(0, id.indexOf("-"))

/**
 * Returns a new wire id from a new layer, or from `sibling`'s layer. Later ids sort before earlier ones, which reveals
 * a queue sorted by id.
 */
export const freshId = (sibling?: LeaseId): LeaseId => {
  const number = 1_000_000 - ++count
  const layer = sibling === undefined ? random + number.toString(36).padStart(4, "0") : inboxOf(sibling)
  return LeaseId.make(`${number}-${layer}:test@host`)
}

/** Returns the channel for the id's layer. */
export const inboxChannelOf = (id: LeaseId): string => RedisKeys.inboxChannel(inboxOf(id))

/** Returns a new id in Simba's format. */
export const simbaId = (): string => `${++count}:4711@stock-host`

/** Returns a mutex's keys. */
export const keysOf = (mutex: MutexName) => ({
  owner: RedisKeys.owner(mutex),
  queue: RedisKeys.queue(mutex),
  fence: RedisKeys.fence(mutex),
  reserved: RedisKeys.reserved(mutex)
})

/** Opens a store with its own connection until the scope closes. */
export const openStore = (server: Server, options?: IoRedis.Options) =>
  Effect.map(
    Layer.build(Layer.fresh(RedisMutex.layerStore.pipe(
      Layer.provide(IoRedis.layer({ url: server.url, commandTimeout: "5 seconds", ...options }))
    ))),
    (context) => Context.get(context, MutexStore)
  )

export interface MutexOptions extends Mutex.Options {
  readonly redis?: IoRedis.Options
}

/** Opens a `Mutex` with its own connections, as another process would. */
export const mutexLayer = (server: Server, options: MutexOptions = {}) =>
  Layer.fresh(
    RedisMutex.layerRedis(options).pipe(
      Layer.provide(IoRedis.layer({ url: server.url, ...options.redis }))
    )
  )

export const openMutex = (server: Server, options: MutexOptions = {}) =>
  Effect.map(Layer.build(mutexLayer(server, options)), (context) => Context.get(context, Mutex.Mutex))

export const ownerOf = (ownership: Ownership): string | undefined =>
  ownership._tag === "Held" ? ownership.owner : undefined

export const granted = (result: AcquireResult) => {
  assert.strictEqual(result._tag, "Granted", `expected a grant: ${JSON.stringify(result)}`)
  return result as Extract<AcquireResult, { readonly _tag: "Granted" }>
}

export const refused = (result: AcquireResult) => {
  assert.strictEqual(result._tag, "Refused", `expected a refusal: ${JSON.stringify(result)}`)
  return result as Extract<AcquireResult, { readonly _tag: "Refused" }>
}

/** An effect-simba contender. The test calls its store operations one by one. */
export const contender = (
  store: MutexStore["Service"],
  mutex: MutexName,
  periods: { readonly lease?: Duration.Input; readonly confirm?: Duration.Input; readonly sibling?: LeaseId } = {}
) => {
  const id = freshId(periods.sibling)
  const lease = Duration.fromInputUnsafe(periods.lease ?? "60 seconds")
  const confirm = Duration.fromInputUnsafe(periods.confirm ?? "30 seconds")
  const ask = (mode: "try" | "wait", ticket?: Ticket) => acquire(store, { mutex, id, mode, lease, confirm, ticket })
  const leave = release(store, { mutex, id, confirm, lease })
  return {
    id,
    ask,
    own: Effect.map(ask("try"), granted),
    wait: Effect.map(ask("wait"), refused),
    confirm: Effect.map(ask("wait"), granted),
    subscribe: wakeUps(store, mutex, id),
    leave,
    /** Releases the mutex and returns the resulting ownership. */
    release: Effect.andThen(leave, store.owner(mutex)),
    guard: Effect.map(guard(store, [{ mutex, id, lease }]), (results) => results[0]!)
  }
}

/** A new mutex on the test's server, its store, and three contenders. */
export const freshMutex = Effect.fnUntraced(function*(label: string) {
  const server = yield* RedisServer
  const store = yield* openStore(server)
  const m = freshName(label)
  return { server, store, m, a: contender(store, m), b: contender(store, m), c: contender(store, m) }
})

/** Leases that are far longer than any test, so only a message or a gap can wake a waiter in time. */
export const patient = { ttl: "10 minutes", transition: "5 minutes", confirmTimeout: "1 minute" } as const

type Sender = { readonly send: (...args: ReadonlyArray<string>) => Effect.Effect<unknown, unknown> }

export const queued = (server: Sender, mutex: MutexName, count: number) =>
  until(`${count} in the queue`, Effect.map(server.send("ZCARD", keysOf(mutex).queue), (n) => n === count))

export const held = (server: Sender, mutex: MutexName) =>
  until("held", Effect.map(server.send("EXISTS", keysOf(mutex).owner), (n) => n === 1))

export const failsWithWrongType = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect as Effect.Effect<A, unknown>), (error) => {
    assert.instanceOf(error, SimbaError.BackendError)
    assert.isFalse(error.isRetryable, error.message)
    assert.match(error.message, /WRONGTYPE/)
  })

/** A request for a new mutex. */
export const requestOf = (label: string): AcquireRequest => ({
  mutex: freshName(label),
  id: freshId(),
  mode: "try",
  lease: Duration.seconds(60),
  confirm: Duration.seconds(60)
})

/** Starts effects in one event-loop turn, runs them concurrently, and returns their exits. */
export const exitsOf = <A, E, R>(effects: ReadonlyArray<Effect.Effect<A, E, R>>) =>
  Effect.forEach(effects, (effect) => Effect.exit(effect), { concurrency: "unbounded" })

/** A plain ioredis client, as in another program. */
export const client = (server: Server): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const client = new Client(server.url, { lazyConnect: true })
      client.on("error", () => undefined)
      return client.connect().then(() => client)
    }),
    (client) => Effect.sync(() => client.disconnect())
  )

/** Subscribes to channels. The returned array collects their messages. */
export const messagesOn = Effect.fnUntraced(function*(server: Server, ...channels: ReadonlyArray<string>) {
  const subscriber = yield* client(server)
  const messages: Array<readonly [channel: string, text: string]> = []
  subscriber.on("message", (channel: string, text: string) => messages.push([channel, text]))
  yield* Effect.promise(() => subscriber.subscribe(...channels))
  return messages
})

/** `calls` returns how often each command has run since `reset`, including runs from scripts. */
export const commandStats = (server: Server) => ({
  reset: server.send("CONFIG", "RESETSTAT"),
  calls: Effect.map(server.send("INFO", "commandstats"), (info) =>
    new Map(
      [...String(info).matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map((match) =>
        [match[1]!, Number(match[2])] as const
      )
    ))
})

/** Returns a field of `INFO`. */
export const infoField = (server: Server, section: string, field: string) =>
  Effect.map(
    server.send("INFO", section),
    (info) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(String(info))?.[1]
  )

export const connections = (server: Server, name: string) =>
  Effect.map(
    server.send("CLIENT", "LIST"),
    (list) =>
      String(list).split("\n").filter((line) => line.includes(` name=${name} `)).map((line) =>
        /\bid=(\d+)/.exec(line)![1]!
      )
  )

export const killConnections = (server: Server, name: string) =>
  Effect.flatMap(
    connections(server, name),
    (ids) => Effect.as(Effect.forEach(ids, (id) => server.send("CLIENT", "KILL", "ID", id)), ids.length)
  )

export const keysLeft = (server: Server, pattern = "*"): Effect.Effect<ReadonlyArray<Reply>, unknown> =>
  Effect.map(server.send("KEYS", pattern), (keys) => keys as ReadonlyArray<Reply>)

export const channelsOpen = (server: Server, pattern = "*"): Effect.Effect<ReadonlyArray<Reply>, unknown> =>
  Effect.map(server.send("PUBSUB", "CHANNELS", pattern), (channels) => channels as ReadonlyArray<Reply>)

/** Collects log lines instead of printing. */
export const capturingLogs = (lines: Array<string>): Layer.Layer<never> =>
  Logger.layer([Logger.make((entry) => {
    lines.push([entry.message].flat().map(String).join(" "))
  })])

export const quiet = capturingLogs([])

export { RedisServer, SimbaError }
