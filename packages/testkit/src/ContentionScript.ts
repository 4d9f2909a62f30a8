/**
 * Scripts of contention, for property tests of whatever uses or provides mutexes: who asks when, for which mutex, and
 * how. Such a script is played under `TestClock`, and what came of it can be asserted on.
 *
 * **Example** (No two at a time, whoever asks when)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { ContentionScript, TestMutex } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * it.effect.prop("no two at a time", [ContentionScript.arbitrary({ workers: 4 })], ([script]) =>
 *   Effect.gen(function*() {
 *     const history = yield* ContentionScript.run(script, { layer: TestMutex.layer() })
 *     assert.deepStrictEqual(ContentionScript.problems(history), [])
 *   }))
 * ```
 *
 * @since 0.1.0
 */
import type { SimbaError } from "@effect-simba/core"
import * as Mutex from "@effect-simba/core/Mutex"
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

/**
 * One attempt. It begins `at` milliseconds after the beginning of the script, and works for `hold` milliseconds if it
 * gets the mutex. Attempts of one worker do not wait for one another: a worker is a process, each step a fiber of it.
 *
 * - `acquire` waits as long as it takes, `tryAcquire` does not wait.
 * - `timeout` waits for `patience` milliseconds at most.
 * - `interrupt` is interrupted after `patience` milliseconds, whether it waits or works then.
 *
 * @see {@link Script}
 * @category models
 * @since 0.1.0
 */
export type Step =
  & { readonly at: number; readonly worker: string; readonly mutex: string; readonly hold: number }
  & (
    | { readonly kind: "acquire" | "tryAcquire" }
    | { readonly kind: "timeout" | "interrupt"; readonly patience: number }
  )

/**
 * Steps, in any order: each says itself when it begins.
 *
 * **Example** (A race, written by hand)
 *
 * ```ts
 * import type { ContentionScript } from "@effect-simba/testkit"
 *
 * const race: ContentionScript.Script = [
 *   { at: 0, worker: "a", mutex: "m", hold: 1000, kind: "acquire" },
 *   { at: 1, worker: "b", mutex: "m", hold: 100, kind: "tryAcquire" },
 *   { at: 1, worker: "c", mutex: "m", hold: 100, kind: "timeout", patience: 500 }
 * ]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Script = ReadonlyArray<Step>

/**
 * - `workers` (default 3), `mutexes` (default 2): how many, or their names.
 * - `length` (default 1 to 20): how many steps.
 * - `within` (default 10 seconds): all of them begin in this time.
 * - `hold` (default 1 millisecond to 3 seconds), `patience` (default the same): between which durations.
 * - `kinds` (default all): what the workers do.
 *
 * @see {@link arbitrary}
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly workers?: number | ReadonlyArray<string> | undefined
  readonly mutexes?: number | ReadonlyArray<string> | undefined
  readonly length?: readonly [minimum: number, maximum: number] | undefined
  readonly within?: Duration.Input | undefined
  readonly hold?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  readonly patience?: readonly [minimum: Duration.Input, maximum: Duration.Input] | undefined
  readonly kinds?: ReadonlyArray<Step["kind"]> | undefined
}

/**
 * Scripts, in the order of time. What fails is made smaller: fewer steps, earlier, shorter.
 *
 * **Example** (Two processes, one mutex, and nobody who gives up)
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
 * @category generators
 * @since 0.1.0
 */
export const arbitrary = (options?: Options): Arbitrary.Arbitrary<Script> => draw(options ?? {})

