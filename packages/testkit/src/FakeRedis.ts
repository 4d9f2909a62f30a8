/**
 * A Redis server in memory, whose time is the `Clock`: under `TestClock`, `TestClock.adjust` moves leases, timeouts and
 * expiry. It runs the scripts that production runs, and serves Effect's `Redis` service and our `Subscriber`.
 *
 * **Example** (Two clients of one server, and time)
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
 *   }).pipe(Effect.provide(TestRedis.layer)))
 * ```
 *
 * @since 0.1.0
 */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Redis } from "effect/persistence/Redis"
import * as fakeClient from "./internal/client/client.ts"
import { FakeServer } from "./internal/client/server.ts"
import { loadLua, type LuaVm } from "./internal/redis/lua/vm.ts"
import type { ErrorState as ErrorStateName, Reply as ReplyValue } from "./internal/redis/types.ts"
import { Prng } from "./internal/simulation/prng.ts"
import * as timers from "./internal/simulation/timers.ts"

/**
 * A reply as a client library hands it out: `null` is nil, nested arrays nest, an error is a value.
 *
 * **Example** (The commands that were refused)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const isRefusal = (reply: FakeRedis.Reply) => reply instanceof Error
 *
 * const refused = Effect.gen(function*() {
 *   const server = yield* FakeRedis.FakeRedis
 *   return (yield* server.trace).filter(({ reply }) => isRefusal(reply)).map(({ args }) => args.join(" "))
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Reply = ReplyValue

/**
 * The state in which a server refuses commands.
 *
 * **Example** (Each way to refuse, one after the other)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { TestClock } from "effect/testing"
 *
 * const states: ReadonlyArray<FakeRedis.ErrorState> = ["LOADING", "BUSY", "READONLY"]
 *
 * const program = Effect.flatMap(FakeRedis.FakeRedis, (server) =>
 *   Effect.forEach(states, (state) =>
 *     Effect.andThen(server.setErrorState(state), TestClock.adjust("1 second")), { discard: true }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type ErrorState = ErrorStateName

/**
 * One key of the server. `expiresAt` is in milliseconds of the server's wall clock.
 *
 * @see {@link FakeRedis}
 * @category models
 * @since 0.1.0
 */
export interface Key {
  readonly db: number
  readonly key: string
  readonly type: "string" | "hash" | "list" | "set" | "zset" | "stream"
  readonly expiresAt: number | undefined
}

/**
 * What a key holds.
 *
 * @see {@link FakeRedis}
 * @category models
 * @since 0.1.0
 */
export type Dump =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "list" | "set"; readonly value: ReadonlyArray<string> }
  | { readonly type: "hash"; readonly value: ReadonlyArray<readonly [field: string, value: string]> }
  | { readonly type: "zset"; readonly value: ReadonlyArray<readonly [member: string, score: number]> }
  | { readonly type: "stream"; readonly value: ReadonlyArray<readonly [id: string, fields: ReadonlyArray<string>]> }

/**
 * A command that the server ran, who sent it over which kind of connection, and what it answered.
 *
 * @see {@link FakeRedis}
 * @category models
 * @since 0.1.0
 */
export interface Command {
  readonly client: string
  readonly role: "commands" | "subscriber" | "reserved"
  readonly args: ReadonlyArray<string>
  readonly reply: Reply
  /** Server time in microseconds since the epoch. No two commands share one. */
  readonly micros: number
}

/**
 * - `epoch`: added to the `Clock` to make the server's wall clock, in milliseconds. By default a 13-digit time under a
 *   clock that starts at 0, such as `TestClock`, and nothing under any other.
 * - `seed` (default `fake-redis`): decides what is left to chance, on the server and in the network.
 * - `expiryDelay` (default 0 to 100 milliseconds): how late the server notices that a key which nobody touches has
 *   expired; a draw between the two. Such lateness is what real servers show.
 * - `undoDepth` (default 16): how many of the last writes `failOver` can lose.
 * - `trace` (default 10,000): how many of the last commands the trace keeps.
 *
 * @see {@link layer}
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly epoch?: number | undefined
  readonly seed?: string | number | undefined
  readonly expiryDelay?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  readonly undoDepth?: number | undefined
  readonly trace?: number | undefined
}

/**
 * - `name` (default `client`): in the trace, and of the link in `FakeNetwork`. Clients of one name share one link.
 * - `db` (default 0): the database.
 * - `protocol` (default 3): whose shapes replies have. With 3 they are those of `IoRedis.layer`, where scores and values come
 *   in pairs and XREAD answers names and entries in turn; with 2 those of `IoRedis.layer` with `client: { protocol: 2 }`,
 *   and of other clients.
 * - `commandTimeout` (default 1 second), `connectTimeout` (default 2 seconds): as those of a real client.
 *
 * @see {@link layerClient}
 * @category models
 * @since 0.1.0
 */
