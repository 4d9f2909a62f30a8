import { it } from "@effect/vitest"
import { holds } from "../../nemesis/scenario.ts"

it.live("processes keep every promise under a nemesis", () =>
  holds({ topology: "single", plan: "all", seed: 1, seconds: 10 }))
