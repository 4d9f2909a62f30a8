/** Validates a job's options for `Leadership`. `jobPlan`, `jobRunner` and `jobRun` rely on the result. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Job } from "../../Leadership.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import { excerpt } from "../excerpt.ts"
import { anyProblem } from "../nameRules.ts"
import { checkOptions, notNegative, oneOf, positive, refuse } from "../optionChecks.ts"
import { type Instants, TypeId } from "./jobSchedule.ts"

/** All durations are in milliseconds. */
export interface JobSpec {
  readonly name: string
  readonly instants: Instants
  readonly onError: "continue" | "stepDown"
  readonly misfire: NonNullable<Job["misfire"]>
  readonly catchUp: number
  readonly minInterval: number
  readonly maxRun: number | undefined
  readonly attempts: number
}

/** All options. In an array with an inferred type, the compiler accepts unknown ones, such as `misFire`. */
const known: { readonly [Option in keyof Required<Job>]: true } = {
  name: true,
  schedule: true,
  run: true,
  onError: true,
  misfire: true,
  catchUp: true,
  attempts: true,
  minInterval: true,
  maxRun: true
}

const dayMillis = 24 * 60 * 60 * 1000

export const make = Effect.fnUntraced(function*(job: Job): Effect.fn.Return<JobSpec, InvalidConfig> {
  yield* checkOptions(job)
  const unknown = Object.keys(job).find((option) => !Object.hasOwn(known, option))
  if (unknown !== undefined) {
    return yield* refuse(unknown, `it does not exist; a job's options are ${Object.keys(known).join(", ")}`)
  }
  const { attempts = 1, name, onError = "continue", run } = job
  const problem = anyProblem(name)
  if (problem !== undefined) return yield* refuse("name", problem)
  if (typeof run !== "function" && !Effect.isEffect(run)) {
    return yield* refuse("run", "it must be an Effect, or a function that returns one")
  }
  const schedule: Partial<Job["schedule"]> | null | undefined = job.schedule
  const instants = yield* schedule?.[TypeId] ??
    refuse("schedule", `${excerpt(schedule)} is not a schedule: write Leadership.cron(...) or Leadership.every(...)`)
  const catchUp = job.catchUp === undefined
    ? instants.everyMillis ?? 0
    : Duration.toMillis(yield* notNegative("catchUp", job.catchUp))
  const misfire = job.misfire ?? (catchUp > 0 ? "runOnce" : "skip")
  yield* oneOf("misfire", misfire, ["skip", "runOnce", "runAll"])
  yield* oneOf("onError", onError, ["continue", "stepDown"])
  if (misfire === "skip" && job.catchUp !== undefined && catchUp > 0) {
    return yield* refuse("catchUp", `misfire "skip" never makes up for a missed run: remove one of the two options`)
  }
  if (misfire !== "skip" && catchUp === 0) {
    return yield* refuse("misfire", `"${misfire}" needs catchUp: the maximum age of a missed run`)
  }
  if (!Number.isInteger(attempts) || attempts < 1) {
    return yield* refuse("attempts", "it must be a whole number of at least 1")
  }
  if (attempts > 1 && misfire === "skip") {
    return yield* refuse("attempts", "more than 1 needs catchUp: how late a retry may start")
  }
  return {
    name,
    instants,
    onError,
    misfire,
    catchUp: misfire === "skip" ? 0 : catchUp,
    minInterval: Duration.toMillis(yield* notNegative("minInterval", job.minInterval ?? 0)),
    maxRun: job.maxRun === undefined ? undefined : Duration.toMillis(yield* positive("maxRun", job.maxRun)),
    attempts
  }
})

/**
 * How long the backend keeps the record of an unused job: `catchUp` plus four periods, but at least 30 days. At most a
 * century, because the record's expiry time must be a safe integer.
 */
export const keepOf = ({ catchUp, instants }: JobSpec, now: number): Duration.Duration => {
  const first = instants.next(now)
  const period = instants.next(first) - first
  return Duration.millis(Math.min(Math.max(30 * dayMillis, catchUp + 4 * period), 36_500 * dayMillis))
}
