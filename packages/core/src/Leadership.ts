/**
 * Work that runs on one node of a fleet: the one whose contender leads.
 *
 * Work runs from each gain of the leadership on, in a fiber of its own. A loss is an interruption: it is not delayed by
 * slow work, and the mutex is given back after the work, its finalizers included, has ended.
 *
 * **Example** (Background jobs of a service)
 *
 * ```ts
 * import { Leadership, MemoryMutexStore, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const Jobs = Leadership.layerJobs("jobs", [
 *   { name: "sweep", schedule: Leadership.fixedDelay("10 seconds"), run: Effect.log("sweeping") },
 *   { name: "report", schedule: Leadership.cron("0 3 * * *"), oncePerPeriod: true, run: Effect.log("reporting") }
 * ])
 *
 * const Live = Jobs.pipe(Layer.provide(Mutex.layer()), Layer.provide(MemoryMutexStore.layer))
 * ```
 *
 * @since 0.1.0
 */
import type * as Cron from "effect/Cron"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import type { Contention, ContentionOptions } from "./Contention.ts"
import { InvalidConfig, type InvalidName } from "./Errors.ts"
import * as leadership from "./internal/leadership.ts"
import * as periodic from "./internal/periodic.ts"
import type {
  Contender,
  CronOptions,
  Job,
  JobServices,
  OncePerPeriodOptions,
  OnError,
  Periodic,
  RateOptions,
  ScheduleOptions,
  Timetable
} from "./LeadershipOptions.ts"
import { type Body, contend, type Mutex } from "./Mutex.ts"

export type {
  Contender,
  CronOptions,
  Job,
  JobServices,
  Last,
  OncePerPeriodOptions,
  OnError,
  Periodic,
  RateOptions,
  ScheduleOptions,
  Timetable
} from "./LeadershipOptions.ts"

const contentionOf = <E, R>(contender: Contender<E, R>): Effect.Effect<Contention, E, R> =>
  Effect.isEffect(contender) ? contender : Effect.succeed(contender)

/**
 * Runs `work` whenever the contender leads: from the start at each gain, interrupted at each loss. Ends only by a failure
 * of `work`, which leaves the leadership alone. See `Contention.whileLeader`.
 *
 * **Example** (A consumer of which the fleet wants one)
 *
 * ```ts
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Poller extends Mutex.Contender<Poller>()("poller") {}
 *
 * const poll = Effect.forever(Effect.delay(Effect.log("polling"), "1 second"))
 * const program = Leadership.whileLeader(Poller, poll).pipe(Effect.provide(Poller.layer))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const whileLeader = <A, E, R, CE = never, CR = never>(
  contender: Contender<CE, CR>,
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
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Jobs extends Mutex.Contender<Jobs>()("jobs") {}
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
    contender: Contender<CE, CR>,
    work: Body<A, E, R>,
    schedule: Periodic,
    options: OncePerPeriodOptions<H>
  ): Effect.Effect<never, ("fail" extends H ? E : never) | InvalidConfig | CE, R | CR>
  <A, E, R, SE, SR, CE = never, CR = never, const H extends OnError = "continue">(
    contender: Contender<CE, CR>,
    work: Body<A, E, R>,
    schedule: Timetable<SE, SR>,
    options?: ScheduleOptions<H>
  ): Effect.Effect<never, ("fail" extends H ? E : never) | InvalidConfig | SE | CE, R | SR | CR>
} = <A, E, R, SE, SR, CE, CR>(
  contender: Contender<CE, CR>,
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
  contention: Contention,
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
 * import { Leadership, Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * class Node extends Mutex.Contender<Node>()("node") {}
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
  contender: Contender<CE, CR>,
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
  options?: ContentionOptions
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