export interface ClientOptions {
  readonly name?: string | undefined
  readonly db?: number | undefined
  readonly protocol?: 2 | 3 | undefined
  readonly commandTimeout?: Duration.Input | undefined
  readonly connectTimeout?: Duration.Input | undefined
}

/**
 * The server itself, as tests look at it and break it.
 *
 * **Example** (What a program leaves behind)
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
 *   }).pipe(Effect.provide(TestRedis.layer)))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class FakeRedis extends Context.Service<FakeRedis, {
  /** @internal */
  readonly server: FakeServer
  /** The keys that are there, of all databases, in order. */
  readonly keys: Effect.Effect<ReadonlyArray<Key>>
  /** What a key holds, without touching it; `undefined` if it is not there. */
  readonly dump: (key: string, db?: number) => Effect.Effect<Dump | undefined>
  /** The last commands, in the order in which the server ran them. */
  readonly trace: Effect.Effect<ReadonlyArray<Command>>
  readonly clearTrace: Effect.Effect<void>
  /** The server's wall clock, in milliseconds. */
  readonly now: Effect.Effect<number>
  /** Steps the server's wall clock; a negative step sets it back. */
  readonly stepClock: (step: Duration.Input) => Effect.Effect<void>
  /** Removes a key as expiry does, with its event. Answers whether it was there. */
  readonly forceExpire: (key: string, db?: number) => Effect.Effect<boolean>
  /** Removes a key as eviction does, with its event. Answers whether it was there. */
  readonly evict: (key: string, db?: number) => Effect.Effect<boolean>
  /** Forgets all scripts, as SCRIPT FLUSH or a fail-over does. */
  readonly flushScripts: Effect.Effect<void>
  /** Breaks the connections of one client, or of all. Commands under way fail, and may have been run. */
  readonly dropConnections: (client?: string) => Effect.Effect<void>
  /** Restarts the server: connections, scripts and settings are gone, and the data unless it is kept. */
  readonly restart: (options: { readonly keepData: boolean }) => Effect.Effect<void>
  /**
   * Fails over to a replica that lacks the last writes. Answers how many it lacks. Dies if that is more than the server
   * remembers: see `undoDepth`.
   */
  readonly failOver: (options: { readonly loseLastWrites: number }) => Effect.Effect<number>
  /** Refuses commands with this error, until it is set to `undefined`. */
  readonly setErrorState: (state: ErrorState | undefined) => Effect.Effect<void>
  /** How many subscriptions there are. */
  readonly subscriptions: Effect.Effect<number>
  /** How many connections there are, of one client or of all. */
  readonly connections: (client?: string) => Effect.Effect<number>
}>()("@effect-simba/testkit/FakeRedis") {}

/** Any 13-digit time will do: a shorter one would hide what goes wrong with long numbers. */
const testEpoch = 1_750_000_000_000

let lua: Promise<LuaVm> | undefined

/**
 * The Lua VM of this process, loaded once: the only thing here that takes real time.
 *
 * @internal
 */
export const loadVm: Effect.Effect<LuaVm> = Effect.promise(() => lua ??= loadLua())

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
      epoch: options.epoch ?? (clock.currentTimeMillisUnsafe() < 1e12 ? testEpoch : 0),
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
export const fromServer = (server: FakeServer): FakeRedis["Service"] => {
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
    failOver: ({ loseLastWrites }) => Effect.sync(() => server.failOver(loseLastWrites)),
    setErrorState: (state) => Effect.sync(() => engine.setErrorState(state)),
    subscriptions: Effect.sync(() => engine.subscriptions()),
    connections: (client) => Effect.sync(() => server.openConnections(client))
  }
}

/**
 * A server. Each use of this layer is a server of its own: share one among the clients that must meet.
 *
 * **Example** (Another server for another seed)
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
 * One client of the server: Effect's `Redis` service and our `Subscriber`, over connections of its own. It behaves as
 * `IoRedis.layer` does: a command during an outage fails at once, what was under way when the connection broke fails,
 * and the connection is restored in the background, with a gap for every subscription.
 *
 * Each use of this layer is a client of its own; keep it in a `const` to use one client in several places.
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
