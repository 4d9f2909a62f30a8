/**
 * Runs many instances of a program against a fake Redis, in virtual time, with faults drawn from a seed.
 *
 * A run has a phase with faults, then a phase without faults, and then closes everything. The same seed always gives
 * the same history, byte for byte.
 *
 * **Example** (A program exposed to all faults)
 *
 * ```ts
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const run = (seed: number) =>
 *   Effect.gen(function*() {
 *     const result = yield* Simulation.run({
 *       seed,
 *       clients: 3,
 *       program: (client) => Effect.sync(() => client.note("hello")),
 *       lock: { resources: [], ownerKey: (resource) => resource },
 *       faults: Simulation.allFaults,
 *       checkers: []
 *     })
 *     yield* Effect.log(Simulation.report(result))
 *   })
 * ```
 *
 * @since 0.1.0
 */
import type { Subscriber } from "@effect-simba/core/Subscriber"
import type { LuaVm } from "@effect-simba/fake-redis/Engine"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Redis } from "./internal/client/effectRedis.ts"
import { loadVm } from "./internal/client/luaVm.ts"
import {
  type Deviation,
  type Deviations,
  format as formatSchedule,
  parse as parseSchedule,
  usual
} from "./internal/simulation/choices.ts"
import { explore as exploreSetup, replay as replaySetup } from "./internal/simulation/explore.ts"
import type { FaultName, Faults as AnyFaults } from "./internal/simulation/faults.ts"
import { type Event as AnyEvent, format } from "./internal/simulation/history.ts"
import * as live from "./internal/simulation/live.ts"
import type { LockModel as AnyLockModel } from "./internal/simulation/ownershipTracker.ts"
import type { Range } from "./internal/simulation/prng.ts"
import { begin as beginSetup, run as runSetup } from "./internal/simulation/run.ts"
import type * as engine from "./internal/simulation/setup.ts"
import { shrink as shrinkSetup } from "./internal/simulation/shrink.ts"
import * as timeline from "./internal/simulation/timeline.ts"

/**
 * The simulated process in which a program runs.
 *
 * **Details**
 *
 * If the program fails, it is restarted a second later in a new process. A defect is a violation. `outside` acts on an
 * external resource, such as another database.
 *
 * **Example** (A counter in a file)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const program = (client: Simulation.Client) =>
 *   client.outside(5, ({ state }) => {
 *     const next = Number(state.get("count") ?? 0) + 1
 *     state.set("count", next)
 *     return next
 *   })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Client = engine.Client

/**
 * Describes how checkers read locks from the server.
 *
 * @see {@link run}
 * @category models
 * @since 0.1.0
 */
export type LockModel = AnyLockModel

/**
 * The faults that may happen.
 *
 * **Details**
 *
 * Times are in milliseconds. `every` is the mean time between two faults. A pair is a range from which a number is
 * drawn.
 *
 * - Per command or message: `requestDelay`, `replyDelay`, `messageDelay`, `lateMessage`, `loseRequest`, `loseReply`,
 *   `reset`, `straggle`, `hang`; see `FakeNetwork`.
 * - Per client, repeatedly: `clog` (one direction), `partition` (one direction or both), `deafen` (connections stay
 *   open, but no published messages arrive, as from a node that has left a Cluster), `pause` (a stall or SIGSTOP),
 *   `suspend` (the monotonic clock stops too), `kill` (a new process starts after `lasts`).
 * - `processor`: processes are busy. Tasks take time, and fibers run in any order and yield in unusual places. Each
 *   process draws the duration of a task in milliseconds (`task`), and the number of operations after which a fiber
 *   yields (`yieldAfter`). In a quarter of the processes, some tasks take longer (`stall`).
 * - Clocks: `clockOffset` and `clockRate` (how far a client's clock may differ), `clockStep`, `serverClockStep`.
 * - The server: `errorState`, `restart` (with probability `loseData`, the data is lost), `failover` (to a replica that
 *   is missing up to `lose` writes, and whose `clock` differs), `flushScripts`, `dropConnections`, `evict`.
 *
 * **Example** (A bad network, and a server that loses data)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const faults: Simulation.Faults = {
 *   loseReply: 0.05,
 *   partition: { every: 4000, lasts: [100, 8000] },
 *   restart: { every: 10_000, loseData: 1 }
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Faults = AnyFaults

/**
 * All faults except `hang`, at rates that leave time for work between faults.
 *
 * **Details**
 *
 * `hang` is not included, because its duration depends on the program. Add it if the program's commands have timeouts.
 *
 * @category constants
 * @since 0.1.0
 */
