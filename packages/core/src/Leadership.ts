/**
 * Work that runs on one node of a fleet: the node whose contender leads.
 *
 * Work runs in a fiber of its own from each gain of the leadership on. A loss interrupts it at once, and the mutex is
 * released after the work and its finalizers have ended.
 *
 * **Example** (Background jobs of a service)
 *
 * ```ts
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const Jobs = Leadership.layerJobs("jobs", [
 *   { name: "sweep", schedule: Leadership.fixedDelay("10 seconds"), run: Effect.log("sweeping") },
 *   { name: "report", schedule: Leadership.cron("0 3 * * *"), oncePerPeriod: true, run: Effect.log("reporting") }
 * ])
 *
 * const Live = Jobs.pipe(Layer.provide(Mutex.layerMemory()))
 * ```
 *
 * @since 0.1.0
 */
import type * as Cron from "effect/Cron"
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type { Contender, ContenderOptions, WorkOptions } from "./Contender.ts"
import * as scheduledWork from "./internal/leadership/scheduledWork.ts"
import * as schedules from "./internal/leadership/schedules.ts"
import * as log from "./internal/log.ts"
import { refuse } from "./internal/optionChecks.ts"
import type { Body, Lease } from "./Lease.ts"
import { contend, type Mutex } from "./Mutex.ts"
import type { InvalidConfig, InvalidName } from "./SimbaError.ts"

type WorkSchedule<E, R> = scheduledWork.WorkSchedule<E, R>

type ContenderSource<E = never, R = never> = Contender | Effect.Effect<Contender, E, R>

const contenderOf = <E, R>(source: ContenderSource<E, R>): Effect.Effect<Contender, E, R> =>
  Effect.isEffect(source) ? source : Effect.succeed(source)

