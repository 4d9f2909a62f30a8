/** Timeouts of replies that are fair in a busy process, whose event loop turns may be longer than the timeout. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { onWallClock } from "./wallClock.ts"

/**
 * Node runs due timers before it reads sockets, so when a late timer fires, replies may not be read yet. A yield
 * continues after the next read of the sockets; the second yield covers a read that has already started.
 */
export const socketsRead = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/**
 * Continues with `late` if there is no reply within `limit`. A reply that has arrived counts, no matter how late the
 * timer is.
 */
export const replyTimeout = <A, E, R, B, E2>(
  request: Effect.Effect<A, E, R>,
  limit: Duration.Duration,
  late: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> =>
  onWallClock(Effect.raceAllFirst([request, Effect.andThen(Effect.delay(socketsRead, limit), Effect.suspend(late))]))
