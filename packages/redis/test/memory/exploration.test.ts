/** Runs the programs in `explore/scopes.ts` under all schedules with one deviation, and the mutex programs with two. */
import { Simulation } from "@effect-simba/testkit"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { scopes } from "../explore/scopes.ts"
import { streamScopes } from "../explore/streamScopes.ts"

// Simulations create thousands of errors as values, so stack traces would cost too much
const { stackTraceLimit } = Error
Error.stackTraceLimit = 0
afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))

const clean = (explored: Simulation.Explored) => {
  assert.isUndefined(explored.first, explored.first && Simulation.report(explored.first))
  assert.isTrue(explored.isComplete)
}

describe("every schedule with one deviation", () => {
  for (const [name, { plan, what }] of Object.entries(scopes)) {
    const tags = name in streamScopes ? ["long"] : []
    it.effect(`${name}: ${what}`, () => Effect.map(Simulation.explore(plan), clean), { tags })
  }
})

/** Data-stream programs are in `streamExploration.test.ts`, because separate files run in parallel. */
describe("every schedule with two deviations", () => {
  for (const [name, { plan, what }] of Object.entries(scopes)) {
    if (name in streamScopes) continue
    it.effect(`${name}: ${what}`, () => Effect.map(Simulation.explore(plan, { deviations: 2 }), clean), {
      tags: ["long"]
    })
  }
})
