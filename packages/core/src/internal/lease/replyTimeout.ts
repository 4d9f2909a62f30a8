/** Time limits of requests, also in a process whose turns of the event loop are longer than the limit. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BackendError } from "../../SimbaError.ts"
import { noAnswer } from "./storeFailure.ts"

/**
 * Node runs due timers before it reads sockets, so a late timer may find an unread reply. Each yield runs behind a read of
 * the sockets, unless that read has begun: then the second does.
 */
const socketsRead = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Fails a request without a reply within `limit`. A reply that has arrived counts, however late the timer is. */
export const replyTimeout = <A, E, R>(
  request: Effect.Effect<A, E, R>,
  operation: string,
  limit: Duration.Duration
): Effect.Effect<A, E | BackendError, R> => {
  const late = Effect.suspend(() => Effect.fail(noAnswer(operation, limit)))
  return Effect.raceAllFirst([request, Effect.andThen(Effect.delay(socketsRead, limit), late)])
}
