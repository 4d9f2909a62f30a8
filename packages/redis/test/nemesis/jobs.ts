/**
 * A `jobs` worker's program: one leadership with jobs of every kind. Each run notes its instant when it starts.
 */
import { Leadership } from "@effect-simba/core"
import type { Simulation } from "@effect-simba/testkit"
import { DateTime, Duration, Effect, Layer } from "effect"
import { claimOf, type JobRules } from "../simulate/jobsChecker.ts"
import type { Line } from "./history.ts"

export const leadership = "jobs"

interface Kind extends JobRules {
  readonly options: Omit<Leadership.Job, "name" | "run">
  /** The maximum length of a run, in milliseconds. */
  readonly longest: number
  /** How some of the runs fail. Default: none of them fail. */
  readonly failure?: "fail" | "throw"
  readonly ignoresInterruption?: true
}

const kinds: ReadonlyArray<Kind> = [
  {
    job: "rate",
    period: 250,
    attempts: 1,
    options: { schedule: Leadership.every("250 millis"), onError: "stepDown" },
    longest: 0,
    failure: "fail"
  },
  {
    job: "every instant",
    period: 1000,
    attempts: 1,
    options: { schedule: Leadership.cron("* * * * * *"), misfire: "runAll", catchUp: "1 minute" },
    longest: 100
  },
  {
    job: "skipping",
    period: 2000,
    attempts: 1,
    options: { schedule: Leadership.cron("*/2 * * * * *") },
    longest: 100
  },
  {
    job: "outlasts its period",
    period: 1000,
    attempts: 1,
    options: { schedule: Leadership.every("1 second"), maxRun: "2500 millis", minInterval: "500 millis" },
    longest: 4000
  },
  {
    job: "throws",
    period: 2000,
    attempts: 3,
    options: { schedule: Leadership.every("2 seconds"), catchUp: "20 seconds", attempts: 3 },
    longest: 500,
    failure: "throw"
  },
  {
    job: "ignores interruption",
    period: 3000,
    attempts: 1,
    options: { schedule: Leadership.every("3 seconds") },
    longest: 7000,
    ignoresInterruption: true
  }
]

export const rules: ReadonlyArray<JobRules> = kinds

export const jobs = (client: Simulation.Client) => {
  const run =
    ({ failure, ignoresInterruption, job, longest }: Kind) =>
    ({ attempt, isCatchUp, lease, scheduledAt }: Leadership.Run) =>
      Effect.gen(function*() {
        const instant = DateTime.toEpochMillis(scheduledAt)
        client.note("granted", { resource: leadership, id: lease.id, token: lease.token })
        client.note("run", { job, instant, attempt, isCatchUp: Number(isCatchUp), token: lease.token })
        const work = Effect.sleep(Duration.millis(client.random() * longest))
        yield* ignoresInterruption === true ? Effect.uninterruptible(work) : work
        const isLucky = client.random() >= (failure === "throw" ? 0.2 : 0.02)
        if (failure === "fail" && !isLucky) return yield* Effect.fail("a failed run")
        if (failure === "throw" && !isLucky) throw new Error("a defect")
      }).pipe(Effect.ensuring(Effect.sync(() => client.note("run ended", { job, token: lease.token }))))
  return Layer.launch(Leadership.layerJobs(
    leadership,
    kinds.map((kind) => ({ ...kind.options, name: kind.job, run: run(kind) }))
  ))
}

/** Returns whether each job has started a run after `since`. */
export const haveRun = (lines: ReadonlyArray<Line>, since: number): boolean =>
  kinds.every(({ job }) =>
    lines.some(([at, , , kind, fields]) => at > since && kind === "run" && fields["job"] === job)
  )

/** Renders a table with each job's run counts, and its missed runs by cause. */
export const table = (
  lines: ReadonlyArray<Line>,
  events: Simulation.Result["events"]
): string => {
  const claims = events.flatMap((event) => {
    if (event._tag !== "Command" || !Array.isArray(event.command.reply)) return []
    const claim = claimOf(event.command.args)
    return claim === undefined ? [] : [claim]
  })
  const rows = kinds.map(({ job }) => {
    const runs = lines.filter(([, , , kind, fields]) => kind === "run" && fields["job"] === job)
    const passed = claims.filter((claim) => claim.job === job)
    const missed = (cause: string) => passed.reduce((sum, claim) => claim.cause === cause ? sum + claim.missed : sum, 0)
    return [
      job,
      runs.length,
      runs.filter(([, , , , fields]) => fields["isCatchUp"] === 1).length,
      runs.filter(([, , , , fields]) => Number(fields["attempt"]) > 1).length,
      passed.filter(({ mode }) => mode === "run").length - runs.length,
      ...["noLeader", "running", "outage"].map(missed)
    ]
  })
  return [["job", "runs", "caught up", "retries", "not started", "no leader", "running", "outage"], ...rows]
    .map(([name, ...cells]) => [String(name).padEnd(22), ...cells.map((cell) => String(cell).padStart(11))].join(""))
    .join("\n")
}