/**
 * What came of a step that got its mutex. Times are in milliseconds after the beginning of the script: it `asked`, and
 * worked `from` and `to`. `order` says where its beginning and its end come
 * among all beginnings and ends, for what happens within one millisecond. `lost`: its lease was lost meanwhile.
 *
 * **Example** (How long anybody waited at most)
 *
 * ```ts
 * import type { ContentionScript } from "@effect-simba/testkit"
 *
 * const longestWait = (holdings: ReadonlyArray<ContentionScript.Holding>) =>
 *   Math.max(0, ...holdings.map(({ asked, from }) => from - asked))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Holding {
  readonly step: Step
  readonly worker: string
  readonly mutex: string
  readonly token: number
  readonly asked: number
  readonly from: number
  readonly to: number
  readonly order: readonly [from: number, to: number]
  readonly lost: boolean
}

/**
 * `holdings` in the order of their beginnings, and the steps that got nothing: `refused` by a mutex that was not free,
 * `gaveUp` after a timeout or an interruption, `failed` for lack of an answer, and `unserved` at the end. Workers of one
 * process (`isOneProcess`, default false) stand in one line.
 *
 * @see {@link run}
 * @category models
 * @since 0.1.0
 */
export interface History {
  readonly holdings: ReadonlyArray<Holding>
  readonly refused: ReadonlyArray<Step>
  readonly gaveUp: ReadonlyArray<Step>
  readonly failed: ReadonlyArray<{ readonly step: Step; readonly error: SimbaError.AcquireError | LeaseLost }>
  readonly unserved: ReadonlyArray<Step>
  readonly isOneProcess?: boolean
}

/**
 * - `layer`: the mutexes of all workers, or of each: a function gives every worker a `Mutex` of its own, as processes
 *   have. What they share must be provided outside.
 * - `grace` (default 1 minute): how much longer than all work together it may take, until who still waits is `unserved`.
 *
 * @see {@link run}
 * @category models
 * @since 0.1.0
 */
export interface RunOptions<E, R> {
  readonly layer: Layer.Layer<Mutex.Mutex, E, R> | ((worker: string) => Layer.Layer<Mutex.Mutex, E, R>)
  readonly grace?: Duration.Input | undefined
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
  const gaveUp: Array<Step> = []
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
    const attempt = kind === "tryAcquire"
      ? Effect.map(service.withLockIfAvailable(mutex)(work), (result) => {
        if (Option.isNone(result)) refused.push(step)
      })
      : kind === "interrupt"
      ? Effect.map(Effect.timeoutOption(service.withLock(mutex)(work), step.patience), () => {
        if (holding === undefined) gaveUp.push(step)
      })
      : service.withLock(mutex, kind === "timeout" ? { timeout: step.patience } : {})(work)
    yield* Effect.catch(attempt, (error) =>
      Effect.sync(() => {
        if (error._tag === "LeaseLost" && holding !== undefined) holding.lost = true
        else if (error._tag !== "AcquireTimeout") failed.push({ step, error })
        else gaveUp.push(step)
      }))
  })

  const longest = script.reduce((sum, { at, hold }) => Math.max(sum, at) + hold, 0) + millis(grace)
  const attempts = Effect.forEach(script, attempt, { concurrency: "unbounded", discard: true })
  yield* Effect.timeoutOption(attempts, longest)
  const done = new Set([...refused, ...gaveUp, ...[...holdings, ...failed].map(({ step }) => step)])
  const unserved = script.filter((step) => !done.has(step))
  return { holdings, refused, gaveUp, failed, unserved } satisfies History
})

/** Runs an effect, and moves time until it is done. */
const driven = Effect.fnUntraced(function*<A, E, R>(effect: Effect.Effect<A, E, R>, tick: Effect.Effect<void>) {
  const fiber = yield* Effect.forkChild(effect)
  while (fiber.pollUnsafe() === undefined) yield* tick
  return yield* Fiber.join(fiber)
})

