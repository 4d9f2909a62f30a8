/** The options of one lease: checked where they enter, and the periods that follow from them. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { MutexConfig } from "../../MutexConfig.ts"
import type { Periods } from "../lease/trackedLease.ts"
import { checkPeriods, handOffs, marginMillis, positive, refuse } from "../optionChecks.ts"

/** The options of a lease, checked, and what follows from them. */
export interface Terms extends Periods {
  readonly ttl: Duration.Duration
  /** Time to live plus transition: how long a grant lasts at the server. */
  readonly lease: Duration.Duration
  readonly leaseMillis: number
  readonly unfair: boolean
  readonly isAlive: Effect.Effect<boolean, unknown> | undefined
  readonly maxLocalHandOffs: number
}

export const termsOf = (options: {
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly maxLocalHandOffs: number
  readonly maxHold?: Duration.Duration | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
}): Terms => {
  const { isAlive, maxHold, maxLocalHandOffs, transition, ttl, unfair } = options
  const lease = Duration.sum(ttl, transition)
  const leaseMillis = Duration.toMillis(lease)
  const margin = marginMillis(leaseMillis)
  const renewAfter = Duration.toMillis(ttl)
  return {
    ttl,
    lease,
    leaseMillis,
    unfair: unfair === true,
    isAlive,
    maxLocalHandOffs,
    margin,
    usable: leaseMillis - margin,
    renewAfter,
    early: Math.min(renewAfter / 8, 1000),
    maxHold: maxHold === undefined ? Infinity : Duration.toMillis(maxHold)
  }
}

/** As callers give them: `LeaseOptions` of `Mutex`. */
interface Options {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly maxHold?: Duration.Input | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
  readonly maxLocalHandOffs?: number | undefined
}

/** `usual` are the terms of the layer. */
export const check = Effect.fnUntraced(function*(config: MutexConfig, usual: Terms, options: Options = {}) {
  const { isAlive, maxHold, transition, ttl, unfair = false } = options
  if (typeof unfair !== "boolean") return yield* refuse("unfair", "it must be true or false")
  if (isAlive !== undefined && !Effect.isEffect(isAlive)) return yield* refuse("isAlive", "it must be an Effect")
  const maxLocalHandOffs = yield* handOffs(options.maxLocalHandOffs ?? config.maxLocalHandOffs)
  if ((ttl ?? transition ?? maxHold ?? isAlive) === undefined) return { ...usual, unfair, maxLocalHandOffs }
  const periods = yield* checkPeriods({
    commandTimeout: config.commandTimeout,
    probed: isAlive !== undefined,
    ttl: ttl ?? config.ttl,
    transition: transition ?? config.transition
  })
  return termsOf({
    ...periods,
    isAlive,
    unfair,
    maxLocalHandOffs,
    maxHold: maxHold === undefined ? undefined : yield* positive("maxHold", maxHold)
  })
})
