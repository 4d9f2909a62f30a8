/** The plans for `pnpm simulate`, by their names for `--plan`. */
import type { Simulation } from "@effect-simba/testkit"
import { jobsPlan } from "./jobsPlan.ts"
import { calmFleetPlan, mixedFleetPlan } from "./mixedFleetPlan.ts"
import { carelessPlan, crowdPlan, mutexPlan, plainPlan } from "./mutexPlan.ts"
import { streamCrowdPlan, streamPlan } from "./streamPlan.ts"

export type Plan = (seed: number | string, overrides?: Partial<Simulation.Options<never>>) => Simulation.Options<never>

export const plans: Readonly<Record<string, Plan>> = {
  mutex: mutexPlan as Plan,
  plain: plainPlan as Plan,
  crowd: crowdPlan as Plan,
  careless: carelessPlan as Plan,
  jobs: jobsPlan as Plan,
  "mixed-fleet": mixedFleetPlan as Plan,
  "calm-fleet": calmFleetPlan as Plan,
  streams: streamPlan as unknown as Plan,
  "streams-crowd": streamCrowdPlan as unknown as Plan
}
