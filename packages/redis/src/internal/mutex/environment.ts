/**
 * Reads mutex options from the environment, for `RedisMutex`. Durations have Effect's format or the format of Simba's
 * configuration (`10s`).
 */
import * as Config from "effect/Config"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { processNameOr } from "../client/podName.ts"

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours" } as const

const durationText = () =>
  Schema.String.pipe(Schema.decodeTo(
    Schema.DurationFromString,
    SchemaTransformation.transform({
      decode: (text: string) =>
        text.trim().replace(
          /^(\d+)\s*(ms|s|m|h)$/,
          (_, amount, unit: keyof typeof units) => `${amount} ${units[unit]}`
        ),
      encode: (text: string) => text
    })
  ))

const period = (variable: string) => Config.withDefault(Config.schema(durationText(), variable), undefined)

interface Options {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly processName?: string | undefined
}

/** Reads the options that are not set in code. The variables of the others are not read, so they may be invalid. */
export const complete = <O extends Options>(explicit: O): Effect.Effect<O, Config.ConfigError> =>
  Effect.gen(function*() {
    const ttl = explicit.ttl ?? (yield* period("SIMBA_REDIS_TTL"))
    const transition = explicit.transition ?? (yield* period("SIMBA_REDIS_TRANSITION"))
    const processName = yield* processNameOr(explicit.processName)
    return { ...explicit, ttl, transition, processName }
  })
