import { it } from "@effect/vitest"
import { holds } from "../../nemesis/scenario.ts"

it.live("real processes satisfy every checker under the nemesis", () =>
  holds({ topology: "cluster", plan: "all", seed: 1, seconds: 10 }))
