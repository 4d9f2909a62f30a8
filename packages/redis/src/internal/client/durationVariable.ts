/**
 * Reads durations from environment variables, in Effect's format or in Simba's configuration format (`10s`).
 * Called by the mutex `environment` module and by the connection `options`.
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readBy } from "./codecs.ts"

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours" } as const

const decode = (text: string) => {
  const input = text.trim().replace(
    /^(\d+)\s*(ms|s|m|h)$/,
    (_, amount, unit: keyof typeof units) => `${amount} ${units[unit]}`
  )
  return Option.getOrElse(
    Duration.fromInput(input as Duration.Input),
    () => "expected a number with its unit, such as 10s, 500ms or 10 seconds"
  )
}

export const durationVariable = (name: string): Config.Config<Duration.Duration> =>
  Config.schema(readBy(Schema.String, decode), name)