/**
 * Runs `work` from the start at each gain of the leadership, and interrupts it at each loss.
 *
 * **Details**
 *
 * `contender` is a contender, or an effect or service of one. Work that ends early rests until the next gain. Work that
 * fails ends the leadership, so that another node may lead; with `onError: "fail"` it ends this effect instead. To work on a
 * rhythm, repeat the work. To try it again on this node, retry it.
 *
 * **Example** (A poller of which the fleet wants one)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect, Schedule } from "effect"
 *
 * class Poller extends Contender.Service<Poller>()("app/Poller") {}
 *
 * const program = Effect.log("polling").pipe(
 *   Effect.retry(Schedule.exponential("1 second").pipe(Schedule.upTo({ times: 3 }))),
 *   Effect.repeat(Schedule.fixed("10 seconds")),
 *   Leadership.whileLeader(Poller),
 *   Effect.provide(Poller.layer("poller"))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const whileLeader: {
  <CE = never, CR = never, const OnError extends "stepDown" | "fail" = "stepDown">(
    contender: ContenderSource<CE, CR>,
    options?: WorkOptions<OnError>
  ): <A, E, R>(work: Body<A, E, R>) => Effect.Effect<never, ("fail" extends OnError ? E : never) | CE, R | CR>
  <A, E, R, CE = never, CR = never, const OnError extends "stepDown" | "fail" = "stepDown">(
    contender: ContenderSource<CE, CR>,
    work: Body<A, E, R>,
    options?: WorkOptions<OnError>
  ): Effect.Effect<never, ("fail" extends OnError ? E : never) | CE, R | CR>
} = <A, E, R, CE, CR>(
  contender: ContenderSource<CE, CR>,
  first?: Body<A, E, R> | WorkOptions,
  second?: WorkOptions
): never => {
  const lead = (options: WorkOptions | undefined) => (work: Body<A, E, R>) =>
    Effect.flatMap(contenderOf(contender), (contender) => contender.whileLeader(work, options))
  return (isBody(first) ? lead(second)(first) : lead(first)) as never
}

const isBody = <A, E, R>(input: Body<A, E, R> | WorkOptions | undefined): input is Body<A, E, R> =>
  Effect.isEffect(input) || typeof input === "function"

type ScheduleFailure<S, E, H> = InvalidConfig | Schedule.Error<S> | ("fail" extends H ? E : never)

/**
 * Runs `work` on a schedule while the contender leads.
 *
 * **Details**
 *
 * The schedule starts anew at each gain, and each loss interrupts the present run. Runs of one schedule never overlap
 * within a process, and overlap with runs of the next leader only as far as locks may. The effect ends with
 * `InvalidConfig`, or with a failure of `work` where `onError` is `"fail"`.
 *
 * The schedule is asked before each run, the first one included. Its input is the `Exit` of the last run, `None` before
 * the first. When it ends, the work rests until the next gain.
 *
 * **Gotchas**
 *
 * `Schedule.spaced("1 minute")` waits a minute before the first run, and `fixedDelay("1 minute")` does not.
 *
 * **Example** (Every minute, and every night at most once in the fleet)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}
 *
 * const sweeping = Effect.log("sweeping").pipe(
 *   Leadership.leaderSchedule(Jobs, Leadership.fixedRate("1 minute"))
 * )
 *
 * const reporting = Leadership.leaderSchedule(Jobs, Effect.log("reporting"), Leadership.cron("0 3 * * *"), {
 *   name: "report",
 *   oncePerPeriod: true,
 *   catchUp: "5 minutes"
 * })
 * ```
 *
 * **Example** (A minute after a success, ten seconds after a failure)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Duration, Effect, Exit, Option, Schedule } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}
 *
 * const schedule = Schedule.fromStep(Effect.succeed(
 *   (_now: number, last: Option.Option<Exit.Exit<unknown, unknown>>) => {
 *     const pause = Option.exists(last, Exit.isFailure) ? Duration.seconds(10) : Duration.minutes(1)
 *     return Effect.succeed<[Duration.Duration, Duration.Duration]>([pause, pause])
 *   }
 * ))
 *
 * const polling = Effect.log("polling").pipe(Leadership.leaderSchedule(Jobs, schedule))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const leaderSchedule: {
  <
    S extends WorkSchedule<unknown, unknown>,
    CE = never,
    CR = never,
    const H extends scheduledWork.OnError = "continue"
  >(
    contender: ContenderSource<CE, CR>,
    schedule: S,
    options?: ScheduleOptions<H, S>
  ): <A, E, R>(work: Body<A, E, R>) => Effect.Effect<never, ScheduleFailure<S, E, H> | CE, R | Schedule.Env<S> | CR>
  <
    A,
    E,
    R,
    S extends WorkSchedule<unknown, unknown>,
    CE = never,
    CR = never,
    const H extends scheduledWork.OnError = "continue"
  >(
    contender: ContenderSource<CE, CR>,
    work: Body<A, E, R>,
    schedule: S,
    options?: ScheduleOptions<H, S>
  ): Effect.Effect<never, ScheduleFailure<S, E, H> | CE, R | Schedule.Env<S> | CR>
} = <A, E, R, SE, SR, CE, CR>(
  contender: ContenderSource<CE, CR>,
  ...[first, second, third]:
    | [schedule: WorkSchedule<SE, SR>, options?: scheduledWork.Options | undefined]
    | [work: Body<A, E, R>, schedule: WorkSchedule<SE, SR>, options?: scheduledWork.Options | undefined]
): never => {
  const lead = (schedule: WorkSchedule<SE, SR>, options?: scheduledWork.Options) => (work: Body<A, E, R>) =>
    Effect.gen(function*() {
      const plan = yield* scheduledWork.plan(schedule, options)
      return yield* scheduledWork.drive(yield* contenderOf(contender), plan, work)
    })
  return (Schedule.isSchedule(first)
    ? lead(first, second as scheduledWork.Options | undefined)
    : lead(second as WorkSchedule<SE, SR>, third)(first)) as never
}

/** What a job needs to run. */
type JobServices<J extends Job> =
  | Schedule.Env<J["schedule"]>
  | (J["run"] extends infer Run
    ? Run extends (lease: Lease) => infer Made ? Effect.Services<Made> : Effect.Services<Run>
    : never)

type Running<J extends Job> = Effect.Effect<never, InvalidConfig, JobServices<J>>

/** Checks all jobs, and answers one effect for each. */
const prepare = <const Jobs extends ReadonlyArray<Job>>(
  contender: Contender,
  jobs: Jobs
): Effect.Effect<ReadonlyArray<Running<Jobs[number]>>, InvalidConfig> => {
  const names = new Set<string>()
  return Effect.forEach(jobs, (job) => {
    if (names.has(job.name)) return refuse("jobs", `there are two jobs named ${JSON.stringify(job.name)}`)
    names.add(job.name)
    // A job's `onError` is never "fail", so its runs cannot fail the effect
    return Effect.map(
      scheduledWork.plan(job.schedule, job),
      (plan) => scheduledWork.drive(contender, plan, job.run) as Running<Jobs[number]>
    )
  })
}

