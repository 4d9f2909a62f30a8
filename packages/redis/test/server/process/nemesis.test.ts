import { describe, it } from "@effect/vitest"
import { isFound } from "../../nemesis/scenario.ts"

const defective = { topology: "single", plan: "mutex", seed: 24, seconds: 15, only: ["stop"] } as const

describe("a nemesis finds", () => {
  it.live("work that continues after its lease is lost", () =>
    isFound({ ...defective, plant: "deaf" }, ["work is protected", "ensure is truthful"]))
})
