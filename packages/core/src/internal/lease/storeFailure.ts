import * as Cause from "effect/Cause"
import { BackendError, ProtocolError } from "../../SimbaError.ts"

/** Why a renewal got no answer: what the store said, or else an outage. */
export const toFailure = (
  cause: Cause.Cause<BackendError | ProtocolError | Cause.TimeoutError>
): BackendError | ProtocolError => {
  const error = Cause.squash(cause)
  return error instanceof BackendError || error instanceof ProtocolError
    ? error
    : new BackendError({ operation: "guard", retryable: true, cause: error })
}