export const allFaults: Faults = {
  requestDelay: [0.1, 30],
  replyDelay: [0.1, 30],
  messageDelay: [0.1, 200],
  loseRequest: 0.01,
  loseReply: 0.01,
  reset: 0.005,
  straggle: [0, 3000],
  lateMessage: { chance: 0.03, by: [0, 10_000] },
  clog: { every: 5000, lasts: [50, 3000] },
  partition: { every: 8000, lasts: [100, 12_000] },
  deafen: { every: 12_000, lasts: [500, 8000] },
  pause: { every: 5000, lasts: [20, 12_000] },
  suspend: { every: 12_000, lasts: [100, 15_000] },
  kill: { every: 7000, lasts: [100, 5000] },
  processor: { task: [0, 0.005, 0.1, 1], stall: { chance: 0.002, by: [10, 100] }, yieldAfter: [2048, 2048, 200, 20] },
  clockOffset: 3_600_000,
  clockRate: 0.02,
  clockStep: { every: 9000, by: [-60_000, 60_000] },
  serverClockStep: { every: 15_000, by: [-2000, 2000] },
  errorState: { every: 9000, lasts: [50, 3000], states: ["LOADING", "BUSY", "READONLY", "MASTERDOWN"] },
  restart: { every: 15_000, loseData: 0.3 },
  failover: { every: 15_000, lose: [0, 6], clock: [-2000, 2000] },
  flushScripts: { every: 7000 },
  dropConnections: { every: 5000 },
  evict: { every: 12_000 }
}

/**
 * Options for a run.
 *
 * @see {@link run}
 * @category options
 * @since 0.1.0
 */
export interface Options<E> {
  readonly seed: number | string
  /** The number of clients, at least 1. Default: 3. */
  readonly clients?: number | undefined
  readonly program: (client: Client) => Effect.Effect<void, E, Redis | Subscriber | Scope.Scope>
  readonly lock: LockModel
  readonly checkers: ReadonlyArray<engine.Checker>
  /** The faults that may be injected. Default: none. */
  readonly faults?: Faults | undefined
  /** The names of the faults that are actually injected. Default: each run draws a random half of `faults`. */
  readonly enabled?: ReadonlyArray<FaultName> | undefined
  /** The ordinary network delays, in milliseconds. Default: 0.1 to 1. */
  readonly network?: { readonly requestDelay: Range; readonly replyDelay: Range } | undefined
  /** The duration of the phase with faults, in virtual time. Default: 60 seconds. */
  readonly duration?: Duration.Input | undefined
  /** The duration of the following phase without faults, in virtual time. Default: 5 seconds. */
  readonly calm?: Duration.Input | undefined
  /** The maximum time that the clients may then take to converge. Default: 60 seconds. */
  readonly liveness?: Duration.Input | undefined
  /** The maximum time that resources may take to disappear after everything is closed. Default: 30 seconds. */
  readonly closing?: Duration.Input | undefined
  /**
   * The maximum number of recent writes that the server can lose in a failover triggered by the caller of `begin`.
   * Default: the maximum in `faults`.
   */
  readonly undoDepth?: number | undefined
}

