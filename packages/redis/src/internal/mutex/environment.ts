/** Reads mutex options from the environment, for `RedisMutex`. */
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { durationVariable } from "../client/durationVariable.ts"
import { processNameOr } from "../client/podName.ts"

const period = (variable: string) => Config.withDefault(durationVariable(variable), undefined)

interface Options {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly processName?: string | undefined
}

/**
 * Reads only the options that are not set in code. Variables for other options are not read, so they may be invalid.
 */
export const complete = <O extends Options>(explicit: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.gen(function*() {
    const ttl = explicit.ttl ?? (yield* period("SIMBA_REDIS_TTL"))
    const transition = explicit.transition ?? (yield* period("SIMBA_REDIS_TRANSITION"))
    const processName = yield* processNameOr(explicit.processName)
    return { ...explicit, ttl, transition, processName }
  })
