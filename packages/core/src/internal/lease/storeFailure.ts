/** Classifies failed store requests. `storeRetries` decides when to repeat them. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import { BackendError, ProtocolError, type StoreError } from "../../SimbaError.ts"

/** Whether the error means a backend outage: the same request may succeed later. */
export const isTransient = (error: { readonly _tag: string; readonly isRetryable?: boolean }): error is BackendError =>
  error._tag === "BackendError" && error.isRetryable === true

/** Returns the store's error. Timeouts and crashes count as an outage, because their outcome is unknown. */
export const toFailure = (operation: string, cause: Cause.Cause<unknown>): StoreError => {
  const error = Cause.squash(cause)
  return error instanceof BackendError || error instanceof ProtocolError
    ? error
    : new BackendError({ operation, isRetryable: true, cause: error })
}

export const noReply = (operation: string, within: Duration.Duration): BackendError =>
  new BackendError({
    operation,
    isRetryable: true,
    cause: new Error(`no reply within ${Duration.format(Duration.millis(Math.round(Duration.toMillis(within))))}`)
  })

type Done<A> = (exit: Exit.Exit<A, StoreError>) => void

/**
 * Sends a request, and calls `done` once, with the reply. An exception from the store counts as its reply, but one from
 * `done` does not. Returns what `send` returns.
 */
export const reply = <A, B = void>(send: (done: Done<A>) => B, done: Done<A>): B | undefined => {
  let isDone = false
  try {
    return send((exit) => {
      isDone = true
      done(exit)
    })
  } catch (error) {
    if (isDone) throw error
    done(Exit.die(error))
    return undefined
  }
}
