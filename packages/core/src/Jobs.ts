/**
 * The jobs of a fleet, as an operator sees and steers them: from any process, whether it runs the jobs or not.
 *
 * What is asked for is kept in the backend. The leader sees it within 5 seconds.
 *
 * **Example** (Whether the invoices ran, and another run if not)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { jobs } = yield* Jobs.list("nightly")
 *   const invoices = jobs.find(({ name }) => name === "invoices")
 *   if (invoices !== undefined && Option.isNone(invoices.lastSuccess)) yield* Jobs.run("nightly", "invoices")
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { inForce } from "./internal/leadership/jobPlan.ts"
import { parse, TypeId } from "./internal/leadership/jobSchedule.ts"
import { checked, mutexProblem } from "./internal/nameRules.ts"
import type { JobOrder, JobRecord, JobStore, RunOutcome } from "./JobStore.ts"
import type { JobSchedule } from "./Leadership.ts"
import { Mutex } from "./Mutex.ts"
import type { MutexName } from "./MutexName.ts"
import type { InvalidConfig, InvalidName, StoreError } from "./SimbaError.ts"

/**
 * What the fleet knows of a job.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobState {
  readonly name: string
  /** `every <milliseconds>`, or `cron <zone> <expression>`. None before a leader with this job. */
  readonly schedule: Option.Option<string>
  /** Whether the schedule is one that an operator set. */
  readonly isRescheduled: boolean
  readonly isPaused: boolean
  /** Whether an operator asked for a run that has not begun yet. */
  readonly isWanted: boolean
  /** The first instant that is not decided: to come, or to be made up for. None while the job is paused. */
  readonly next: Option.Option<DateTime.Utc>
  /** By the backend's time. */
  readonly lastRun: Option.Option<{
    readonly scheduledAt: DateTime.Utc
    readonly startedAt: DateTime.Utc
    /** None while it runs, and where its process died before it could say so. */
    readonly endedAt: Option.Option<DateTime.Utc>
    readonly outcome: Option.Option<RunOutcome>
    readonly attempt: number
    /** The id and the token of the leader's lease. */
    readonly lease: string
    readonly token: number
  }>
  /** When the last successful run ended. */
  readonly lastSuccess: Option.Option<DateTime.Utc>
  /** How many instants nobody ran, and why the last of them. */
  readonly missed: number
  readonly missedBecause: Option.Option<string>
}

const withJobs = <A>(
  name: string,
  use: (jobs: JobStore, mutex: MutexName) => Effect.Effect<A, StoreError>
): Effect.Effect<A, StoreError | InvalidName, Mutex> =>
  Mutex.use(({ parts }) =>
    Effect.flatMap(checked<MutexName>("mutex", mutexProblem)(name), (mutex) => use(parts.store.jobs, mutex))
  )

const instant = (millis: number | undefined) =>
  Option.map(Option.fromUndefinedOr(millis), (millis) => DateTime.makeUnsafe(millis))

/** Texts that this version cannot read have no next instant. */
const nextOf = (record: JobRecord) =>
  Effect.gen(function*() {
    const text = record.override ?? record.schedule
    if (text === undefined) return undefined
    const present = yield* parse(text)
    const former = record.former === undefined ? undefined : yield* parse(record.former)
    return inForce(present.next, former?.next, record.changed)(record.at)
  }).pipe(Effect.orElseSucceed(() => undefined))

const toState = (name: string, record: JobRecord, isPaused: boolean) =>
  Effect.map(nextOf(record), (next): JobState => ({
    name,
    schedule: Option.fromUndefinedOr(record.override ?? record.schedule),
    isRescheduled: record.override !== undefined,
    isPaused,
    isWanted: record.wanted !== undefined,
    next: isPaused ? Option.none() : instant(next),
    lastRun: Option.map(Option.fromUndefinedOr(record.run), (run) => ({
      scheduledAt: DateTime.makeUnsafe(run.scheduledAt),
      startedAt: DateTime.makeUnsafe(run.start),
      endedAt: instant(run.end),
      outcome: Option.fromUndefinedOr(run.outcome),
      attempt: run.attempt,
      lease: run.id,
      token: run.token
    })),
    lastSuccess: instant(record.success),
    missed: record.missed,
    missedBecause: Option.fromUndefinedOr(record.cause)
  }))

