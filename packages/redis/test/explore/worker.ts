/** A worker thread for `pnpm explore`, which explores one part after another as requested by `main.ts`. */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { parentPort } from "node:worker_threads"
import { scopes } from "./scopes.ts"

/** A part of a scope: the schedules with at most `deviations` deviations, the first of which is `within`. */
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
  /** The first failed schedule and its violation. */
  readonly first: readonly [schedule: string, message: string] | undefined
}

// Disable stack traces, because simulations create thousands of errors as values
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
