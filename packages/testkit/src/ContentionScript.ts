/**
 * Random contention scripts, for property tests of programs that use mutexes and of mutex stores.
 *
 * A script lists which worker acquires which mutex, when, and how. `run` plays the script under `TestClock`, and tests
 * then check the resulting history.
 *
 * **Example** (Mutual exclusion under any contention)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Mutex } from "@effect-simba/core"
 * import { ContentionScript } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * it.effect.prop("never two owners", [ContentionScript.arbitrary({ workers: 4 })], ([script]) =>
 *   Effect.gen(function*() {
 *     const history = yield* ContentionScript.run(script, { layer: Mutex.layerMemory() })
 *     const problems = ContentionScript.problems(history)
 *     assert.isEmpty(problems, problems.join("\n"))
 *   }))
 * ```
 *
 * @since 0.1.0
 */
import type { SimbaError } from "@effect-simba/core"
import * as Mutex from "@effect-simba/core/Mutex"
import { tokenStride } from "@effect-simba/core/MutexStore"
import type { LeaseLost } from "@effect-simba/core/SimbaError"
import type * as Arbitrary from "effect/Arbitrary"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { draw, millis } from "./internal/contentionScript/steps.ts"

type Step =
  & {
    /** When the step starts, in milliseconds after the start of the script. */
    readonly at: number
    /**
     * The worker, which represents a process. A worker's steps do not wait for each other, because each one is a
     * separate fiber.
     */
    readonly worker: string
    readonly mutex: string
    /** How long the worker holds the mutex, in milliseconds. */
    readonly hold: number
  }
  & (
    /** `acquire` waits indefinitely. `acquireIfAvailable` does not wait. */
    | { readonly kind: "acquire" | "acquireIfAvailable" }
    /**
     * `timeout` waits for at most `patience` milliseconds. `interrupt` is interrupted after `patience` milliseconds,
     * even if it is already working.
     */
    | { readonly kind: "timeout" | "interrupt"; readonly patience: number }
  )

/**
 * The attempts to acquire mutexes, in any order.
 *
 * **Example** (A hand-written race)
 *
 * ```ts
 * import type { ContentionScript } from "@effect-simba/testkit"
 *
 * const race: ContentionScript.Script = [
 *   { at: 0, worker: "a", mutex: "m", hold: 1000, kind: "acquire" },
 *   { at: 1, worker: "b", mutex: "m", hold: 100, kind: "acquireIfAvailable" },
 *   { at: 1, worker: "c", mutex: "m", hold: 100, kind: "timeout", patience: 500 }
 * ]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Script = ReadonlyArray<Step>

type Options = {
  /** The number of workers or their names. Default: 3. */
  readonly workers?: number | ReadonlyArray<string> | undefined
  /** The number of mutexes or their names. Default: 2. */
  readonly mutexes?: number | ReadonlyArray<string> | undefined
  /** The minimum and maximum number of steps. Default: 1 to 20. */
  readonly length?: readonly [minimum: number, maximum: number] | undefined
  /** The period in which all steps start. Default: 10 seconds. */
  readonly within?: Duration.Input | undefined
  /** The range of `hold`. Default: 1 millisecond to 3 seconds. */
  readonly hold?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  /** The range of `patience`. Default: 1 millisecond to 3 seconds. */
  readonly patience?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  /** The kinds of steps to generate. Default: all kinds. */
  readonly kinds?: ReadonlyArray<Step["kind"]> | undefined
}

