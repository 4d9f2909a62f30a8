/** Writes all of this library's log messages. If a logger throws, only its message is lost. */
// oxlint-disable no-restricted-properties -- the one place where a logger may throw
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"

type Log = (...message: ReadonlyArray<unknown>) => Effect.Effect<void>

const unfailing = (log: Log): Log => (...message) => Effect.ignoreCause(log(...message))

/** Returns a function that logs at this level. */
export const at = (level: LogLevel.Severity): Log => unfailing(Effect.logWithLevel(level))

/** The end of a log message about a failed request: the message of its error, or otherwise the cause with its stack. */
export const why = (cause: Cause.Cause<Error>): string | Cause.Cause<Error> =>
  Option.match(Cause.findErrorOption(cause), { onNone: () => cause, onSome: ({ message }) => message })

export const debug: Log = /* @__PURE__ */ unfailing(Effect.logDebug)
export const info: Log = /* @__PURE__ */ unfailing(Effect.logInfo)
export const warning: Log = /* @__PURE__ */ unfailing(Effect.logWarning)
export const error: Log = /* @__PURE__ */ unfailing(Effect.logError)
