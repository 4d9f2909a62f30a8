/**
 * What work may be, that runs while its node leads: contenders, timetables, jobs, and their options.
 *
 * @since 0.1.0
 */
import type * as Cron from "effect/Cron"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type { Contention } from "./Contention.ts"
import type { InvalidConfig } from "./Errors.ts"
import type * as periodic from "./internal/periodic.ts"
import type { Body, Lease } from "./Lease.ts"

/**
 * A contender: from `Mutex.contend`, or the class made by `Mutex.Contender`, which is looked up in the context.
 *
 * **Example** (Work that does not care how its contender came about)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const announcing = <E, R>(contender: Leadership.Contender<E, R>) =>
 *   Leadership.whileLeader(contender, (lease) => Effect.log(`leading ${lease.mutex} with token ${lease.token}`))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Contender<E = never, R = never> = Contention | Effect.Effect<Contention, E, R>

/**
 * How the last run ended; none before the first.
 *
 * @see {@link Timetable}
 * @category models
 * @since 0.1.0
 */
export type Last = Option.Option<Exit.Exit<unknown, unknown>>

/**
 * When work runs: a `Schedule`, which is asked before each run, the first one included, and is told how the last run
 * ended. So `Schedule.spaced("1 minute")` waits a minute first, and `fixedDelay("1 minute")` does not. When the schedule
 * ends, the work rests until the next gain.
 *
 * **Example** (A minute after a success, ten seconds after a failure)
 *
 * ```ts
 * import type { Leadership } from "@effect-simba/core"
 * import { Duration, Effect, Exit, Option, Schedule } from "effect"
 *
 * const hasFailed = (last: Leadership.Last) => Option.exists(last, Exit.isFailure)
 *
 * const timetable: Leadership.Timetable = Schedule.fromStep(Effect.succeed((_now: number, last: Leadership.Last) => {
 *   const pause = hasFailed(last) ? Duration.seconds(10) : Duration.minutes(1)
 *   return Effect.succeed<[Duration.Duration, Duration.Duration]>([pause, pause])
 * }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Timetable<E = never, R = never> = Schedule.Schedule<unknown, Last, E, R>

/**
 * A schedule whose period the whole fleet knows, from `fixedRate` or `cron`. Piped through an operator of `Schedule` it
 * is a schedule like any other. Fails with `InvalidConfig` if it was made of what cannot work.
 *
 * **Example** (A nightly run, at the hour that a region likes)
 *
 * ```ts
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Mutex.Contender<Jobs>()("jobs") {}
 *
 * const closing = (region: string, schedule: Leadership.Periodic) =>
 *   Leadership.leaderSchedule(Jobs, Effect.log(`closing ${region}`), schedule, {
 *     name: `closing-${region}`,
 *     oncePerPeriod: true
 *   })
 *
 * const program = closing("asia", Leadership.cron("0 3 * * *", { timeZone: "Asia/Tokyo" }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Periodic extends Schedule.Schedule<number, unknown, InvalidConfig> {
  readonly [periodic.TypeId]: Effect.Effect<periodic.Period, InvalidConfig>
}

/**
 * `initialDelay` (default none): how long after each gain of the leadership the first run begins.
 *
 * @see {@link Leadership.fixedRate}
 * @category models
 * @since 0.1.0
 */
export interface RateOptions {
  readonly initialDelay?: Duration.Input | undefined
}

/**
 * For expressions that are texts: a `Cron` has them already, and is refused with further ones.
 *
 * - `timeZone` (default UTC, whatever the zone of the machine): an IANA name or a `DateTime.TimeZone`.
 * - `onDstOverlap` (default `"earlier"`): which of two equal local times counts when clocks are set back.
 *
 * @see {@link Leadership.cron}
 * @category models
 * @since 0.1.0
 */
export interface CronOptions {
  readonly timeZone?: string | DateTime.TimeZone | undefined
  readonly onDstOverlap?: Cron.DstOverlapPolicy | undefined
}

/**
 * What a failure or a defect of a run does, besides being logged with its cause and counted:
 *
 * - `continue` (the default): nothing more. The next run comes when the schedule says.
 * - `stepDown`: the leadership is given up, with all work that hangs on it, so that another node may try. Where this node
 *   leads again, the work waits, from 100 milliseconds up to 10 seconds, twice as long after each such failure in a row.
 * - `fail`: the schedule ends with that failure. The leadership stays.
 *
 * @see {@link ScheduleOptions}
 * @category models
 * @since 0.1.0
 */