/**
 * Runs jobs while the contender leads, each in a fiber of its own.
 *
 * **Details**
 *
 * Ends only with `InvalidConfig`, for a name that is blank or given twice, or for a schedule that cannot work.
 *
 * **Example** (Jobs of a contender that leads other work too)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Node extends Contender.Service<Node>()("app/Node") {}
 *
 * const jobs = [
 *   { name: "sweep", schedule: Leadership.fixedDelay("1 minute"), run: Effect.log("sweeping") },
 *   { name: "count", schedule: Leadership.fixedRate("10 seconds"), run: Effect.log("counting"), onError: "stepDown" }
 * ] as const satisfies ReadonlyArray<Leadership.Job>
 *
 * const program = Leadership.runJobs(Node, jobs).pipe(Effect.provide(Node.layer("node")))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const runJobs = <const Jobs extends ReadonlyArray<Job>, CE = never, CR = never>(
  contender: ContenderSource<CE, CR>,
  jobs: Jobs
): Effect.Effect<never, InvalidConfig | CE, JobServices<Jobs[number]> | CR> =>
  Effect.gen(function*() {
    const prepared = yield* prepare(yield* contenderOf(contender), jobs)
    yield* Effect.all(prepared, { concurrency: "unbounded", discard: true })
    return yield* Effect.never
  })

/**
 * Contends for the mutex `name` while the layer is open, and runs the jobs while it leads.
 *
 * **Details**
 *
 * Invalid names, options and jobs are refused when the layer is built. Closing the layer interrupts the jobs, awaits them,
 * then releases the mutex.
 *
 * **Example** (Jobs of any kind, with short leases)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const layerShort = <const Jobs extends ReadonlyArray<Leadership.Job>>(jobs: Jobs) =>
 *   Leadership.layerJobs("jobs", jobs, { ttl: "3 seconds", transition: "3 seconds" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerJobs = <const Jobs extends ReadonlyArray<Job>>(
  name: string,
  jobs: Jobs,
  options?: ContenderOptions
): Layer.Layer<never, InvalidName | InvalidConfig, Mutex | JobServices<Jobs[number]>> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const prepared = yield* prepare(yield* contend(name, options), jobs)
    yield* Effect.forEach(prepared, (job) =>
      Effect.forkScoped(
        Effect.tapCause(job, (cause) => log.error("A background job ended, and does not come back", cause))
      ), { discard: true })
  }))

/**
 * Runs at once at each gain, and from then on every `period`, however long the runs take.
 *
 * **Details**
 *
 * A late run begins at once and stands for all that were missed. The beat stays.
 *
 * **Example** (Every minute, the first time 10 seconds after a gain)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.fixedRate("1 minute", { initialDelay: "10 seconds" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fixedRate = (period: Duration.Input, options?: {
  /** How long after each gain the first run begins. Default: at once. */
  readonly initialDelay?: Duration.Input | undefined
}): Periodic => schedules.fixedRate(period, options)

/**
 * Runs at once at each gain, and from then on `delay` after the end of the last run.
 *
 * **Example** (A pause of ten seconds between two sweeps)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.fixedDelay("10 seconds")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const fixedDelay = (delay: Duration.Input, options?: {
  /** How long after each gain the first run begins. Default: at once. */
  readonly initialDelay?: Duration.Input | undefined
}): Schedule.Schedule<number, unknown, InvalidConfig> => schedules.fixedDelay(delay, options)

/**
 * Runs at the instants of a cron expression, of five fields or, with seconds, six.
 *
 * **Details**
 *
 * Instants are in UTC unless a time zone is given, so all nodes mean the same instants. A run that lasts until the next
 * instant makes that one pass.
 *
 * **Gotchas**
 *
 * An instant comes by the clock of the leading node. Add `oncePerPeriod` and `catchUp` where clocks may differ, or where an
 * instant must not get lost in a change of leaders.
 *
 * **Example** (At half past six of each working day, in Vienna)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.cron("30 6 * * 1-5", { timeZone: "Europe/Vienna" })
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const cron = (
  expression: string | Cron.Cron,
  /** Only for expressions that are texts: a `Cron` has options of its own. */
  options?: {
    /** An IANA name or a time zone. Default: UTC, in any zone of the machine. */
    readonly timeZone?: string | DateTime.TimeZone | undefined
    /** Which of two equal local times counts when clocks are set back. Default: `"earlier"`. */
    readonly onDstOverlap?: Cron.DstOverlapPolicy | undefined
  }
): Periodic => schedules.cron(expression, options)

