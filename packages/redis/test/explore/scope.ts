import type { Simulation } from "@effect-simba/testkit"

/** A program of `pnpm explore`, in a few lines. */
export interface Scope {
  readonly what: string
  readonly plan: Simulation.Plan<never>
}
