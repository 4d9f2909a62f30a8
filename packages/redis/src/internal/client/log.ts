/** Writes this package's log lines. If a logger throws, the line is lost, but nothing else is affected. */
// oxlint-disable no-restricted-properties -- here a logger may throw
import * as Effect from "effect/Effect"

type Log = (...message: ReadonlyArray<unknown>) => Effect.Effect<void>

const unfailing = (log: Log): Log => (...message) => Effect.ignoreCause(log(...message))

export const debug: Log = /* @__PURE__ */ unfailing(Effect.logDebug)
export const info: Log = /* @__PURE__ */ unfailing(Effect.logInfo)
export const warning: Log = /* @__PURE__ */ unfailing(Effect.logWarning)
export const error: Log = /* @__PURE__ */ unfailing(Effect.logError)
