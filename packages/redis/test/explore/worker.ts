/** Explores the schedules that begin with one deviation, part after part, on request of the main thread. */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { parentPort } from "node:worker_threads"
import { scopes } from "./scopes.ts"

/** All schedules of a scope with at most `deviations`, of those that begin with `within`. */
export interface Part {
  readonly scope: string
  readonly within: string
  readonly deviations: number
}

export interface Found {
  readonly schedules: number
  readonly skipped: number
  readonly states: number
  readonly violations: number
  /** The first schedule that failed, with its violation. */
  readonly first: readonly [schedule: string, message: string] | undefined
}

// Errors are values here, created by the thousand
Error.stackTraceLimit = 0

const explore = ({ deviations, scope, within }: Part): Effect.Effect<Found> =>
  Effect.map(
    Simulation.explore(scopes[scope]!.plan, { deviations, all: true, within }),
    ({ first, schedules, skipped, states, violations }) => ({
      schedules,
      skipped: deviations > 1 ? skipped : 0,
      states,
      violations,
      first: first === undefined
        ? undefined
        : [first.schedule!, `${first.violations[0]!.checker}: ${first.violations[0]!.message}`]
    })
  )

parentPort?.on("message", (part: Part) => {
  Effect.runPromise(explore(part)).then(
    (found) => parentPort!.postMessage(found),
    (error: unknown) => {
      throw error
    }
  )
})
