import { Simulation } from "@effect-simba/testkit"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isOfStreams, scopes } from "../explore/scopes.ts"

// Errors are values here, made by the thousand
const { stackTraceLimit } = Error
Error.stackTraceLimit = 0
afterAll(() => void (Error.stackTraceLimit = stackTraceLimit))

const clean = (explored: Simulation.Explored) => {
  assert.isUndefined(explored.first, explored.first && Simulation.report(explored.first))
  assert.isTrue(explored.isComplete)
}

describe("Every schedule with one deviation", () => {
  for (const [name, { plan, what }] of Object.entries(scopes)) {
    const tags = isOfStreams(name) ? ["long"] : []
    it.effect(`${name}: ${what}`, () => Effect.map(Simulation.explore(plan), clean), { tags })
  }
})