/**
 * A schedule from `fixedRate` or `cron`, whose period the whole fleet knows.
 *
 * **Details**
 *
 * Piped through an operator of `Schedule` it is a schedule like any other. It fails with `InvalidConfig` if its period or
 * expression cannot work.
 *
 * **Example** (A nightly run, at the hour that a region likes)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}
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
export interface Periodic extends schedules.Periodic {}

/**
 * Options of scheduled work. `oncePerPeriod` needs a `name` and a `Periodic` schedule.
 *
 * **Details**
 *
 * With `oncePerPeriod` the backend keeps a ticket for each `name` and gives it out once. For a cron schedule the ticket is
 * the scheduled instant. For a rate it is the backend's time divided by the period, so periods begin at multiples of the
 * period since 1970. A run that failed, was interrupted, or never began because the leadership ended, has had its period. So has a run whose
 * ticket was given out by a backend that could not answer any more.
 *
 * A backend that does not answer is asked again after 100 milliseconds, later every 10 seconds. An instant of a cron
 * schedule is given up when the next one has come.
 *
 * **Example** (A failure that another node may not have)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Contender.Service<Jobs>()("app/Jobs") {}
 *
 * const options: Leadership.ScheduleOptions<"stepDown"> = { name: "mirror", onError: "stepDown" }
 *
 * const mirroring = Leadership.leaderSchedule(Jobs, Effect.fail("disk full"), Leadership.fixedRate("5 minutes"), options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export type ScheduleOptions<H extends scheduledWork.OnError = scheduledWork.OnError, S = Periodic> =
  & {
    /**
     * What follows a failure or a defect of a run, which is logged and counted in any case.
     *
     * - `continue` (default): the next run comes when the schedule says.
     * - `stepDown`: the leadership is given up with all its work, so that another node may try. Where this node leads
     *   again, the work waits 100 milliseconds, doubling up to 10 seconds with each such failure in a row.
     * - `fail`: the schedule ends with that failure. The leadership stays.
     */
    readonly onError?: H | undefined
  }
  & (
    | {
      /** What logs call the work. Default: `"work"`. */
      readonly name?: string | undefined
      /** `true` needs a `name` and a `Periodic` schedule: `fixedRate` or `cron`. */
      readonly oncePerPeriod?: false | undefined
    }
    | ([S] extends [Periodic] ? OncePerPeriod & {
        /** How the fleet knows the work, within the mutex. Not blank. */
        readonly name: string
      }
      : never)
  )

type OncePerPeriod = {
  /** At most one run per period in the whole fleet, even if the clocks of the nodes differ. */
  readonly oncePerPeriod: true
  /**
   * How late a gain of the leadership may make up for the last instant of a cron schedule that nobody has had. A fail-over
   * takes up to a ttl plus a transition, and `"1 minute"` covers it. A job that the fleet never saw has missed nothing: its
   * first run is at the next instant. Default: not at all.
   */
  readonly catchUp?: Duration.Input | undefined
}

/**
 * One background job of `runJobs` or `layerJobs`. Its failures do not end it.
 *
 * **Example** (Work that gets the lease)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const job: Leadership.Job = {
 *   name: "sweep",
 *   schedule: Leadership.fixedDelay("10 seconds"),
 *   run: (lease) => Effect.log(`sweeping with token ${lease.token}`)
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Job<E = unknown, R = unknown> =
  & {
    /** Not blank, and not the name of another job of the same contender. */
    readonly name: string
    readonly run: Body<unknown, E, R>
    /** As for `leaderSchedule`. Default: `"continue"`. */
    readonly onError?: Exclude<scheduledWork.OnError, "fail"> | undefined
  }
  & (
    | { readonly schedule: WorkSchedule<InvalidConfig, R>; readonly oncePerPeriod?: false | undefined }
    | (OncePerPeriod & { readonly schedule: Periodic })
  )
