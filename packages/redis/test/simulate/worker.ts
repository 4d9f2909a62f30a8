/** A worker thread for `pnpm simulate`, which runs every n-th seed of a plan and reports each result to `main.ts`. */
import { Simulation } from "@effect-simba/testkit"
import { Effect } from "effect"
import { parentPort, workerData } from "node:worker_threads"
import { measure } from "./freeWaits.ts"
import { plans } from "./plans.ts"

export interface Task {
  readonly plan: string
  readonly first: number
  readonly last: number
  readonly stride: number
}

export interface Report {
  readonly seed: number
  readonly commands: number
  readonly virtualMillis: number
  readonly handOvers: number
  /** The longest wait for a free mutex, in milliseconds. */
  readonly longestFreeWait: number
  readonly violations: number
  /** The checker's name and the message of the first violation. */
  readonly violation: string | undefined
}

// Disable stack traces, because simulations create thousands of errors as values. The main thread replays the first
// failed seed with stack traces.
Error.stackTraceLimit = 0

const { first, last, plan, stride } = workerData as Task

const each = (seed: number): Effect.Effect<void> =>
  Effect.map(Simulation.run(plans[plan]!(seed)), (result) => {
    const violation = result.violations[0]
    const { found, onEvent } = measure()
    for (const event of result.events) {
      if (event._tag === "Phase" && event.phase === "closing") break
      onEvent(event)
    }
    const report: Report = {
      seed,
      commands: result.commands,
      virtualMillis: result.virtualMillis,
      handOvers: found.handOvers,
      longestFreeWait: found.longest,
      violations: result.violations.length,
      violation: violation === undefined ? undefined : `${violation.checker}: ${violation.message}`
    }
    parentPort!.postMessage(report)
  })

const seeds = Array.from({ length: Math.max(0, Math.ceil((last - first + 1) / stride)) }, (_, i) => first + i * stride)

Effect.runPromise(Effect.forEach(seeds, each, { discard: true })).catch((error: unknown) => {
  throw error
})
