/**
 * Request timeouts that are fair in a busy process, where one turn of the event loop may take longer than the timeout.
 * Used by data-stream requests and stores. Each timeout costs a fiber and a sleep; acquires (`attempt`) and renewals
 * use a timer from `timerQueue` and `socketsRead` instead, because there may be thousands.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { BackendError } from "../../SimbaError.ts"
import { noReply } from "./storeFailure.ts"

/**
 * Waits until the sockets have been read. Node runs due timers before it reads sockets, so a reply may already have
 * arrived when a late timer fires. A yield resumes after the next read. A second yield is needed because that read may
 * already have been under way.
 */
export const socketsRead: Effect.Effect<void> = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Continues with `late` if no reply arrives within `limit`. */
export const replyTimeout = <A, E, R, B, E2>(
  request: Effect.Effect<A, E, R>,
  limit: Duration.Duration,
  late: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> =>
  // @effect-diagnostics-next-line raceFirstWithSleepToTimeout:off -- a reply wins while the late timer reads the sockets
  Effect.raceAllFirst([request, Effect.andThen(Effect.delay(socketsRead, limit), Effect.suspend(late))])

/** Fails a store request if no reply arrives within `limit`. */
export const storeTimeout = <A, E, R>(
  request: Effect.Effect<A, E, R>,
  operation: string,
  limit: Duration.Duration
): Effect.Effect<A, E | BackendError, R> => replyTimeout(request, limit, () => Effect.fail(noReply(operation, limit)))
