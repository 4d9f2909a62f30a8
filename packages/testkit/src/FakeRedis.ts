/**
 * An in-memory Redis server that runs on `Clock`.
 *
 * Under `TestClock`, leases, timeouts and keys expire when the test calls `TestClock.adjust`. The server runs the
 * production scripts. Its clients provide Effect's `Redis` service and `Subscriber`.
 *
 * **Example** (Two clients of one server)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { TestRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 * import { TestClock } from "effect/testing"
 *
 * it.effect("forgets", () =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     yield* redis.send("SET", "greeting", "hello", "EX", "60")
 *     yield* TestClock.adjust("61 seconds")
 *     assert.isNull(yield* redis.send("GET", "greeting"))
 *   }).pipe(Effect.provide(TestRedis.layer())))
 * ```
 *
 * @since 0.1.0
 */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type { ErrorState, Reply } from "@effect-simba/fake-redis/Engine"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as fakeClient from "./internal/client/client.ts"
import type { Redis } from "./internal/client/effectRedis.ts"
import { loadVm } from "./internal/client/luaVm.ts"
import { FakeServer } from "./internal/client/server.ts"
import { Prng } from "./internal/simulation/prng.ts"
import * as timers from "./internal/simulation/timers.ts"

type Key = {
  readonly db: number
  readonly key: string
  readonly type: "string" | "hash" | "list" | "set" | "zset" | "stream"
  readonly expiresAt: number | undefined
}

type Dump =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "list" | "set"; readonly value: ReadonlyArray<string> }
  | { readonly type: "hash"; readonly value: ReadonlyArray<readonly [field: string, value: string]> }
  | { readonly type: "zset"; readonly value: ReadonlyArray<readonly [member: string, score: number]> }
  | { readonly type: "stream"; readonly value: ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string>]> }

type Command = {
  readonly client: string
  readonly role: "commands" | "subscriber" | "reserved"
  readonly args: ReadonlyArray<string>
  readonly reply: Reply
  /** Server time in microseconds since the epoch. No two commands share a timestamp. */
  readonly micros: number
}

/**
 * Options for the server.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /**
   * The offset of the server's wall clock from `Clock`, in milliseconds. If `Clock` starts at 0, as `TestClock` does,
   * the default makes server times 13 digits long. Otherwise the default is 0.
   */
  readonly epoch?: number | undefined
  /** The seed for all random choices on the server and in the network. Default: `fake-redis`. */
  readonly seed?: string | number | undefined
  /**
   * The minimum and maximum delay after which an expired key is removed if nobody accesses it. Each key draws its own
   * delay, because real servers remove keys late too. Default: 0 to 100 milliseconds.
   */
  readonly expiryDelay?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  /** The maximum number of recent writes that `failover` can lose. Default: 16. */
  readonly undoDepth?: number | undefined
  /** The maximum number of commands in the trace. Default: 10,000. */
  readonly trace?: number | undefined
}

/**
 * Options for one client.
 *
 * @category options
 * @since 0.1.0
 */
export interface ClientOptions {
  /**
   * The client's name in the trace, and the name of its link in `FakeNetwork`. Clients with the same name share a link.
   * Default: `client`.
   */
  readonly name?: string | undefined
  /** The database number. Default: 0. */
  readonly db?: number | undefined
  /**
   * The protocol version, which determines reply shapes. Version 3 is the default, as in `IoRedis.layer`: scores and
   * values come in pairs, and XREAD returns alternating names and entries. With 2, replies have the same shapes as with
   * `client: { protocol: 2 }` or from other clients.
   */
  readonly protocol?: 2 | 3 | undefined
  /** The timeout for a command. Default: 1 second. */
  readonly commandTimeout?: Duration.Input | undefined
  /** The timeout for connecting. Default: 2 seconds. */
  readonly connectTimeout?: Duration.Input | undefined
}

/**
 * The server, for tests that inspect it or make it fail.
 *
 * **Example** (Checking what a program leaves behind)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { FakeRedis, TestRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * it.effect("keys expire, and nobody asks for all of them", () =>
 *   Effect.gen(function*() {
 *     const [server, redis] = yield* Effect.all([FakeRedis.FakeRedis, Redis])
 *     yield* redis.send("SET", "session", "alice", "EX", "60")
 *     const keys = yield* server.keys
 *     assert.isTrue(keys.every(({ expiresAt }) => expiresAt !== undefined))
 *     assert.deepStrictEqual(yield* server.dump("session"), { type: "string", value: "alice" })
 *     const commands = yield* server.trace
 *     assert.isFalse(commands.some(({ args }) => args[0] === "KEYS"))
 *   }).pipe(Effect.provide(TestRedis.layer())))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class FakeRedis extends Context.Service<FakeRedis, {
  /** @internal */
  readonly server: FakeServer
  /** All existing keys in all databases, sorted. */
  readonly keys: Effect.Effect<ReadonlyArray<Key>>
  /** The value of a key, read without counting as an access. `undefined` if the key does not exist. */
  readonly dump: (key: string, db?: number) => Effect.Effect<Dump | undefined>
  /** The most recent commands, in order of execution. */
  readonly trace: Effect.Effect<ReadonlyArray<Command>>
  readonly clearTrace: Effect.Effect<void>
  /** The server's wall clock, in milliseconds. */
  readonly now: Effect.Effect<number>
  /** Steps the server's wall clock. A negative step sets the clock back. */
  readonly stepClock: (step: Duration.Input) => Effect.Effect<void>
  /** Removes a key and publishes an `expired` event. Returns whether the key existed. */
  readonly forceExpire: (key: string, db?: number) => Effect.Effect<boolean>
  /** Removes a key and publishes an `evicted` event. Returns whether the key existed. */
  readonly evict: (key: string, db?: number) => Effect.Effect<boolean>
  /** Discards all scripts, as SCRIPT FLUSH or a failover does. */
  readonly flushScripts: Effect.Effect<void>
  /**
   * Breaks one client's connections, or all connections. In-flight commands fail, although they may have been executed.
   */
  readonly dropConnections: (client?: string) => Effect.Effect<void>
  /**
   * Restarts the server. Connections, scripts, settings and users are lost. Unless `keepData` is set, the data is lost
   * too.
   */
  readonly restart: (options: { readonly keepData: boolean }) => Effect.Effect<void>
  /**
   * Fails over to a replica that is missing the last writes. Returns the number of lost writes. Dies if that number
   * would exceed `undoDepth`.
   */
  readonly failover: (options: { readonly loseLastWrites: number }) => Effect.Effect<number>
  /** Refuses commands with this error until it is set to `undefined` or the server restarts or fails over. */
  readonly setErrorState: (state: ErrorState | undefined) => Effect.Effect<void>
  /** The number of subscriptions. */
  readonly subscriptions: Effect.Effect<number>
  /** The number of connections from one client, or from all clients. */
  readonly connections: (client?: string) => Effect.Effect<number>
}>()("@effect-simba/testkit/FakeRedis") {}