/**
 * An event in a history. `at` is the virtual time in milliseconds since the start.
 *
 * **Example** (Listing a lock's owners)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const owners = (events: ReadonlyArray<Simulation.Event>) =>
 *   events.flatMap((event) => event._tag === "Owner" ? [`${event.resource}: ${event.to ?? "nobody"}`] : [])
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Event = AnyEvent

/**
 * The outcome of a run. The same seed and options always give the same outcome.
 *
 * **Example** (Listing the faults in a run)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const faultsOf = (result: Simulation.Result) =>
 *   result.events.flatMap((event) => event._tag === "Fault" ? [`${event.fault} of ${event.target} at ${event.at} ms`] : [])
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Result {
  readonly seed: number | string
  /** For a run in an exploration: its deviations, to pass to `replay`. */
  readonly schedule?: string
  readonly clients: number
  /** The duration of the phase with faults, in virtual milliseconds. */
  readonly duration: number
  readonly enabled: ReadonlyArray<FaultName>
  readonly violations: ReadonlyArray<engine.Violation>
  readonly events: ReadonlyArray<Event>
  readonly commands: number
  readonly virtualMillis: number
}

const millis = (input: Duration.Input) => Duration.toMillis(Duration.fromInputUnsafe(input))

/**
 * Refuses options with which a run would prove nothing: no clients, or `enabled` faults that are missing from `faults`.
 */
const setupOf = <E>(options: Options<E>): engine.Setup<E> => {
  const { clients = 3, faults = {} } = options
  if (!Number.isSafeInteger(clients) || clients < 1) {
    throw new RangeError(`clients: ${clients} is not a whole number of at least 1`)
  }
  const unknown = options.enabled?.find((name) => faults[name] === undefined)
  if (unknown !== undefined) throw new RangeError(`enabled: "${unknown}" is not one of the faults`)
  return {
    seed: String(options.seed),
    clients,
    program: options.program,
    lock: options.lock,
    checkers: options.checkers,
    faults,
    enabled: options.enabled,
    network: options.network ?? { requestDelay: [0.1, 1], replyDelay: [0.1, 1] },
    duration: millis(options.duration ?? "60 seconds"),
    calm: millis(options.calm ?? "5 seconds"),
    liveness: millis(options.liveness ?? "60 seconds"),
    closing: millis(options.closing ?? "30 seconds"),
    undoDepth: options.undoDepth
  }
}

const resultOf = (options: Options<never>, setup: engine.Setup<never>, outcome: engine.Outcome): Result => ({
  seed: options.seed,
  clients: setup.clients,
  duration: setup.duration,
  ...outcome
})

const runWith = <E>(options: Options<E>, vm: LuaVm): Result => {
  const setup = setupOf(options) as engine.Setup<never>
  return resultOf(options as Options<never>, setup, runSetup(setup, vm))
}

/**
 * Runs one simulation. It never waits in real time.
 *
 * **Example** (A lock without renewal)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Checker, Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const lock: Simulation.LockModel = { resources: ["a"], ownerKey: (resource) => `lock:${resource}` }
 *
 * const holding = (client: Simulation.Client) =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     const id = `${client.name}.${client.generation}`
 *     yield* Effect.repeat(redis.send("SET", "lock:a", id, "NX", "PX", "1000"), { until: (reply) => reply === "OK" })
 *     client.note("begin", { resource: "a", id })
 *     yield* Effect.sleep("2 seconds")
 *     client.note("step", { resource: "a", id })
 *   })
 *
 * it.effect("is not protected", () =>
 *   Effect.gen(function*() {
 *     const result = yield* Simulation.run({
 *       seed: 1,
 *       program: holding,
 *       lock,
 *       checkers: [Checker.rules.workIsProtected],
 *       duration: "10 seconds"
 *     })
 *     assert.isAbove(result.violations.length, 0)
 *   }))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <E>(options: Options<E>): Effect.Effect<Result> => Effect.map(loadVm, (vm) => runWith(options, vm))

/**
 * A simulation driven by its caller, who lets time pass and injects faults.
 *
 * **Details**
 *
 * It consists of plain functions, so that web pages and other programs without Effect can call them. Actions take
 * effect at the current virtual time, and are recorded in the history as faults.
 *
 * @see {@link begin}
 * @category models
 * @since 0.1.0
 */
