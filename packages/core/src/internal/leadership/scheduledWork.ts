/** Runs work on a schedule while a contender leads: once per period of the fleet where asked, through failures. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type { Contender } from "../../Contender.ts"
import type { Body, Lease } from "../../Lease.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import { endlessRetry } from "../lease/storeFailure.ts"
import * as log from "../log.ts"
import { refuse } from "../optionChecks.ts"
import { jobHost } from "./jobHost.ts"
import { delay, isPeriodic, type Period, TypeId } from "./schedules.ts"

/** How the last run ended; none before the first. */
export type Last = Option.Option<Exit.Exit<unknown, unknown>>

/** Asked before each run, the first one included. */
export type WorkSchedule<E = never, R = never> = Schedule.Schedule<unknown, Last, E, R>

export type OnError = "continue" | "stepDown" | "fail"

type Outcome = keyof typeof MutexMetrics.leaderRuns

/** Checked options of one scheduled work. */
interface Plan<SE, SR> {
  readonly name: string
  readonly onError: OnError
  readonly schedule: WorkSchedule<SE, SR>
  readonly period: Period | undefined
  readonly oncePerPeriod: boolean
  /** Milliseconds. */
  readonly catchUp: number
}

export interface Options {
  readonly name?: string | undefined
  readonly onError?: OnError | undefined
  readonly oncePerPeriod?: boolean | undefined
  readonly catchUp?: Duration.Input | undefined
}

export const plan = <SE, SR>(
  schedule: WorkSchedule<SE, SR>,
  options: Options = {}
): Effect.Effect<Plan<SE, SR>, InvalidConfig> =>
  Effect.gen(function*() {
    const name = options.name ?? "work"
    if (name.trim() === "") return yield* refuse("name", "the name of a job is blank")
    const period = isPeriodic(schedule) ? yield* schedule[TypeId] : undefined
    const oncePerPeriod = options.oncePerPeriod === true
    if (oncePerPeriod && (period === undefined || period._tag === "Delay")) {
      const problem =
        "it needs a schedule from Leadership.fixedRate or Leadership.cron, as it is: others have no period"
      return yield* refuse("oncePerPeriod", problem)
    }
    if (oncePerPeriod && options.name === undefined) {
      return yield* refuse("oncePerPeriod", "it needs a name, by which the fleet knows the work")
    }
    const catchUp = yield* delay("catchUp", options.catchUp ?? 0)
    return { name, onError: options.onError ?? "continue", schedule, period, oncePerPeriod, catchUp }
  })

/** Timers stand still while a machine is suspended, and clocks are set: the wall clock is read this often. */
const slice = 60_000

const untilInstant = (at: number): Effect.Effect<void> =>
  Clock.clockWith((clock) => {
    const left = at - clock.currentTimeMillisUnsafe()
    return left <= 0
      ? Effect.void
      : Effect.flatMap(Effect.sleep(Duration.millis(Math.min(left, slice))), () => untilInstant(at))
  })

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Outcome =>
  Exit.isSuccess(exit)
    ? "success"
    : Cause.hasFails(exit.cause)
    ? "failure"
    : Cause.hasDies(exit.cause)
    ? "defect"
    : "interrupted"

const count = (outcome: Outcome) => Metric.update(MutexMetrics.leaderRuns[outcome], 1)