/**
 * Generates scripts in chronological order.
 *
 * **Details**
 *
 * Shrinking leaves a failing script with fewer, earlier and shorter steps.
 *
 * **Example** (Two processes that never give up)
 *
 * ```ts
 * import { ContentionScript } from "@effect-simba/testkit"
 *
 * const patient = ContentionScript.arbitrary({
 *   workers: ["a", "b"],
 *   mutexes: 1,
 *   hold: ["10 millis", "20 seconds"],
 *   kinds: ["acquire"]
 * })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const arbitrary = (options?: Options): Arbitrary.Arbitrary<Script> => draw(options ?? {})

type Holding = {
  readonly step: Step
  readonly worker: string
  readonly mutex: string
  readonly token: number
  /** When the step sent its request, started its work and ended it, in milliseconds after the start of the script. */
  readonly asked: number
  readonly from: number
  readonly to: number
  /** The positions of the start and the end among all events. They order events within the same millisecond. */
  readonly order: readonly [from: number, to: number]
  /** Whether the lease was lost while the step was working. */
  readonly lost: boolean
}

/**
 * The outcome of a script.
 *
 * **Example** (The longest wait)
 *
 * ```ts
 * import type { ContentionScript } from "@effect-simba/testkit"
 *
 * const longestWait = ({ holdings }: ContentionScript.History) =>
 *   Math.max(0, ...holdings.map(({ asked, from }) => from - asked))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface History {
  /** Steps that acquired their mutex, in the order in which they started to work. */
  readonly holdings: ReadonlyArray<Holding>
  /** Steps that were refused because the mutex was not free. */
  readonly refused: ReadonlyArray<Step>
  /** Steps that stopped waiting due to a timeout or an interruption. */
  readonly abandoned: ReadonlyArray<Step>
  /** Steps that failed with an error. */
  readonly failed: ReadonlyArray<{ readonly step: Step; readonly error: SimbaError.AcquireError | LeaseLost }>
  /** Steps that were still waiting when the script ended. */
  readonly unserved: ReadonlyArray<Step>
  /** Whether all workers shared a single `Mutex`, and so formed a single line. Default: false. */
  readonly isOneProcess?: boolean
}

type Writable<A> = { -readonly [K in keyof A]: A[K] }

const play = Effect.fnUntraced(function*(
  script: Script,
  mutexes: ReadonlyMap<string, Mutex.Mutex["Service"]>,
  grace: Duration.Input
) {
  const beginning = yield* Clock.currentTimeMillis
  const now = Effect.map(Clock.currentTimeMillis, (now) => now - beginning)
  const holdings: Array<Writable<Holding>> = []
  const refused: Array<Step> = []
  const abandoned: Array<Step> = []
  const failed: Array<History["failed"][number]> = []
  let order = 0

  const attempt = Effect.fnUntraced(function*(step: Step) {
    const { hold, kind, mutex, worker } = step
    yield* Effect.sleep(step.at)
    const asked = yield* now
    let holding: Writable<Holding> | undefined
    const work = ({ token }: { readonly token: number }) =>
      Effect.gen(function*() {
        const present = { from: yield* now, to: Infinity, order: [order++, Infinity], lost: false } as const
        const mine: Writable<Holding> = holding = { step, worker, mutex, token, asked, ...present }
        holdings.push(mine)
        yield* Effect.ensuring(
          Effect.sleep(hold),
          Effect.map(now, (to) => {
            mine.to = to
            mine.order = [mine.order[0], order++]
          })
        )
      })
    const service = mutexes.get(worker)!
    const attempt = kind === "acquireIfAvailable"
      ? Effect.map(service.withLockIfAvailable(mutex)(work), (result) => {
        if (Option.isNone(result)) refused.push(step)
      })
      : kind === "interrupt"
      ? Effect.map(Effect.timeoutOption(service.withLock(mutex)(work), step.patience), () => {
        if (holding === undefined) abandoned.push(step)
      })
      : service.withLock(mutex, kind === "timeout" ? { timeout: step.patience } : {})(work)
    yield* Effect.catch(attempt, (error) =>
      Effect.sync(() => {
        if (error._tag === "LeaseLost" && holding !== undefined) holding.lost = true
        else if (error._tag !== "AcquireTimeout") failed.push({ step, error })
        else abandoned.push(step)
      }))
  })

  const longest = script.reduce((sum, { at, hold }) => Math.max(sum, at) + hold, 0) + millis(grace)
  const attempts = Effect.forEach(script, attempt, { concurrency: "unbounded", discard: true })
  yield* Effect.timeoutOption(attempts, longest)
  const done = new Set([...refused, ...abandoned, ...[...holdings, ...failed].map(({ step }) => step)])
  const unserved = script.filter((step) => !done.has(step))
  return { holdings, refused, abandoned, failed, unserved } satisfies History
})