export interface Live extends live.Live {
  /** The result so far, in the same form as from `run`. */
  readonly result: () => Result
}

/**
 * A request, reply or published message that was sent over a link.
 *
 * **Example** (Listing in-flight parcels)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const underWay = (live: Simulation.Live): ReadonlyArray<Simulation.Parcel> =>
 *   live.parcels.filter(({ arrivedAt }) => arrivedAt === undefined)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Parcel = live.Parcel

/**
 * Begins a simulation driven by the caller.
 *
 * **When to use**
 *
 * Use it to watch a fleet, as the playground does, or to inject a specific fault at a specific moment. Use `run` for a
 * complete simulation with random faults.
 *
 * **Details**
 *
 * The phases and the history are the same as for `run`. If `duration` is infinite and no `faults` are given, all faults
 * come from the caller.
 *
 * **Example** (Killing a process after a second)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * it.effect("writes until it is killed", () =>
 *   Effect.gen(function*() {
 *     const live = yield* Simulation.begin({
 *       seed: 1,
 *       clients: 1,
 *       program: () =>
 *         Redis.use((redis) => redis.send("INCR", "n")).pipe(Effect.delay("300 millis"), Effect.forever),
 *       lock: { resources: [], ownerKey: (resource) => resource },
 *       checkers: [],
 *       duration: Infinity
 *     })
 *     live.advance(1000)
 *     live.kill("c1")
 *     live.advance(60_000)
 *     assert.deepStrictEqual(live.read("n"), ["3"])
 *   }))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const begin = <E>(options: Options<E>): Effect.Effect<Live> =>
  Effect.map(loadVm, (vm) => {
    const setup = setupOf(options) as engine.Setup<never>
    const running = beginSetup(setup, vm)
    return {
      ...live.make(running),
      result: () => resultOf(options as Options<never>, setup, running.outcome())
    }
  })

/**
 * Searches for a shorter history with the same kind of violation, using fewer faults, fewer clients or less time.
 *
 * **Details**
 *
 * Returns the shortest history found. If the given result has no violation, returns it unchanged.
 *
 * **Example** (Logging the shortest failing history)
 *
 * ```ts
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const explain = (options: Simulation.Options<never>) =>
 *   Effect.gen(function*() {
 *     const result = yield* Simulation.run(options)
 *     if (result.violations.length === 0) return
 *     const shortest = yield* Simulation.shrink(options, result)
 *     yield* Effect.log(Simulation.report(shortest, { lines: 40 }))
 *   })
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const shrink = <E>(options: Options<E>, result: Result): Effect.Effect<Result> =>
  Effect.map(loadVm, (vm) => {
    const setup = setupOf(options) as engine.Setup<never>
    const shortest = shrinkSetup(setup, result, (setup) => runSetup(setup, vm))
    return shortest === undefined ? result : resultOf(options as Options<never>, shortest.setup, shortest.outcome)
  })

/**
 * A program for `explore`, with its checkers.
 *
 * **Details**
 *
 * `vary` lists how a schedule may deviate from the normal one, in which nothing goes wrong. The default deviations are:
 * a request, a reply or a published message is 1 ms late; a request or a reply is lost; a connection breaks; a process
 * is killed; work under `Client.interruptible` is interrupted; a runnable fiber continues 1 ms later than the others.
 *
 * Optional deviations are: a process is cut off, paused or suspended; its clocks run at a different rate; the server's
 * clock is stepped; a replica takes over without the last write. `where` restricts where processes may deviate.
 *
 * Keep the program small: `n` possible deviations lead to about `n * n / 2` schedules with two of them. Use
 * `Client.ready` to exclude the startup of the processes.
 *
 * @see {@link explore}
 * @category options
 * @since 0.1.0
 */
export interface Plan<E> extends Omit<Options<E>, "seed" | "faults" | "enabled" | "network"> {
  readonly vary?: Partial<Deviations> | undefined
  /**
   * Whether the program has done its work. The exploration may then end before `duration`, which saves schedules for
   * long-lived programs such as data-stream consumers. Called every 50 ms. By default it never ends early.
   */
  readonly isOver?: ((view: Parameters<engine.Checker["start"]>[0]) => boolean) | undefined
}

