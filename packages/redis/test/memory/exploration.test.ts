import { Simulation } from "@effect-simba/testkit"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { scopes } from "../explore/scopes.ts"
import { streamScopes } from "../explore/streamScopes.ts"

// Thousands of errors are created as values, so their stacks would be expensive
const { stackTraceLimit } = Error
Error.stackTraceLimit = 0
afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))

const clean = (explored: Simulation.Explored) => {
  assert.isUndefined(explored.first, explored.first && Simulation.report(explored.first))
  assert.isTrue(explored.isComplete)
}

describe("Every schedule with one deviation", () => {
  for (const [name, { plan, what }] of Object.entries(scopes)) {
    const tags = name in streamScopes ? ["long"] : []
    it.effect(`${name}: ${what}`, () => Effect.map(Simulation.explore(plan), clean), { tags })
  }
})

/** In two files, so that two processors share them. */
describe("Every schedule with two deviations", () => {
  for (const [name, { plan, what }] of Object.entries(scopes)) {
    if (name in streamScopes) continue
    it.effect(`${name}: ${what}`, () => Effect.map(Simulation.explore(plan, { deviations: 2 }), clean), {
      tags: ["long"]
    })
  }
})
