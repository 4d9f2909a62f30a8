/**
 * Work that runs on one node in a fleet, the leader.
 *
 * There are two kinds of work. `whileLeader` runs an effect while its node leads; use any `Schedule` to repeat it. A
 * job runs once per period in the whole fleet, even if the leader changes. Its periods follow the backend's clock.
 *
 * Losing leadership interrupts the work immediately. The mutex is released after the work and its finalizers have
 * ended.
 *
 * **Example** (A service's background jobs)
 *
 * ```ts
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const Jobs = Leadership.layerJobs("jobs", [
 *   { name: "sweep", schedule: Leadership.every("10 minutes"), run: Effect.log("sweeping") },
 *   { name: "report", schedule: Leadership.cron("0 3 * * *"), catchUp: "1 hour", run: Effect.log("reporting") }
 * ])
 *
 * const Live = Jobs.pipe(Layer.provide(Mutex.layerMemory()))
 * ```
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Contender, Options as ContenderOptions, WorkOptions } from "./Contender.ts"
import type { HookServices } from "./internal/hookServices.ts"
import * as jobRunner from "./internal/leadership/jobRunner.ts"
import * as jobSchedule from "./internal/leadership/jobSchedule.ts"
import * as jobSpec from "./internal/leadership/jobSpec.ts"
import { refuse } from "./internal/optionChecks.ts"
import type { Body, Lease } from "./Lease.ts"
import { contend, type Mutex } from "./Mutex.ts"
import type { InvalidConfig, InvalidName } from "./SimbaError.ts"

type ContenderSource<E = never, R = never> = Contender | Effect.Effect<Contender, E, R>

const contenderOf = <E, R>(source: ContenderSource<E, R>): Effect.Effect<Contender, E, R> =>
  Effect.isEffect(source) ? source : Effect.succeed(source)

/**
 * Runs `work` from the start each time this node becomes the leader, and interrupts it when its leadership ends.
 *
 * **Details**
 *
 * `contender` is a `Contender`, its service class, or an effect that returns one. Work that succeeds does not run again
 * until this node next becomes the leader. If the work fails, this node gives up leadership so that another can lead;
 * but if `onError` is `"fail"`, this effect fails instead. Inside the work, use `Effect.repeat` to run it periodically
 * and `Effect.retry` to retry it on this node.
 *
 * **Example** (A poller that runs on one node)
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

/**
 * A job's schedule, created by `every` or `cron`. All nodes in a fleet compute the same times.
 *
 * **Example** (Nightly jobs in each region's time zone)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const closing = (region: string, schedule: Leadership.JobSchedule): Leadership.Job => ({
 *   name: `closing-${region}`,
 *   schedule,
 *   run: Effect.log(`closing ${region}`)
 * })
 *
 * const asia = closing("asia", Leadership.cron("0 3 * * *", { timeZone: "Asia/Tokyo" }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface JobSchedule extends jobSchedule.JobSchedule {}

/**
 * Runs once in each period. Periods start at multiples of their length since 1970, in UTC.
 *
 * **Details**
 *
 * A new job runs immediately, for the current period. When the leader changes, the next leader runs the job immediately
 * if it has not run in this period.
 *
 * **Example** (Every ten minutes)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 *
 * const schedule = Leadership.every("10 minutes")
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const every = (period: Duration.Input): JobSchedule => jobSchedule.every(period)

/**
 * Runs at the times of a cron expression with five fields, or six if it starts with seconds. `@hourly`, `@daily`,
 * `@weekly`, `@monthly` and `@yearly` are supported.
 *
 * **Details**
 *
 * When clocks change, an hour field that begins with `*` matches every hour that passes: both occurrences of a repeated
 * hour, and no skipped hour. A job at a fixed hour runs once: at the first of two equal local times or, if its time is
 * skipped, later by as much as the clocks change.
 *
 * **Gotchas**
 *
 * `L`, `W`, `#` and `?`, which other cron implementations support, are rejected. The `InvalidConfig` error says what to
 * write instead.
 *
 * **Example** (At half past six on weekdays, in Vienna)
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
  expression: string,
  options?: {
    /** A time zone or its IANA name. Default: UTC, regardless of the machine's time zone. */
    readonly timeZone?: string | DateTime.TimeZone | undefined
  }
): JobSchedule => jobSchedule.cron(expression, options)

/**
 * The argument of a job's `run` function.
 *
 * **Example** (Using the scheduled day)
 *
 * ```ts
 * import type { Leadership } from "@effect-simba/core"
 * import { DateTime, Effect } from "effect"
 *
 * const invoice = ({ isCatchUp, lease, scheduledAt }: Leadership.Run) =>
 *   Effect.log(`invoices of ${DateTime.formatIsoDate(scheduledAt)}`, { isCatchUp, token: lease.token })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Run {
  /** The scheduled time that this run is for, according to the backend's clock. The run starts then or later. */
  readonly scheduledAt: DateTime.Utc
  /** Whether this run makes up for a scheduled time that passed without a run, or retries an earlier run. */
  readonly isCatchUp: boolean
  /** The attempt number for the scheduled time, starting with 1. See `attempts` in `Job`. */
  readonly attempt: number
  /** The leader's lease. Pass its `token` to the resources that the run writes to. */
  readonly lease: Lease
}