/**
 * The jobs of the fleet that shares the mutex, with the last and the next run of each.
 *
 * **Example** (What runs when)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 * import { DateTime, Effect, Option } from "effect"
 *
 * const program = Effect.flatMap(Jobs.list("nightly"), ({ jobs }) =>
 *   Effect.forEach(jobs, ({ name, next }) =>
 *     Effect.log(`${name}: ${Option.match(next, { onNone: () => "paused", onSome: DateTime.formatIso })}`)))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const list = (mutex: string): Effect.Effect<
  {
    /** Whether all jobs are paused. */
    readonly isPaused: boolean
    /** By name. */
    readonly jobs: ReadonlyArray<JobState>
  },
  StoreError | InvalidName,
  Mutex
> =>
  Effect.gen(function*() {
    const { isPaused, jobs } = yield* withJobs(mutex, (jobs, mutex) => jobs.look({ mutex, jobs: [] }))
    const names = [...jobs.keys()].sort()
    return {
      isPaused,
      jobs: yield* Effect.forEach(names, (name) => {
        const record = jobs.get(name)!
        return toState(name, record, isPaused || record.isPaused)
      })
    }
  })

const steer = (mutex: string, order: JobOrder): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  withJobs(mutex, (jobs, mutex) => jobs.steer(mutex, order))

/**
 * Asks for one run of the job, now, on the leader. It uses up no instant of the schedule, and comes also while the job is
 * paused. If the job runs at present, it comes after that run. False if there is no such job.
 *
 * **Example** (The report once more)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 *
 * const program = Jobs.run("nightly", "report")
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const run = (mutex: string, job: string): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  steer(mutex, { _tag: "Run", job })

/**
 * Pauses the job, or all jobs of the mutex, for the whole fleet, until `resume`. A run that has begun goes on. The instants
 * that pass are missed. False if there is no such job.
 *
 * **Example** (No jobs during a migration)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const migrated = <A, E, R>(migration: Effect.Effect<A, E, R>) =>
 *   Effect.acquireUseRelease(Jobs.pause("nightly"), () => migration, () => Jobs.resume("nightly"))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const pause = (mutex: string, job?: string): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  steer(mutex, { _tag: "Pause", job })

/**
 * Ends a pause, of the job or of all jobs of the mutex. What passed meanwhile is not made up for. A job that was paused by
 * its name stays paused until it is resumed by its name. False if there is no such job.
 *
 * **Example** (The end of a pause)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 *
 * const program = Jobs.resume("nightly", "report")
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const resume = (mutex: string, job?: string): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  steer(mutex, { _tag: "Resume", job })

/**
 * Replaces the schedule of the job for the whole fleet, also through deploys, until it is replaced again. `undefined` brings
 * back the schedule of the code. The former schedule counts up to now, and the new one from now on, so no run is doubled or
 * lost. False if there is no such job.
 *
 * **Example** (An hour later for the holidays)
 *
 * ```ts
 * import { Jobs, Leadership } from "@effect-simba/core"
 *
 * const program = Jobs.reschedule("nightly", "report", Leadership.cron("0 4 * * *", { timeZone: "Europe/Vienna" }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const reschedule = (
  mutex: string,
  job: string,
  schedule: JobSchedule | undefined
): Effect.Effect<boolean, StoreError | InvalidName | InvalidConfig, Mutex> =>
  Effect.gen(function*() {
    const text = schedule === undefined ? undefined : (yield* schedule[TypeId]).text
    return yield* steer(mutex, { _tag: "Reschedule", job, schedule: text })
  })

/**
 * Asks the leader to step down: no further run begins, those that have begun end, for at most `drainTimeout` of its
 * contender, and then another node leads. False if nobody leads, or the mutex has no jobs.
 *
 * **Example** (Before its machine goes)
 *
 * ```ts
 * import { Jobs } from "@effect-simba/core"
 *
 * const program = Jobs.stepDown("nightly")
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const stepDown = (mutex: string): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  steer(mutex, { _tag: "StepDown" })