/** An arbitrary 13-digit time. A shorter one could hide bugs with large numbers. */
const testEpochMillis = 1_750_000_000_000

const make = Effect.fnUntraced(function*(options: Options = {}) {
  const vm = yield* loadVm
  const clock = yield* Clock.Clock
  const [low, high] = options.expiryDelay ?? [0, 100]
  return fromServer(
    new FakeServer({
      clock,
      timers: yield* timers.make,
      prng: new Prng(String(options.seed ?? "fake-redis")),
      lua: vm,
      epoch: options.epoch ?? (clock.currentTimeMillisUnsafe() < 1e12 ? testEpochMillis : 0),
      expiryDelay: [
        Duration.toMillis(Duration.fromInputUnsafe(low)),
        Duration.toMillis(Duration.fromInputUnsafe(high))
      ],
      undoDepth: options.undoDepth ?? 16,
      traceLimit: options.trace ?? 10_000
    })
  )
})

/** @internal */
const fromServer = (server: FakeServer): FakeRedis["Service"] => {
  const { engine } = server
  return {
    server,
    keys: Effect.sync(() => server.keys()),
    dump: (key, db = 0) =>
      Effect.sync(() =>
        server.keys().some((info) => info.db === db && info.key === key) ? engine.dump(db, key) : undefined
      ),
    trace: Effect.sync(() => server.trace()),
    clearTrace: Effect.sync(() => server.clearTrace()),
    now: Effect.sync(() => Math.floor(server.micros() / 1000)),
    stepClock: (step) => Effect.sync(() => server.stepClock(Duration.toMillis(Duration.fromInputUnsafe(step)))),
    forceExpire: (key, db = 0) => Effect.sync(() => server.run(() => engine.forceExpire(db, key))),
    evict: (key, db = 0) => Effect.sync(() => server.run(() => engine.evict(db, key))),
    flushScripts: Effect.sync(() => engine.flushScripts()),
    dropConnections: (client) => Effect.sync(() => server.dropConnections(client)),
    restart: ({ keepData }) => Effect.sync(() => server.restart(keepData)),
    failover: ({ loseLastWrites }) => Effect.sync(() => server.failover(loseLastWrites)),
    setErrorState: (state) => Effect.sync(() => engine.setErrorState(state)),
    subscriptions: Effect.sync(() => engine.subscriptions()),
    connections: (client) => Effect.sync(() => server.openConnections(client))
  }
}

/**
 * Provides a `FakeRedis` server.
 *
 * **Gotchas**
 *
 * Each build of this layer is a separate server. Provide the same build to all clients that need to communicate.
 *
 * **Example** (A server with its own seed)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 *
 * const server = (seed: number) => FakeRedis.layer({ seed, expiryDelay: ["0 millis", "1 second"], undoDepth: 100 })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<FakeRedis> => Layer.effect(FakeRedis, make(options))

/**
 * Provides one client for the server: Effect's `Redis` service and `Subscriber`, with their own connections.
 *
 * **Details**
 *
 * The client behaves like `IoRedis.layer`. In-flight commands fail when the connection breaks, and further commands
 * fail immediately until it is restored. The client reconnects in the background, and each subscription then receives a
 * `Gap`.
 *
 * **Gotchas**
 *
 * Each build of this layer is a separate client. Store the layer in a `const` to use the same client in several places.
 *
 * **Example** (Two clients of one server)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 * import { Context, Effect, Layer } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const clientOf = (name: string) =>
 *   Effect.map(Layer.build(FakeRedis.layerClient({ name, commandTimeout: "200 millis" })), Context.get(Redis))
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const [a, b] = yield* Effect.all([clientOf("a"), clientOf("b")])
 *   yield* a.send("SET", "greeting", "hello")
 *   return yield* b.send<string>("GET", "greeting") // "hello"
 * })).pipe(Effect.provide(FakeRedis.layer()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = (options: ClientOptions = {}): Layer.Layer<Redis | Subscriber, never, FakeRedis> =>
  Layer.effectContext(Effect.flatMap(FakeRedis, ({ server }) =>
    fakeClient.make(server, {
      name: options.name ?? "client",
      db: options.db ?? 0,
      protocol: options.protocol ?? 3,
      commandTimeout: Duration.fromInputUnsafe(options.commandTimeout ?? "1 second"),
      connectTimeout: Duration.fromInputUnsafe(options.connectTimeout ?? "2 seconds")
    })))