/**
 * A job that the fleet's leader runs at most once for each scheduled time, unless `attempts` allows retries.
 *
 * **Details**
 *
 * The backend assigns each scheduled time to one leader, according to its own clock. It forgets a job a month after a
 * node last declared it, or after `catchUp` plus four periods if that is longer, but not while the job is paused.
 * Missed runs are logged, and counted by cause.
 *
 * **Example** (Using the leader's lease)
 *
 * ```ts
 * import { Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const job: Leadership.Job = {
 *   name: "sweep",
 *   schedule: Leadership.every("10 seconds"),
 *   run: ({ lease }) => Effect.log(`sweeping with token ${lease.token}`)
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Job<E = unknown, R = unknown> {
  /** The job's name, unique within the mutex and not blank. */
  readonly name: string
  readonly schedule: JobSchedule
  readonly run: Effect.Effect<unknown, E, R> | ((run: Run) => Effect.Effect<unknown, E, R>)
  /**
   * What happens when a run fails or dies. Failures are always logged and counted.
   *
   * - `continue` (default): the next run starts as scheduled.
   * - `stepDown`: no more runs start, and runs of other jobs may finish within the contender's `drainTimeout`. Then the
   *   leadership ends, and another node can try. This node contends again after a pause of up to 10 seconds. If no
   *   other node leads, all jobs are late during the pause, so those that `skip` missed runs may never run.
   */
  readonly onError?: "continue" | "stepDown" | undefined
  /**
   * What happens to scheduled times that passed without a run.
   *
   * - `skip`: nothing. The next run is for the next scheduled time.
   * - `runOnce`: one run for the latest of these times, if it is no older than `catchUp`.
   * - `runAll`: one run for each of these times that is no older than `catchUp`, one after another.
   *
   * Default: `runOnce` if `catchUp` is longer than 0, otherwise `skip`.
   */
  readonly misfire?: "skip" | "runOnce" | "runAll" | undefined
  /** Maximum age of a scheduled time to catch up on. Default: one period of `every`, and 0 for `cron`. */
  readonly catchUp?: Duration.Input | undefined
  /**
   * Maximum number of attempts for one scheduled time. A run that failed, was interrupted, or died with its node is
   * retried after a pause of 1 second, which doubles with each attempt up to a minute. Retries must start within
   * `catchUp`, so more than one attempt requires `catchUp`. Default: 1 (no retries).
   */
  readonly attempts?: number | undefined
  /** Minimum time between the starts of two runs, by the backend's clock. Default: 0. */
  readonly minInterval?: Duration.Input | undefined
  /**
   * Maximum duration of a run. A longer run is interrupted and counts as failed. Default: no limit, but a warning is
   * logged when a run exceeds its period.
   */
  readonly maxRun?: Duration.Input | undefined
}

/** The services that a job's `run` requires. */
type JobServices<J extends Job> = J["run"] extends infer Body
  ? Body extends (run: Run) => infer Made ? Effect.Services<Made> : Effect.Services<Body>
  : never

const prepare = <R>(jobs: ReadonlyArray<Job<unknown, R>>) => {
  const names = new Set<string>()
  return Effect.forEach(
    jobs,
    (job) =>
      Effect.flatMap(jobSpec.make(job), (spec): Effect.Effect<jobRunner.Prepared<R>, InvalidConfig> => {
        if (names.has(spec.name)) return refuse("jobs", `there are two jobs named ${JSON.stringify(spec.name)}`)
        names.add(spec.name)
        return Effect.succeed({ spec, run: job.run })
      })
  )
}

/**
 * Runs jobs while the contender leads.
 *
 * **Details**
 *
 * Runs until it is interrupted. Fails with `InvalidConfig` if an option is invalid, or if a name is blank, not unique,
 * or already used by a job that is running on the contender. If that job was interrupted but one of its runs is still
 * ending, waits for that run to end first.
 *
 * **Example** (Sharing a contender with other work)
 *
 * ```ts
 * import { Contender, Leadership } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Node extends Contender.Service<Node>()("app/Node") {}
 *
 * const jobs = [
 *   { name: "sweep", schedule: Leadership.every("1 minute"), run: Effect.log("sweeping") },
 *   { name: "count", schedule: Leadership.every("10 seconds"), run: Effect.log("counting"), onError: "stepDown" }
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
    const prepared = yield* prepare(jobs as ReadonlyArray<Job<unknown, JobServices<Jobs[number]>>>)
    return yield* jobRunner.run(yield* contenderOf(contender), prepared)
  })

/**
 * Contends for the mutex `name` while the layer is open, and runs the jobs while this process leads.
 *
 * **Details**
 *
 * Building the layer fails if a name, an option or a job is invalid. Closing it interrupts the jobs, waits for them to
 * end, and then releases the mutex.
 *
 * **Example** (A helper for jobs with short leases)
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
export const layerJobs = <const Jobs extends ReadonlyArray<Job>, R = never>(
  name: string,
  jobs: Jobs,
  options?: ContenderOptions<R>
): Layer.Layer<never, InvalidName | InvalidConfig, Mutex | JobServices<Jobs[number]> | HookServices<R>> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const prepared = yield* prepare(jobs as ReadonlyArray<Job<unknown, JobServices<Jobs[number]>>>)
    yield* Effect.forkScoped(jobRunner.run(yield* contend(name, options), prepared))
  }))