/**
 * The result of an exploration.
 *
 * **Example** (Summarizing the result)
 *
 * ```ts
 * import type { Simulation } from "@effect-simba/testkit"
 *
 * const line = ({ isComplete, schedules, states, violations }: Simulation.Explored) =>
 *   `${schedules} schedules, ${states} histories, ${violations} violations${isComplete ? "" : ", not all of them"}`
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Explored {
  /** The number of schedules that were run. */
  readonly schedules: number
  /**
   * The number of schedules that were skipped because their last kill has the same outcome as an earlier kill. Includes
   * skipped schedules from `branches`.
   */
  readonly skipped: number
  /** The number of distinct histories. */
  readonly states: number
  /** The number of schedules that ended with a violation. */
  readonly violations: number
  /** The first violation found. No other violation has fewer deviations. */
  readonly first: Result | undefined
  /** Whether all schedules were run. */
  readonly isComplete: boolean
  /**
   * The schedules with one more deviation than `within`. Each is a part of the exploration that can run in a separate
   * thread.
   */
  readonly branches: ReadonlyArray<string>
}

const explorable = <E>(plan: Plan<E>) => {
  const options = { ...plan, seed: "explore", enabled: [] } as unknown as Options<never>
  const latency = [0.1, 0.1] as const
  return {
    setup: {
      ...setupOf<never>({ ...options, network: { requestDelay: latency, replyDelay: latency } }),
      isOver: plan.isOver
    },
    vary: { ...usual, ...plan.vary },
    resultOf: (schedule: ReadonlyArray<Deviation>, outcome: engine.Outcome): Result => ({
      ...resultOf(options, setupOf(options), outcome),
      schedule: formatSchedule(schedule)
    })
  }
}

