/**
 * Work that runs on one node of a fleet: the one whose contender leads.
 *
 * Work runs from each gain of the leadership on, in a fiber of its own. A loss is an interruption: it is not delayed by
 * slow work, and the mutex is given back after the work, its finalizers included, has ended.
 *
 * **Example** (Background jobs of a service)
 *
 * ```ts
 * import { Leadership, MutexStore, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const Jobs = Leadership.layerJobs("jobs", [
 *   { name: "sweep", schedule: Leadership.fixedDelay("10 seconds"), run: Effect.log("sweeping") },
 *   { name: "report", schedule: Leadership.cron("0 3 * * *"), oncePerPeriod: true, run: Effect.log("reporting") }
 * ])
 *
 * const Live = Jobs.pipe(Layer.provide(Mutex.layer()), Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @since 0.1.0
 */
import type * as Cron from "effect/Cron"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type { Contender, ContenderOptions } from "./Contender.ts"
import * as leadership from "./internal/leadership/scheduler.ts"
import * as periodic from "./internal/leadership/timetable.ts"
import type { Body, Lease } from "./Lease.ts"
import { contend, type Mutex } from "./Mutex.ts"
import { InvalidConfig, type InvalidName } from "./SimbaError.ts"

const contentionOf = <E, R>(contender: ContenderSource<E, R>): Effect.Effect<Contender, E, R> =>
  Effect.isEffect(contender) ? contender : Effect.succeed(contender)

/**
 * Runs `work` whenever the contender leads: from the start at each gain, interrupted at each loss. Ends only by a failure
 * of `work`, which leaves the leadership alone. See `Contention.whileLeader`.
 *
 * **Example** (A consumer of which the fleet wants one)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Poller extends Contender.Service<Poller>()("poller") {}
 *
 * const poll = Effect.forever(Effect.delay(Effect.log("polling"), "1 second"))
 * const program = Leadership.whileLeader(Poller, poll).pipe(Effect.provide(Poller.layer))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const whileLeader = <A, E, R, CE = never, CR = never>(
  contender: ContenderSource<CE, CR>,
  work: Body<A, E, R>
): Effect.Effect<never, E | CE, R | CR> =>
  Effect.flatMap(contentionOf(contender), (contention) => contention.whileLeader(work))

/**
 * Runs `work` on a schedule while the contender leads. The schedule starts anew at each gain; at each loss the run that
 * is under way is interrupted. Runs of one schedule never overlap within a process, and overlap with those of the next
 * leader only as a lock may (see the guarantees). Never ends, but by a failure where `onError` is `"fail"`, or with
 * `InvalidConfig`.
 *
 * **Example** (Every minute, and every night at most once in the fleet)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("jobs") {}
 *
 * const sweeping = Leadership.leaderSchedule(Jobs, Effect.log("sweeping"), Leadership.fixedRate("1 minute"))
 *
 * const reporting = Leadership.leaderSchedule(Jobs, Effect.log("reporting"), Leadership.cron("0 3 * * *"), {
 *   name: "report",
 *   oncePerPeriod: true,
 *   catchUp: "5 minutes"
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const leaderSchedule: {
  <A, E, R, CE = never, CR = never, const H extends OnError = "continue">(
    contender: ContenderSource<CE, CR>,
    work: Body<A, E, R>,
    schedule: Periodic,
    options: OncePerPeriodOptions<H>
  ): Effect.Effect<never, ("fail" extends H ? E : never) | InvalidConfig | CE, R | CR>
  <A, E, R, SE, SR, CE = never, CR = never, const H extends OnError = "continue">(
    contender: ContenderSource<CE, CR>,
    work: Body<A, E, R>,
    schedule: Timetable<SE, SR>,
    options?: ScheduleOptions<H>
  ): Effect.Effect<never, ("fail" extends H ? E : never) | InvalidConfig | SE | CE, R | SR | CR>
} = <A, E, R, SE, SR, CE, CR>(
  contender: ContenderSource<CE, CR>,
  work: Body<A, E, R>,
  schedule: Timetable<SE, SR>,
  options?: leadership.Options
): Effect.Effect<never, E | InvalidConfig | SE | CE, R | SR | CR> =>
  Effect.gen(function*() {
    const plan = yield* leadership.plan(schedule, options)
    const contention = yield* contentionOf(contender)
    return yield* leadership.drive(contention, plan, work)
  })

/**
 * Checks all jobs, and answers one effect for each.
 */
const prepare = <const Jobs extends ReadonlyArray<Job>>(
  contention: Contender,
  jobs: Jobs
): Effect.Effect<
  ReadonlyArray<Effect.Effect<never, InvalidConfig, JobServices<Jobs[number]>>>,
  InvalidConfig
> =>
  Effect.gen(function*() {
    const names = new Set<string>()
    return yield* Effect.forEach(jobs, (job) => {
      if (names.has(job.name)) {
        return Effect.fail(
          new InvalidConfig({ option: "jobs", problem: `there are two jobs named ${JSON.stringify(job.name)}` })
        )
      }
      names.add(job.name)
      // With these, nothing of a run fails
      return Effect.map(
        leadership.plan(job.schedule, job),
        (plan) =>
          leadership.drive(contention, plan, job.run) as Effect.Effect<
            never,
            InvalidConfig,
            JobServices<Jobs[number]>
          >
      )
    })
  })

