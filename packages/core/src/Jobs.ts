/**
 * Inspects and controls a fleet's jobs from any process, even one that does not run them.
 *
 * Requests are stored in the backend. The leader reads them within 5 seconds.
 *
 * **Example** (Running a job that has never succeeded)
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
 * The state of a job in the fleet.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobState {
  readonly name: string
  /** `every <milliseconds>`, or `cron <zone> <expression>`. `None` until a leader has registered the job. */
  readonly schedule: Option.Option<string>
  /** Whether an operator has replaced the schedule. */
  readonly isRescheduled: boolean
  /** Whether an operator has paused this job, or all of the mutex's jobs. */
  readonly isPaused: boolean
  /** Whether an operator has requested a run that has not started yet. */
  readonly isWanted: boolean
  /**
   * The first scheduled time that neither had a run nor was missed. If it has passed, the leader is about to run it or
   * to count it as missed. `None` while the job is paused, or if its schedule is unknown.
   */
  readonly next: Option.Option<DateTime.Utc>
  /** The last run of the job, by the backend's time. */
  readonly lastRun: Option.Option<{
    readonly scheduledAt: DateTime.Utc
    readonly startedAt: DateTime.Utc
    /** `None` while the run is in progress, or if its process died before it could report the end. */
    readonly endedAt: Option.Option<DateTime.Utc>
    readonly outcome: Option.Option<RunOutcome>
    /** The number of attempts for this scheduled time. `unstarted` runs do not count. */
    readonly attempt: number
    /** The id and the token of the leader's lease. */
    readonly lease: string
    readonly token: number
  }>
  /** When the last successful run ended. */
  readonly lastSuccess: Option.Option<DateTime.Utc>
  /** The number of missed runs, and the cause of the last one. */
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

/**
 * Computes the next scheduled time. Each former schedule applies up to the time at which it was replaced, and the
 * current one after that. Undefined if this version cannot parse a schedule.
 */
const nextOf = (record: JobRecord) =>
  Effect.gen(function*() {
    const text = record.override ?? record.schedule
    if (text === undefined) return undefined
    const present = yield* parse(text)
    const former = yield* Effect.forEach(
      record.former,
      ({ schedule, until }) => Effect.map(parse(schedule), ({ next }) => ({ next, until }))
    )
    return inForce(present.next, former)(record.at)
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
 * Lists the jobs that the mutex's fleet runs, each with its last and next run.
 *
 * **Example** (Printing the next run of each job)
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
    /** Sorted by name. */
    readonly jobs: ReadonlyArray<JobState>
    /** Jobs that do not run because their state in the backend cannot be read, each with the reason. */
    readonly malformed: ReadonlyArray<{ readonly name: string; readonly problem: string }>
  },
  StoreError | InvalidName,
  Mutex
> =>
  Effect.gen(function*() {
    const { isPaused, jobs, malformed } = yield* withJobs(mutex, (jobs, mutex) => jobs.read({ mutex, jobs: [] }))
    const names = [...jobs.keys()].sort()
    return {
      isPaused,
      jobs: yield* Effect.forEach(names, (name) => {
        const record = jobs.get(name)!
        return toState(name, record, isPaused || record.isPaused)
      }),
      malformed: [...malformed.keys()].sort().map((name) => ({ name, problem: malformed.get(name)!.message }))
    }
  })

const steer = (mutex: string, order: JobOrder): Effect.Effect<boolean, StoreError | InvalidName, Mutex> =>
  withJobs(mutex, (jobs, mutex) => jobs.steer(mutex, order))

/**
 * Asks the leader to run the job once, now. The run is not part of the schedule, and starts even if
 * the job is paused. If the job is running or a failed run is about to be retried, the new run starts afterwards.
 * Returns false if there is no such job.
 *
 * **Example** (Running the report again)
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
 * Pauses the job, or all of the mutex's jobs, in the whole fleet, until `resume` is called. A run in progress
 * continues. Runs that are due during the pause are missed. Returns false if there is no such job.
 *
 * **Example** (Pausing jobs during a migration)
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
 * Resumes the job, or all of the mutex's jobs. Runs that were due during the pause are not caught up on, and a run that
 * failed before or during the pause is not retried. A job that was paused by name stays paused until it is resumed by
 * name. Returns false if there is no such job.
 *
 * **Example** (Resuming a job)
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
 * Replaces the job's schedule in the whole fleet. The change survives deploys; calling this with `undefined` restores
 * the schedule in the code. The old schedule applies until now and the new one from now on, so no run is duplicated or
 * lost. Returns false if there is no such job.
 *
 * **Example** (Moving a job to a later hour)
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
 * Asks the leader to step down. No more runs start, and runs in progress may finish within the contender's
 * `drainTimeout`. Then another node can lead. Returns false if nobody leads, or if the mutex has no jobs.
 *
 * **Example** (Moving leadership before a shutdown)
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
