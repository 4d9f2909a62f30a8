/** Passes log lines to a function supplied by an application that does not use Effect. Used by `promise`. */
import * as Cause from "effect/Cause"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"

/** `LogLine` in the promise API describes the fields. */
interface Line {
  readonly level: "debug" | "info" | "warn" | "error"
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
  readonly error: unknown
}

const levels: Readonly<Record<LogLevel.LogLevel, Line["level"]>> = {
  All: "debug",
  Trace: "debug",
  Debug: "debug",
  Info: "info",
  Warn: "warn",
  Error: "error",
  Fatal: "error",
  None: "debug"
}

/** Replaces the loggers, and passes on lines at all levels. */
export const logTo = (log: (line: Line) => void): Layer.Layer<never> =>
  Layer.merge(
    Logger.layer([Logger.make(({ cause, fiber, logLevel, message }) =>
      log({
        level: levels[logLevel],
        message: Array.isArray(message) ? message.join(" ") : String(message),
        fields: fiber.getRef(References.CurrentLogAnnotations),
        error: cause.reasons.length === 0 ? undefined : Cause.squash(cause)
      })
    )]),
    Layer.succeed(References.MinimumLogLevel, "All")
  )