/** Runs an effect, and advances the clock until the effect completes. */
const driven = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>, tick: Effect.Effect<void>) {
  const fiber = yield* Effect.forkChild(effect)
  while (fiber.pollUnsafe() === undefined) yield* tick
  return yield* Fiber.join(fiber)
})

/**
 * Plays a script on `Mutex`, advancing `TestClock` until all workers have finished. Returns the history.
 *
 * **Example** (An attempt that is refused instead of waiting)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { Mutex } from "@effect-simba/core"
 * import { ContentionScript } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * it.effect("refuses the second", () =>
 *   Effect.gen(function*() {
 *     const history = yield* ContentionScript.run([
 *       { at: 0, worker: "a", mutex: "m", hold: 1000, kind: "acquire" },
 *       { at: 500, worker: "b", mutex: "m", hold: 1000, kind: "acquireIfAvailable" }
 *     ], { layer: Mutex.layerMemory(), grace: "10 seconds" })
 *     assert.deepStrictEqual(history.holdings.map(({ worker }) => worker), ["a"])
 *     assert.deepStrictEqual(history.refused.map(({ worker }) => worker), ["b"])
 *   }))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = <E, R>(
  script: Script,
  options: {
    /**
     * One `Mutex` for all workers, or a function that makes a separate one for each worker, as if the workers were
     * processes. If they share a layer, such as a server, provide it around `run`.
     */
    readonly layer: Layer.Layer<Mutex.Mutex, E, R> | ((worker: string) => Layer.Layer<Mutex.Mutex, E, R>)
    /**
     * The extra time that the script may take beyond the sum of all work. Steps that are still waiting then count as
     * `unserved`. Default: 1 minute.
     */
    readonly grace?: Duration.Input | undefined
  }
): Effect.Effect<History, E, R> =>
  Effect.flatMap(Scope.make(), (scope) =>
    Effect.gen(function*() {
      const { layer } = options
      const build = (layer: Layer.Layer<Mutex.Mutex, E, R>) =>
        Effect.map(Scope.provide(Layer.build(layer), scope), Context.get(Mutex.Mutex))
      const workers = [...new Set(script.map(({ worker }) => worker))]
      // Wait in real time too, because a layer may load a module
      const mutexes = yield* driven(
        typeof layer === "function"
          ? Effect.forEach(workers, (worker) => build(layer(worker)))
          : Effect.map(build(layer), (shared) => workers.map(() => shared)),
        Effect.andThen(TestClock.withLive(Effect.sleep("1 millis")), TestClock.adjust("10 millis"))
      )
      const inTime = [...script].sort((a, b) => a.at - b.at)
      const history = yield* driven(
        play(inTime, new Map(workers.map((worker, index) => [worker, mutexes[index]!])), options.grace ?? "1 minute")
          .pipe(Effect.onExit((exit) => Scope.close(scope, exit))),
        TestClock.adjust("1 second")
      )
      return { ...history, isOneProcess: typeof layer !== "function" }
    }).pipe(Effect.onExit((exit) => Scope.close(scope, exit))))

const span = ({ from, to, token, worker }: Holding) => `${worker} (${from} to ${to} ms, token ${token})`

