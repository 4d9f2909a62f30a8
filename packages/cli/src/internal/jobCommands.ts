/** `jobs`: lists a fleet's jobs, and sends an operator's requests to the fleet's leader. */
import * as Jobs from "@effect-simba/core/Jobs"
import { cron, every } from "@effect-simba/core/Leadership"
import { MutexName } from "@effect-simba/core/MutexName"
import { mutexKeys as keys, Redis, scan } from "@effect-simba/redis/RedisInternals"
import { RedisTopology } from "@effect-simba/redis/RedisTopology"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { stop } from "./exitCodes.ts"
import { mutexes, nameArgument } from "./mutexCommands.ts"
import { type Paint, plural, print, printable, table } from "./output.ts"
import { durationFlag } from "./settings.ts"

const jobArgument = Argument.String("job").pipe(Argument.withDescription("The name of the job"))

const anyJob = jobArgument.pipe(Argument.optional)

const show = (at: Option.Option<DateTime.Utc>) => Option.match(at, { onNone: () => "-", onSome: DateTime.formatIso })

/** Formats a schedule. A period is shown in readable units, such as `every 10s`. */
const showSchedule = (text: string) =>
  text.replace(/^every (\d+)$/, (_, millis) => `every ${Duration.format(Duration.millis(Number(millis)))}`)

const orNull = Option.getOrNull

const toJson = ({ lastRun, lastSuccess, missedBecause, next, schedule, ...rest }: Jobs.JobState) => ({
  ...rest,
  schedule: orNull(schedule),
  next: orNull(Option.map(next, DateTime.formatIso)),
  lastRun: orNull(Option.map(lastRun, ({ endedAt, outcome, scheduledAt, startedAt, ...run }) => ({
    ...run,
    scheduledAt: DateTime.formatIso(scheduledAt),
    startedAt: DateTime.formatIso(startedAt),
    endedAt: orNull(Option.map(endedAt, DateTime.formatIso)),
    outcome: orNull(outcome)
  }))),
  lastSuccess: orNull(Option.map(lastSuccess, DateTime.formatIso)),
  missedBecause: orNull(missedBecause)
})

const outcomeOf = ({ lastRun }: Jobs.JobState) =>
  Option.match(lastRun, {
    onNone: () => "-",
    onSome: ({ outcome }) => Option.getOrElse(outcome, () => "running")
  })

const unknown = (name: string, job: Option.Option<string>) =>
  stop(
    "negative",
    Option.isSome(job)
      ? `"${printable(name)}" has no job "${printable(job.value)}".`
      : `"${printable(name)}" has no jobs.`
  )

type Fleet = Effect.Success<ReturnType<typeof Jobs.list>>

const fleetTable = ({ isPaused, jobs, malformed }: Fleet, paint: Paint) => [
  ...table(jobs, {
    JOB: ({ name }) => name,
    SCHEDULE: ({ isRescheduled, schedule }) =>
      Option.match(schedule, { onNone: () => "-", onSome: showSchedule }) + (isRescheduled ? " (set by hand)" : ""),
    "LAST START": ({ lastRun }) => show(Option.map(lastRun, ({ startedAt }) => startedAt)),
    OUTCOME: outcomeOf,
    "LAST SUCCESS": ({ lastSuccess }) => show(lastSuccess),
    NEXT: ({ isPaused, next }) => isPaused ? "paused" : show(next),
    MISSED: ({ missed }) => missed
  }, paint),
  ...malformed.map(({ name, problem }) =>
    paint("red", `"${printable(name)}" is malformed and does not run: ${printable(problem)}`)
  ),
  ...(isPaused ? [paint("yellow", "all jobs are paused")] : [])
]

const pattern = keys.jobs(MutexName.make("*"))
const [keyStart, keyEnd] = pattern.split("*") as [string, string]

/** The fleets on the server that have jobs, including fleets without a leader. */
const fleets = Effect.gen(function*() {
  const found = scan("list jobs", yield* Redis, yield* RedisTopology, "MATCH", pattern, "TYPE", "hash")
  const names = new Set(
    (yield* Stream.runCollect(found))
      .map((key) => key.slice(keyStart.length, -keyEnd.length))
      .filter(Schema.is(MutexName))
  )
  const all = yield* Effect.forEach(
    [...names].sort(),
    (name) => Effect.map(Jobs.list(name), (fleet) => ({ name, ...fleet })),
    { concurrency: 4 }
  )
  return all.filter(hasJobs)
})

const hasJobs = ({ jobs, malformed }: Fleet) => jobs.length + malformed.length > 0

