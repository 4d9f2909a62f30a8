/** The type of the programs in `scopes.ts` and `streamScopes.ts`. */
import type { Simulation } from "@effect-simba/testkit"

/** A small program for `pnpm explore`, and a phrase that describes it. */
export interface Scope {
  readonly what: string
  readonly plan: Simulation.Plan<never>
}