export type OnError = "continue" | "stepDown" | "fail"

/**
 * - `onError` (default `"continue"`): see `OnError`.
 * - `name` (default `"work"`): what logs call the work.
 *
 * **Example** (A failure that another node may not have)
 *
 * ```ts
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Mutex.Contender<Jobs>()("jobs") {}
 *
 * const options: Leadership.ScheduleOptions<"stepDown"> = { name: "mirror", onError: "stepDown" }
 *
 * const mirroring = Leadership.leaderSchedule(Jobs, Effect.fail("disk full"), Leadership.fixedDelay("5 minutes"), options)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface ScheduleOptions<H extends OnError = OnError> {
  readonly onError?: H | undefined
  readonly name?: string | undefined
  readonly oncePerPeriod?: false | undefined
}

/**
 * At most one run per period in the whole fleet, whatever the clocks of the nodes say: the backend keeps a ticket for
 * each `name`, and gives it out once. Of a cron schedule the ticket is the scheduled instant: one that is not later than
 * the last that was given out is refused. Of a rate it is the backend's own time divided by the period, so that periods
 * begin at multiples of the period since 1970, and the first run in a period at once where it has had none.
 *
 * A run that failed, was interrupted, or never began because the leadership ended just then, has had its period. So has
 * one whose ticket was given out by a backend that could not say so any more.
 *
 * - `name`: by which the fleet knows the work, within the mutex. Not blank.
 * - `catchUp` (default none): of a cron schedule, how late the last instant may be made up for at a gain of the
 *   leadership, if nobody has had it. A fail-over takes up to a ttl plus a transition: `"1 minute"` covers it. A name
 *   that is new to the fleet has had no instant, so its first leader may make up for the one before its start.
 *
 * While the backend cannot be asked it is asked again, 100 milliseconds later at first, up to every 10 seconds, until
 * the leadership ends; an instant of a cron schedule is given up when the next one has come.
 *
 * @see {@link Leadership.leaderSchedule}
 * @category models
 * @since 0.1.0
 */
export interface OncePerPeriodOptions<H extends OnError = OnError> {
  readonly onError?: H | undefined
  readonly name: string
  readonly oncePerPeriod: true
  readonly catchUp?: Duration.Input | undefined
}

/**
 * One background job. `run` may be a function: it is given the lease, with its fencing token.
 *
 * - `name`: not blank, and not that of another job of the same contender.
 * - `schedule`, `oncePerPeriod`, `catchUp`, `onError`: as for `leaderSchedule`. A job does not end by its failures.
 *
 * @see {@link Leadership.runJobs}
 * @category models
 * @since 0.1.0
 */
export type Job<E = unknown, R = unknown> =
  & {
    readonly name: string
    readonly run: Body<unknown, E, R>
    readonly onError?: Exclude<OnError, "fail"> | undefined
  }
  & (
    | { readonly schedule: Timetable<InvalidConfig, R>; readonly oncePerPeriod?: false | undefined }
    | {
      readonly schedule: Periodic
      readonly oncePerPeriod: true
      readonly catchUp?: Duration.Input | undefined
    }
  )

/**
 * What jobs need to run.
 *
 * **Example** (A layer of one's own for jobs of any kind)
 *
 * ```ts
 * import { type Errors, Leadership, type Mutex } from "@effect-simba/core"
 * import type { Layer } from "effect"
 *
 * const shortLeases = <const Jobs extends ReadonlyArray<Leadership.Job>>(
 *   jobs: Jobs
 * ): Layer.Layer<
 *   never,
 *   Errors.InvalidName | Errors.InvalidConfig,
 *   Mutex.Mutex | Leadership.JobServices<Jobs[number]>
 * > => Leadership.layerJobs("jobs", jobs, { ttl: "3 seconds", transition: "3 seconds" })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type JobServices<J extends Job> =
  | Schedule.Env<J["schedule"]>
  | (J["run"] extends infer Run
    ? Run extends (lease: Lease) => infer Made ? Effect.Services<Made> : Effect.Services<Run>
    : never)
