/** Runs the data-stream programs in `explore/streamScopes.ts` under all schedules with two deviations. */
import { Simulation } from "@effect-simba/testkit"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { streamScopes } from "../explore/streamScopes.ts"

// Simulations create thousands of errors as values, so stack traces would cost too much
const { stackTraceLimit } = Error
Error.stackTraceLimit = 0
afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))

describe("every data-stream schedule with two deviations", () => {
  for (const [name, { plan, what }] of Object.entries(streamScopes)) {
    it.effect(`${name}: ${what}`, () =>
      Effect.map(Simulation.explore(plan, { deviations: 2 }), (explored) => {
        assert.isUndefined(explored.first, explored.first && Simulation.report(explored.first))
        assert.isTrue(explored.isComplete)
      }), { tags: ["long"] })
  }
})