const list = Command.make(
  "list",
  { name: nameArgument.pipe(Argument.optional) },
  Effect.fnUntraced(function*({ name }) {
    if (Option.isNone(name)) {
      const all = yield* fleets
      return yield* print(
        all.map(({ jobs, ...fleet }) => ({ ...fleet, jobs: jobs.map(toJson) })),
        (paint) =>
          all.flatMap((fleet) => [paint("bold", printable(fleet.name)), ...fleetTable(fleet, paint), ""])
            .concat(paint("dim", plural(all.length, "fleet")))
      )
    }
    const fleet = yield* Jobs.list(name.value)
    if (!hasJobs(fleet)) return yield* unknown(name.value, Option.none())
    yield* print({ ...fleet, jobs: fleet.jobs.map(toJson) }, (paint) => fleetTable(fleet, paint))
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("List each job's last and next run, in one fleet or in all fleets"))

const done = Effect.fnUntraced(function*(was: boolean, name: string, job: Option.Option<string>, text: string) {
  if (!was) return yield* unknown(name, job)
  yield* print({ name, job: Option.getOrNull(job) }, (paint) => [paint("green", text)])
})

const subject = (name: string, job: Option.Option<string>) =>
  Option.match(job, {
    onNone: () => `all jobs of "${printable(name)}"`,
    onSome: (job) => `"${printable(job)}" of "${printable(name)}"`
  })

const run = Command.make(
  "run",
  { name: nameArgument, job: jobArgument },
  Effect.fnUntraced(function*({ job, name }) {
    const text = `asked the leader to run "${printable(job)}" of "${printable(name)}"`
    yield* done(yield* Jobs.run(name, job), name, Option.some(job), text)
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Ask the leader to run a job once, now"))

const pause = Command.make(
  "pause",
  { name: nameArgument, job: anyJob },
  Effect.fnUntraced(function*({ job, name }) {
    yield* done(yield* Jobs.pause(name, Option.getOrUndefined(job)), name, job, `paused ${subject(name, job)}`)
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Pause one job, or all jobs, in the whole fleet"))

const resume = Command.make(
  "resume",
  { name: nameArgument, job: anyJob },
  Effect.fnUntraced(function*({ job, name }) {
    if (!(yield* Jobs.resume(name, Option.getOrUndefined(job)))) return yield* unknown(name, job)
    // Pausing all jobs is independent of pausing one job, so this job may still be paused
    const { isPaused, jobs } = yield* Jobs.list(name)
    const left = isPaused ? [] : jobs.flatMap(({ isPaused, name }) => isPaused ? [name] : [])
    yield* print({ name, job: Option.getOrNull(job), isPaused, pausedJobs: left }, (paint) => [
      paint("green", `resumed ${subject(name, job)}`),
      ...(isPaused ? [paint("yellow", "all jobs are paused")] : []),
      ...left.map((name) => paint("yellow", `"${printable(name)}" is paused`))
    ])
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("End a pause"))

const optional = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(description), Flag.optional)

const reschedule = Command.make(
  "reschedule",
  {
    name: nameArgument,
    job: jobArgument,
    cron: optional("cron", "A cron expression"),
    timeZone: optional("time-zone", "The time zone for --cron (default: UTC)"),
    every: durationFlag("every", "A period, such as \"10 minutes\"")
  },
  Effect.fnUntraced(function*({ cron: expression, every: period, job, name, timeZone }) {
    if (Option.isSome(expression) && period !== undefined) return yield* stop("usage", "Use --cron or --every.")
    if (Option.isSome(timeZone) && Option.isNone(expression)) return yield* stop("usage", "--time-zone needs --cron.")
    const schedule = Option.isSome(expression)
      ? cron(expression.value, { timeZone: Option.getOrUndefined(timeZone) })
      : period && every(period)
    const text = schedule === undefined
      ? `${subject(name, Option.some(job))} uses the schedule from its code again`
      : `rescheduled ${subject(name, Option.some(job))}`
    yield* done(yield* Jobs.reschedule(name, job, schedule), name, Option.some(job), text)
  }, Effect.provide(mutexes))
).pipe(
  Command.withDescription("Replace a job's schedule; without --cron or --every, restore the schedule from its code")
)

const stepDown = Command.make(
  "step-down",
  { name: nameArgument },
  Effect.fnUntraced(function*({ name }) {
    if (!(yield* Jobs.stepDown(name))) return yield* stop("negative", `"${printable(name)}" has no leader with jobs.`)
    yield* print({ name }, (paint) => [paint("green", `asked the leader of "${printable(name)}" to step down`)])
  }, Effect.provide(mutexes))
).pipe(Command.withDescription("Ask the leader to finish its current runs and step down"))

export const jobs = Command.make("jobs").pipe(
  Command.withDescription("List and control a fleet's jobs"),
  Command.withSubcommands([list, run, pause, resume, reschedule, stepDown])
)
