import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/** A loop of a layer that must not end by a mistake unseen: it is told, and begins again after a moment. */
export const supervise = <R>(what: string, loop: Effect.Effect<unknown, never, R>): Effect.Effect<never, never, R> =>
  Effect.forever(Effect.catchCause(loop, (cause) =>
    Cause.hasInterruptsOnly(cause)
      ? Effect.failCause(cause)
      : Effect.andThen(Effect.logError(`${what} died, and begins again`, cause), Effect.sleep("100 millis"))))
