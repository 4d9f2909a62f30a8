/** What failed calls to the store mean, and how long to wait before the next. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { BackendError, ProtocolError } from "../../SimbaError.ts"

export type StoreError = BackendError | ProtocolError

/** Why there was no answer: what the store said, or else an outage. */
export const toFailure = (operation: string, cause: Cause.Cause<unknown>): StoreError => {
  const error = Cause.squash(cause)
  return error instanceof BackendError || error instanceof ProtocolError
    ? error
    : new BackendError({ operation, retryable: true, cause: error })
}

/** Asking again would get the same answer. */
export const isFinal = (error: StoreError): boolean => error._tag === "BackendError" && !error.retryable

/** An outage of the backend ends at some time: 100 ms after a failure, doubling up to five seconds. */
export const retrySchedule = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]).pipe(
  Schedule.jittered
)

/** Tries until it comes through, and fails only for good. The first of several failures is told. */
export const persist = <A, R>(
  what: string,
  call: Effect.Effect<A, StoreError, R>
): Effect.Effect<A, StoreError, R> =>
  Effect.suspend(() => {
    let isTold = false
    return call.pipe(
      Effect.tapError((error) => {
        if (isTold || isFinal(error)) return Effect.void
        isTold = true
        return Effect.logWarning(`${what} failed, and is tried again: ${error.message}`)
      }),
      Effect.retry({ schedule: retrySchedule, while: (error) => !isFinal(error) })
    )
  })
