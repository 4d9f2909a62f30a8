/**
 * The result of protected work after a loss or an interruption. `protect`, `withLock` and handlers interrupt the work
 * themselves and call this with its exit.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { LeaseLost } from "../../SimbaError.ts"
import * as log from "../log.ts"

/** The loss replaces a success and the interruption that it caused; a failure of the work is kept. */
export const settle = <A, E>(exit: Exit.Exit<A, E>, loss: LeaseLost | undefined): Effect.Effect<A, E | LeaseLost> => {
  if (loss === undefined || (Exit.isFailure(exit) && (Cause.hasFails(exit.cause) || !Exit.hasInterrupts(exit)))) {
    return exit
  }
  if (Exit.isSuccess(exit) || !Cause.hasDies(exit.cause)) return Effect.fail(loss)
  const { id, kind, resource, token } = loss
  return log.error("Work that lost its lease crashed while it was interrupted", exit.cause).pipe(
    Effect.annotateLogs(
      kind === "mutex" ? { mutex: resource, lease: id, token } : { stream: resource, entry: id, token }
    ),
    Effect.andThen(loss)
  )
}

/** Keeps the failures of finalizers of work that was interrupted from outside. */
export const remains = <E>(exit: Exit.Exit<unknown, E>): Effect.Effect<void, E> => {
  if (Exit.isSuccess(exit)) return Effect.void
  const reasons = exit.cause.reasons.filter((reason) => !Cause.isInterruptReason(reason))
  return reasons.length === 0 ? Effect.void : Effect.failCause(Cause.fromReasons(reasons))
}