/**
 * Plays a script on `Mutex` and answers what came of it. It moves `TestClock` until everybody is done.
 *
 * **Example** (Who does not wait is refused while the other works)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { ContentionScript, TestMutex } from "@effect-simba/testkit"
 * import { Effect } from "effect"
 *
 * it.effect("refuses the second", () =>
 *   Effect.gen(function*() {
 *     const history = yield* ContentionScript.run([
 *       { at: 0, worker: "a", mutex: "m", hold: 1000, kind: "acquire" },
 *       { at: 500, worker: "b", mutex: "m", hold: 1000, kind: "tryAcquire" }
 *     ], { layer: TestMutex.layer(), grace: "10 seconds" })
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
  options: RunOptions<E, R>
): Effect.Effect<History, E, R> =>
  Effect.flatMap(Scope.make(), (scope) =>
    Effect.gen(function*() {
      const { layer } = options
      const build = (layer: Layer.Layer<Mutex.Mutex, E, R>) =>
        Effect.map(Scope.provide(Layer.build(layer), scope), Context.get(Mutex.Mutex))
      const workers = [...new Set(script.map(({ worker }) => worker))]
      // Real time as well: a layer may load something
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

/** Says what is wrong with two holdings of one mutex, of which the first began earlier. */
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
  pairs(history, ({ token }, later) => later.token <= token ? "has no larger token than" : undefined)

/**
 * Since when the place in the fleet's queue was held by which each was served: from when the first of its fibers asked,
 * and no earlier than its last holding ended. `since` counts those who gave up before, from whom the place may come.
 */
const placeOf = (history: History, { asked, mutex, order, worker }: Holding) => {
  const isSame = (other: Step | Holding) => other.mutex === mutex && other.worker === worker
  const last = history.holdings.reduce((last, other) => isSame(other) && other.order[0] < order[0] ? other.to : last, 0)
  const before = [...history.gaveUp, ...history.failed.map(({ step }) => step)].filter(isSame).map(({ at }) => at)
  return { since: Math.max(last, Math.min(asked, ...before)), latest: Math.max(last, asked) }
}

const overtaken = (history: History) =>
  pairs(history, (earlier, later) => {
    if (history.isOneProcess === true || earlier.worker === later.worker) {
      return later.asked < earlier.asked ? `asked at ${later.asked} ms, before` : undefined
    }
    const { latest } = placeOf(history, later)
    return latest < placeOf(history, earlier).since ? `had its place since ${latest} ms, before` : undefined
  })

const left = (history: History) => [
  ...history.failed.map(({ error, step }) => `${step.mutex}: ${step.worker} failed: ${error.message}`),
  ...history.unserved.map((step) => `${step.mutex}: ${step.worker} is never served`)
]

/**
 * Whether no mutex was ever held twice at a time.
 *
 * @see {@link problems}
 * @category predicates
 * @since 0.1.0
 */
export const neverTwo = (history: History): boolean => twice(history).length === 0

/**
 * Whether each holding has a larger token than all before it, mutex by mutex.
 *
 * @see {@link problems}
 * @category predicates
 * @since 0.1.0
 */
export const tokensGrow = (history: History): boolean => notGrowing(history).length === 0

/**
 * Whether who asked earlier held the mutex earlier: among the fibers of one worker, and among workers by when each came
 * to its place, at which it asks for itself again after each holding. On a network with delays, who asked first may arrive
 * second; and with `maxLocalHandOffs`, holders of one worker follow one another.
 *
 * @see {@link problems}
 * @category predicates
 * @since 0.1.0
 */
export const inOrder = (history: History): boolean => overtaken(history).length === 0

/**
 * Whether nobody was left waiting.
 *
 * @see {@link problems}
 * @category predicates
 * @since 0.1.0
 */
export const everybodyServed = (history: History): boolean => history.unserved.length === 0

/**
 * What the predicates of this module have to say, and failures, in words; nothing if all is well.
 *
 * **Example** (What must hold under faults too, and what only without)
 *
 * ```ts
 * import { ContentionScript } from "@effect-simba/testkit"
 *
 * const isSafe = (history: ContentionScript.History) =>
 *   ContentionScript.neverTwo(history) && ContentionScript.tokensGrow(history)
 *
 * const isFair = (history: ContentionScript.History) =>
 *   ContentionScript.inOrder(history) && ContentionScript.everybodyServed(history)
 *
 * const explain = (history: ContentionScript.History) => ContentionScript.problems(history).join("\n")
 * ```
 *
 * @category predicates
 * @since 0.1.0
 */
export const problems = (history: History): ReadonlyArray<string> => [
  ...twice(history),
  ...notGrowing(history),
  ...overtaken(history),
  ...left(history)
]