/**
 * Runs a program under every schedule with at most `deviations` deviations (default: 1), starting with the fewest
 * deviations.
 *
 * **When to use**
 *
 * Use `run` to find bugs that require many faults or a long time. Use `explore` to show that a short program has no
 * bugs that a few faults would reveal.
 *
 * **Details**
 *
 * Except for deviations, everything arrives in order and after 0.1 ms. The exploration starts when all processes have
 * reached `Client.ready`. It ends after `duration`, or earlier if `isOver` returns true. The `liveness` phase follows.
 * `explore` stops at the first violation, unless `all` is set. With `within`, it runs only schedules that extend the
 * given one.
 *
 * **Gotchas**
 *
 * Schedules that lead to the same state are all run, because a process's state is in its fibers, which cannot be
 * compared. The only exception is a kill with the same outcome as the previous kill: nothing was sent, run or noted
 * since, and the next process starts at the same instant.
 *
 * **Example** (Finding a race between a check and a write)
 *
 * ```ts
 * import { Checker, Simulation } from "@effect-simba/testkit"
 * import { assert, it } from "@effect/vitest"
 * import { Effect } from "effect"
 * import { Redis } from "effect/persistence/Redis"
 *
 * const lock: Simulation.LockModel = { resources: ["a"], ownerKey: (resource) => `lock:${resource}` }
 *
 * // Another process may take the lock between the check and the write
 * const acquire = (client: Simulation.Client) =>
 *   Effect.gen(function*() {
 *     const redis = yield* Redis
 *     yield* client.ready
 *     yield* Effect.sleep(10 * client.index)
 *     if ((yield* redis.send("EXISTS", "lock:a")) !== 0) return
 *     yield* redis.send("SET", "lock:a", client.name, "PX", "1000")
 *     client.note("begin", { resource: "a", id: client.name })
 *   })
 *
 * it.effect("is found", () =>
 *   Effect.gen(function*() {
 *     const { first } = yield* Simulation.explore({
 *       clients: 2,
 *       program: acquire,
 *       lock,
 *       checkers: [Checker.rules.oneOwner],
 *       vary: { delays: [20] },
 *       duration: "1 second"
 *     }, { deviations: 1 })
 *     assert.include(first?.schedule, "late by 20 ms")
 *   }))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const explore = <E>(plan: Plan<E>, options?: {
  readonly deviations?: number | undefined
  readonly all?: boolean | undefined
  readonly within?: string | undefined
}): Effect.Effect<Explored> =>
  Effect.map(loadVm, (vm) => {
    const { resultOf, setup, vary } = explorable(plan)
    const { first, ...explored } = exploreSetup(setup, vary, {
      maxDeviations: options?.deviations ?? 1,
      stopsAtFirst: options?.all !== true,
      within: parseSchedule(options?.within ?? "")
    }, (setup) => runSetup(setup, vm))
    return {
      ...explored,
      first: first === undefined ? undefined : resultOf(first.schedule, first.outcome),
      branches: explored.branches.map(formatSchedule)
    }
  })

/**
 * Replays one schedule from an exploration. `schedule` comes from the exploration's result.
 *
 * **Example** (Showing a schedule's history)
 *
 * ```ts
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * const show = <E>(plan: Simulation.Plan<E>) =>
 *   Effect.map(Simulation.replay(plan, "4 c1 request lost"), (result) => Simulation.report(result, { format: "trace" }))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const replay = <E>(plan: Plan<E>, schedule: string): Effect.Effect<Result> =>
  Effect.map(loadVm, (vm) => {
    const { resultOf, setup, vary } = explorable(plan)
    const deviations = parseSchedule(schedule)
    return resultOf(deviations, replaySetup(setup, vary, deviations, (setup) => runSetup(setup, vm)))
  })

const nameOf = ({ schedule, seed }: Result) => schedule === undefined ? `seed ${seed}` : `schedule "${schedule}"`

const title = (result: Result) => `${nameOf(result)}: ${result.violations[0]?.message ?? "no violation"}`

const summary = (result: Result, lines: number): string => {
  const { clients, commands, duration, enabled, events, violations, virtualMillis } = result
  const head =
    `${nameOf(result)}: ${clients} clients, ${duration / 1000} s with faults (${enabled.join(", ") || "none"}), ` +
    `${commands} commands in ${(virtualMillis / 1000).toFixed(1)} virtual seconds`
  if (violations.length === 0) return head
  return [
    head,
    ...violations.slice(0, 5).map(({ at, checker, message }) =>
      `VIOLATION at ${(at / 1000).toFixed(3)} s, ${checker}: ${message}`
    ),
    "who held what:",
    ...timeline.asText(events).split("\n").slice(-Math.ceil(lines / 2)),
    "what happened:",
    ...events.map(format).slice(-lines)
  ].join("\n")
}

/**
 * Describes a run, as text or as a picture.
 *
 * **Details**
 *
 * - `summary` (default): the seed, the faults and the violations. For a failure, also the last `lines` lines of the
 *   history (default: 60) and half as many of the timeline.
 * - `trace`: the history, with one line per event. The same seed and options always give the same trace.
 * - `timeline`: the owners of each resource over time.
 * - `svg`: the owners and the faults over time, as an SVG picture.
 *
 * **Example** (Saving a picture of a run)
 *
 * ```ts
 * import { Simulation } from "@effect-simba/testkit"
 * import { Effect, FileSystem } from "effect"
 *
 * const save = (result: Simulation.Result) =>
 *   Effect.flatMap(FileSystem.FileSystem, (files) =>
 *     files.writeFileString(`seed-${result.seed}.svg`, Simulation.report(result, { format: "svg" })))
 * ```
 *
 * @category formatting
 * @since 0.1.0
 */
export const report = (result: Result, options?: {
  readonly format?: "summary" | "trace" | "timeline" | "svg" | undefined
  readonly lines?: number | undefined
}): string => {
  switch (options?.format) {
    case "trace":
      return result.events.map(format).join("\n")
    case "timeline":
      return timeline.asText(result.events)
    case "svg":
      return timeline.asSvg(result.events, title(result))
    default:
      return summary(result, options?.lines ?? 60)
  }
}
