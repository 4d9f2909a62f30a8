/**
 * Warms up processes before they are measured, because applications run for days, while V8 optimizes a function only
 * after thousands of calls.
 */
import { Effect } from "effect"
import type { Agent } from "./agent.ts"

/**
 * After this time with thousands of operations a second, the time and CPU time that effect-simba and raw take for each
 * hardly fall any further.
 */
export const warmUpMillis = 4000

/** Runs `warmUp`, unless all of the processes have already warmed up this code path. */
export const once = <A, E, R>(
  agents: ReadonlyArray<Agent>,
  path: string,
  warmUp: Effect.Effect<A, E, R>
): Effect.Effect<void, E, R> =>
  Effect.suspend(() =>
    agents.every(({ warm }) => warm.has(path))
      ? Effect.void
      : Effect.map(warmUp, () => agents.forEach(({ warm }) => warm.add(path)))
  )