/** Compares all pairs of holdings of the same mutex, the earlier one first, and reports problems. */
const pairs = (history: History, wrong: (earlier: Holding, later: Holding) => string | undefined) =>
  history.holdings.flatMap((later, index) =>
    history.holdings.slice(0, index).flatMap((earlier) => {
      const problem = earlier.mutex === later.mutex ? wrong(earlier, later) : undefined
      return problem === undefined ? [] : [`${later.mutex}: ${span(later)} ${problem} ${span(earlier)}`]
    })
  )

const twice = (history: History) =>
  pairs(history, ({ order }, later) => later.order[0] < order[1] ? "holds it together with" : undefined)

const notGrowing = (history: History) =>
  pairs(history, ({ token }, later) => later.token <= token ? "does not have a larger token than" : undefined)

/**
 * When a holding got its place in the fleet's queue: when the first fiber behind that place sent its request, but not
 * before the process's previous holding ended. `since` includes abandoned and failed steps, because one of them may
 * have requested the place.
 */
const placeOf = (history: History, { asked, mutex, order, worker }: Holding) => {
  const isSame = (other: Step | Holding) => other.mutex === mutex && other.worker === worker
  const last = history.holdings.reduce((last, other) => isSame(other) && other.order[0] < order[0] ? other.to : last, 0)
  const before = [...history.abandoned, ...history.failed.map(({ step }) => step)].filter(isSame).map(({ at }) => at)
  return { since: Math.max(last, Math.min(asked, ...before)), latest: Math.max(last, asked) }
}

/**
 * Whether the lease followed another one within the same grant to its process. If so, their tokens are in the same
 * stride.
 */
const sharesTurn = ({ holdings }: History, { mutex, token, worker }: Holding) =>
  holdings.some((other) =>
    other.mutex === mutex && other.worker === worker && other.token < token &&
    Math.floor(other.token / tokenStride) === Math.floor(token / tokenStride)
  )

const overtaken = (history: History) =>
  pairs(history, (earlier, later) => {
    if (history.isOneProcess === true || earlier.worker === later.worker) {
      return later.asked < earlier.asked ? `asked at ${later.asked} ms, before` : undefined
    }
    if (sharesTurn(history, earlier)) return undefined
    const { latest } = placeOf(history, later)
    return latest < placeOf(history, earlier).since ? `had its place from ${latest} ms on, before` : undefined
  })

const rules = {
  neverTwo: twice,
  tokensGrow: notGrowing,
  inOrder: overtaken,
  nobodyFailed: ({ failed }: History) =>
    failed.map(({ error, step }) => `${step.mutex}: ${step.worker} failed: ${error.message}`),
  everybodyServed: ({ unserved }: History) => unserved.map((step) => `${step.mutex}: ${step.worker} is never served`)
}

type Rule = keyof typeof rules

/**
 * Describes how a history violates the rules. Returns an empty array if it does not.
 *
 * **Details**
 *
 * - `neverTwo`: no mutex has two owners at the same time.
 * - `tokensGrow`: each holding has a larger token than all earlier holdings of the same mutex.
 * - `inOrder`: earlier attempts own the mutex earlier. Between workers, attempts are ordered by the time at which each
 *   got its place. A worker queues at a new place after each turn. Holdings within the same turn (see `localTurn`)
 *   share its place.
 * - `nobodyFailed`: no step failed with an error.
 * - `everybodyServed`: no step is still waiting when the script ends.
 *
 * **Gotchas**
 *
 * `inOrder` requires a network without delays, because otherwise the first request may not arrive first.
 *
 * **Example** (Checking only the rules that hold even under faults)
 *
 * ```ts
 * import { ContentionScript } from "@effect-simba/testkit"
 *
 * const isSafe = (history: ContentionScript.History) =>
 *   ContentionScript.problems(history, ["neverTwo", "tokensGrow"]).length === 0
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const problems = (
  history: History,
  only: ReadonlyArray<Rule> = ["neverTwo", "tokensGrow", "inOrder", "nobodyFailed", "everybodyServed"]
): ReadonlyArray<string> => only.flatMap((rule) => rules[rule](history))