export const drive = <A, E, R, SE, SR>(
  contention: Contender,
  plan: Plan<SE, SR>,
  work: Body<A, E, R>
): Effect.Effect<never, E | SE, R | SR> =>
  Effect.suspend(() => {
    const { catchUp, name, onError, oncePerPeriod, period, schedule } = plan
    let stepsDown = 0

    const run = (lease: Lease): Effect.Effect<Exit.Exit<A, E>, E, R> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function*() {
          const exit = yield* Effect.exit(restore(Effect.isEffect(work) ? work : Effect.suspend(() => work(lease))))
          const outcome = outcomeOf(exit)
          yield* count(outcome)
          if (Exit.isSuccess(exit)) {
            stepsDown = 0
            return exit
          }
          if (outcome !== "interrupted") yield* log.error(`Run of "${name}" failed`, exit.cause)
          // Ends here if the leadership has ended; otherwise the run has ended by itself
          yield* restore(Effect.void)
          if (outcome === "interrupted") {
            yield* log.warning(`Run of "${name}" interrupted itself`)
          }
          if (onError === "fail") return yield* Effect.failCause(exit.cause)
          if (onError === "stepDown") {
            stepsDown++
            return yield* restore(Effect.andThen(contention.stepDown, Effect.never))
          }
          return exit
        })
      )

    const waitForBackend = (early: Duration.Duration, left: Effect.Effect<number>) =>
      Effect.gen(function*() {
        yield* count("early")
        yield* log.warning(
          `The clock of this node is ahead of the backend's: an instant of "${name}" is too early by ` +
            `${Duration.format(early)}. It waits for the backend's time`
        )
        yield* Effect.sleep(Duration.min(early, Duration.millis(Math.max(0, yield* left))))
      })

    const ask = (every: number, at?: number, onlyIfKnown = false) =>
      jobHost(contention).store.claimPeriod({
        mutex: contention.mutex,
        job: name,
        period: Duration.millis(every),
        at,
        onlyIfKnown
      }).pipe(
        Effect.tapError((error) => log.warning(`Cannot ask whether "${name}" has run: ${error.message}`))
      )

    /** An instant is worth asking for until the next one has come. */
    const claim = (cron: Cron.Cron, at: number, onlyIfKnown = false) => {
      const end = Cron.next(cron, at).getTime()
      const left = Effect.map(Clock.currentTimeMillis, (now) => end - now)
      const goesOn = Effect.map(left, (millis) => millis > 0)
      return ask(end - at, at, onlyIfKnown).pipe(
        Effect.tap(({ next }) => Duration.isZero(next) ? Effect.void : waitForBackend(next, left)),
        Effect.repeat({ while: ({ next }) => Duration.isZero(next) ? Effect.succeed(false) : goesOn }),
        Effect.retry({ schedule: endlessRetry, while: () => goesOn }),
        Effect.map(({ first }) => first),
        Effect.orElseSucceed(() => false),
        Effect.tap((first) => first ? Effect.void : count("skipped"))
      )
    }

    /** A job that the fleet never saw has missed nothing. From now on the fleet knows it. */
    const missed = (lease: Lease) =>
      Effect.gen(function*() {
        if (!oncePerPeriod || period?._tag !== "Cron" || catchUp === 0) return
        const now = yield* Clock.currentTimeMillis
        const at = Cron.prev(period.cron, now + 1).getTime()
        if (now - at > catchUp) {
          yield* Effect.ignore(ask(Cron.next(period.cron, at).getTime() - at, at, true))
        } else if (yield* claim(period.cron, at, true)) {
          yield* run(lease)
        }
      })

    const bySchedule = (lease: Lease) =>
      Effect.gen(function*() {
        yield* missed(lease)
        const step = yield* Schedule.toStep(schedule)
        let last: Last = Option.none()
        while (true) {
          const now = yield* Clock.currentTimeMillis
          const next = yield* Pull.catchDone(step(now, last), () => Effect.undefined)
          if (next === undefined) return
          if (period?._tag === "Cron") {
            const at = next[0] as number
            yield* untilInstant(at)
            if (oncePerPeriod && !(yield* claim(period.cron, at))) continue
          } else {
            yield* Effect.sleep(next[1])
          }
          last = Option.some(yield* run(lease))
        }
      })

    const byServerTime = (lease: Lease, every: number, initialDelay: number) =>
      Effect.gen(function*() {
        yield* Effect.sleep(initialDelay)
        while (true) {
          // The schedule does not end, so neither does the retry
          const { first, next } = yield* Effect.orDie(Effect.retry(ask(every), endlessRetry))
          const [lasted] = yield* Effect.timed(first ? run(lease) : count("skipped"))
          yield* Effect.sleep(Duration.max(Duration.zero, Duration.subtract(next, lasted)))
        }
      })

    return contention.whileLeader((lease) =>
      Effect.gen(function*() {
        // A failure right after each gain must not make the mutex go round and round
        if (stepsDown > 0) yield* Effect.sleep(Math.min(100 * 2 ** (stepsDown - 1), 10_000))
        yield* oncePerPeriod && period?._tag === "Rate"
          ? byServerTime(lease, period.every, period.initialDelay)
          : bySchedule(lease)
      }).pipe(Effect.annotateLogs({ mutex: contention.mutex, job: name, token: lease.token })), { onError: "fail" })
  })