/**
 * Runs jobs while the contender leads, each in a fiber of its own. Never ends but with `InvalidConfig`: a name that is
 * blank or given twice, or a schedule that cannot work.
 *
 * **Example** (Jobs of a contender that leads other work too)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Node extends Contender.Service<Node>()("node") {}
 *
 * const jobs = [
 *   { name: "sweep", schedule: Leadership.fixedDelay("1 minute"), run: Effect.log("sweeping") },
 *   { name: "count", schedule: Leadership.fixedRate("10 seconds"), run: Effect.log("counting"), onError: "stepDown" }
 * ] as const satisfies ReadonlyArray<Leadership.Job>
 *
 * const program = Leadership.runJobs(Node, jobs).pipe(Effect.provide(Node.layer))
 * ```
 *
 * @category jobs
 * @since 0.1.0
 */
export const runJobs = <const Jobs extends ReadonlyArray<Job>, CE = never, CR = never>(
  contender: ContenderSource<CE, CR>,
  jobs: Jobs
): Effect.Effect<never, InvalidConfig | CE, JobServices<Jobs[number]> | CR> =>
  Effect.gen(function*() {
    const prepared = yield* prepare(yield* contentionOf(contender), jobs)
    yield* Effect.all(prepared, { concurrency: "unbounded", discard: true })
    return yield* Effect.never
  })

/**
 * Background jobs that run on one node of the fleet at a time: contends for the mutex `name` while the layer is open, and
 * runs the jobs while it leads. Closing the layer interrupts the jobs, awaits them, then gives the mutex up.
 *
 * Invalid names, options and jobs are refused when the layer is built.
 *
 * @category jobs
 * @since 0.1.0
 */
export const layerJobs = <const Jobs extends ReadonlyArray<Job>>(
  name: string,
  jobs: Jobs,
  options?: ContenderOptions
): Layer.Layer<never, InvalidName | InvalidConfig, Mutex | JobServices<Jobs[number]>> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const contention = yield* contend(name, options)
    const prepared = yield* prepare(contention, jobs)
    yield* Effect.forEach(prepared, (job) =>
      Effect.forkScoped(
        Effect.tapCause(job, (cause) => Effect.logError("A background job ended, and does not come back", cause))
      ), { discard: true })
  }))

/**
 * At a fixed rate: at once at each gain, or after `initialDelay`, and from then on every `period`, however long the runs
 * take. A run that is late begins at once, and stands for all that were missed; the beat stays.
 *
 * **Example** (Every minute, the first time 10 seconds after a gain)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.fixedRate("1 minute", { initialDelay: "10 seconds" })
 * ```
 *
 * @category schedules
 * @since 0.1.0
 */
export const fixedRate = (period: Duration.Input, options?: RateOptions): Periodic =>
  periodic.fixedRate(period, options)

/**
 * With a fixed delay: at once at each gain, or after `initialDelay`, and from then on `delay` after the end of the last
 * run.
 *
 * @category schedules
 * @since 0.1.0
 */
export const fixedDelay = (
  delay: Duration.Input,
  options?: RateOptions
): Schedule.Schedule<number, unknown, InvalidConfig> => periodic.fixedDelay(delay, options)

/**
 * At the instants of a cron expression, of five fields or, with seconds, six. In UTC unless a time zone is given, so that
 * all nodes mean the same instants. A run that takes longer than until the next instant makes that one pass.
 *
 * An instant comes by the clock of the node that leads. `oncePerPeriod` and `catchUp` are for nodes whose clocks differ,
 * and for instants that fall into a change of leaders.
 *
 * **Example** (At half past six of each working day, in Vienna)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.cron("30 6 * * 1-5", { timeZone: "Europe/Vienna" })
 * ```
 *
 * @category schedules
 * @since 0.1.0
 */
export const cron = (expression: string | Cron.Cron, options?: CronOptions): Periodic =>
  periodic.cron(expression, options)

/**
 * The first run after `delay`, all further ones by `schedule`.
 *
 * **Example** (Half a minute after each gain, then hourly and a little apart)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Schedule } from "effect"
 *
 * const schedule = Schedule.spaced("1 hour").pipe(Schedule.jittered, Leadership.startingAfter("30 seconds"))
 * ```
 *
 * @category schedules
 * @since 0.1.0
 */
export const startingAfter: {
  (
    delay: Duration.Input
  ): <A, I, E, R>(schedule: Schedule.Schedule<A, I, E, R>) => Schedule.Schedule<A | undefined, I, E | InvalidConfig, R>
  <A, I, E, R>(
    schedule: Schedule.Schedule<A, I, E, R>,
    delay: Duration.Input
  ): Schedule.Schedule<A | undefined, I, E | InvalidConfig, R>
} = periodic.startingAfter

/**
 * A contender: from `Mutex.contend`, or the class made by `Contender.Service`, which is looked up in the context.
 *
 * **Example** (Work that does not care how its contender came about)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const announcing = <E, R>(contender: Leadership.ContenderSource<E, R>) =>
 *   Leadership.whileLeader(contender, (lease) => Effect.log(`leading ${lease.mutex} with token ${lease.token}`))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type ContenderSource<E = never, R = never> = Contender | Effect.Effect<Contender, E, R>

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
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("jobs") {}
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
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("jobs") {}
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
 * import { type SimbaError, Leadership, type Mutex } from "@effect-simba/core"
 * import type { Layer } from "effect"
 *
 * const shortLeases = <const Jobs extends ReadonlyArray<Leadership.Job>>(
 *   jobs: Jobs
 * ): Layer.Layer<
 *   never,
 *   SimbaError.InvalidName | SimbaError.InvalidConfig,
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
