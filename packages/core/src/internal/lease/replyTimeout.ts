/**
 * Timeouts of requests that are fair in a busy process, whose event loop turns may be longer than the timeout. For
 * requests with a fiber; `timerQueue` has a cheaper one for thousands of waiters.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BackendError } from "../../SimbaError.ts"
import { noReply } from "./storeFailure.ts"

/**
 * Node runs due timers before it reads sockets, so when a late timer fires, the reply may not be read yet. A yield
 * continues after the next read of the sockets; the second yield covers a read that has already started.
 */
const socketsRead = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Fails a request without a reply within `limit`. A reply that has arrived counts, no matter how late the timer is. */
export const replyTimeout = <A, E, R>(
  request: Effect.Effect<A, E, R>,
  operation: string,
  limit: Duration.Duration
): Effect.Effect<A, E | BackendError, R> => {
  const late = Effect.suspend(() => Effect.fail(noReply(operation, limit)))
  return Effect.raceAllFirst([request, Effect.andThen(Effect.delay(socketsRead, limit), late)])
}
