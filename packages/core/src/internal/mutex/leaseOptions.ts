/**
 * The validated options of one lease, and the durations derived from them. `service` checks the options of each call,
 * and the rest of the code relies on that.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { MutexConfig } from "../../MutexConfig.ts"
import type { MutexName } from "../../MutexName.ts"
import type { InvalidConfig } from "../../SimbaError.ts"
import type { Periods } from "../lease/leaseDeadline.ts"
import { checked, mutexProblem } from "../nameRules.ts"
import {
  checkOptions,
  checkPeriods,
  durationOf,
  marginMillis,
  notDuration,
  notNegative,
  positive,
  refuse
} from "../optionChecks.ts"

/** The validated options of a lease, and the values derived from them. */
export interface LeaseSettings extends Periods {
  readonly ttl: Duration.Duration
  /** Ttl plus transition: how long a grant lasts on the server. */
  readonly lease: Duration.Duration
  readonly leaseMillis: number
  readonly isAlive: Effect.Effect<boolean, unknown> | undefined
  /** How old a turn may be when it passes its lease to the process's next fiber, in milliseconds. */
  readonly localTurnMillis: number
}

export const settingsOf = (options: {
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly localTurn: Duration.Duration
  readonly maxHold?: Duration.Duration | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
}): LeaseSettings => {
  const { isAlive, localTurn, maxHold, transition, ttl } = options
  const lease = Duration.sum(ttl, transition)
  const leaseMillis = Duration.toMillis(lease)
  const margin = marginMillis(leaseMillis)
  const renewAfter = Duration.toMillis(ttl)
  return {
    ttl,
    lease,
    leaseMillis,
    isAlive,
    localTurnMillis: Duration.toMillis(localTurn),
    margin,
    usable: leaseMillis - margin,
    renewAfter,
    early: Math.min(renewAfter / 8, 1000),
    maxHold: maxHold === undefined ? Infinity : Duration.toMillis(maxHold),
    // `maxHold` ends each lease at a different time, and each lease has its own probe
    isGroupable: maxHold === undefined && isAlive === undefined
  }
}

/** The options as callers pass them, in `Mutex.LeaseOptions`. */
interface Options {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly maxHold?: Duration.Input | undefined
  readonly isAlive?: Effect.Effect<boolean, unknown, unknown> | undefined
  readonly localTurn?: Duration.Input | undefined
}

/** How long an acquire may wait; undefined if there is no limit. */
export const checkTimeout = (
  input: Duration.Input | undefined
): Effect.Effect<Duration.Duration | undefined, InvalidConfig> => {
  if (input === undefined) return Effect.undefined
  const timeout = durationOf(input)
  if (Option.isNone(timeout)) return notDuration("timeout", input)
  if (Duration.isNegative(timeout.value)) return refuse("timeout", "it must not be negative")
  return Effect.succeed(Duration.isFinite(timeout.value) ? timeout.value : undefined)
}

/** Checks the options as far as they do not depend on the layer. */
export const checkAlone = Effect.fnUntraced(
  function*(options: Options & { readonly timeout?: Duration.Input | undefined } = {}) {
    const { isAlive, localTurn, maxHold, timeout, transition, ttl } = options
    if (isAlive !== undefined && !Effect.isEffect(isAlive)) return yield* refuse("isAlive", "it must be an Effect")
    if (localTurn !== undefined) yield* notNegative("localTurn", localTurn)
    if (ttl !== undefined) yield* positive("ttl", ttl)
    if (transition !== undefined) yield* positive("transition", transition)
    if (maxHold !== undefined) yield* positive("maxHold", maxHold)
    yield* checkTimeout(timeout)
  }
)

const mutexName = checked<MutexName>("mutex", mutexProblem)

/** Returns the validated name. Throws if the name or an option can never be valid. */
export const checkName = (name: string, options: Parameters<typeof checkAlone>[0]): MutexName =>
  Effect.runSync(Effect.andThen(checkAlone(options), mutexName(name)))

/** Checks the options of one call. `usual` contains the layer's defaults. */
export const check = Effect.fnUntraced(function*(config: MutexConfig, usual: LeaseSettings, options: Options = {}) {
  yield* checkOptions(options)
  const { isAlive, maxHold, transition, ttl } = options
  yield* checkAlone(options)
  const localTurn = options.localTurn === undefined
    ? config.localTurn
    : yield* notNegative("localTurn", options.localTurn)
  if ((ttl ?? transition ?? maxHold ?? isAlive) === undefined) {
    return { ...usual, localTurnMillis: Duration.toMillis(localTurn) }
  }
  const periods = yield* checkPeriods({
    commandTimeout: config.commandTimeout,
    probed: isAlive !== undefined,
    ttl: ttl ?? config.ttl,
    transition: transition ?? config.transition
  })
  return settingsOf({
    ...periods,
    // `isAlive` runs later, so it captures the caller's services, which the types of all operations require
    isAlive: isAlive === undefined
      ? undefined
      : Effect.provideContext(isAlive as Effect.Effect<boolean, unknown>, yield* Effect.context<never>()),
    localTurn,
    maxHold: maxHold === undefined ? undefined : yield* positive("maxHold", maxHold)
  })
})
