/** The options of one lease, checked where they enter. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { LeaseOptions } from "../../Mutex.ts"
import type * as MutexConfig from "../../MutexConfig.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import { checkPeriods, handOffsProblem, positive, refuse } from "../optionChecks.ts"

export interface Checked {
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly maxHold?: Duration.Duration | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
  readonly maxLocalHandOffs: number
}

/** Without effects or copies where there is nothing to check, which is the usual case. */
export const check = (
  config: MutexConfig.MutexConfig,
  options: LeaseOptions | undefined
): Effect.Effect<Checked, InvalidConfig> | undefined => {
  if (options === undefined) return undefined
  const { isAlive, maxLocalHandOffs, maxHold, transition, ttl, unfair } = options
  if (
    ttl === undefined && transition === undefined && maxHold === undefined && isAlive === undefined &&
    unfair === undefined && maxLocalHandOffs === undefined
  ) return undefined
  if (unfair !== undefined && typeof unfair !== "boolean") return refuse("unfair", "it must be true or false")
  if (isAlive !== undefined && !Effect.isEffect(isAlive)) return refuse("isAlive", "it must be an Effect")
  const handovers = handOffsProblem(maxLocalHandOffs ?? config.maxLocalHandOffs)
  if (handovers !== undefined) return refuse("maxLocalHandOffs", handovers)
  const rest = { isAlive, unfair, maxLocalHandOffs: maxLocalHandOffs ?? config.maxLocalHandOffs }
  if (ttl === undefined && transition === undefined && maxHold === undefined && isAlive === undefined) {
    return Effect.succeed({ ttl: config.ttl, transition: config.transition, ...rest })
  }
  return Effect.gen(function*() {
    const periods = yield* checkPeriods({
      commandTimeout: config.commandTimeout,
      probed: isAlive !== undefined,
      ttl: ttl ?? config.ttl,
      transition: transition ?? config.transition
    })
    return {
      ...periods,
      ...rest,
      maxHold: maxHold === undefined ? undefined : yield* positive("maxHold", maxHold)
    }
  })
}
