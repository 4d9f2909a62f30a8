/** Time limits of replies, also in a process whose turns of the event loop are longer than the limit. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { onWallClock } from "./wallClock.ts"

/**
 * Node runs due timers before it reads sockets, so a late timer may find unread replies. Each yield runs behind a read of
 * the sockets, unless that read has begun: then the second does.
 */
export const socketsRead = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Continues with `late` if there is no reply within `limit`. A reply that has arrived counts, however late the timer is. */
export const replyTimeout = <A, E, R, B, E2>(
  request: Effect.Effect<A, E, R>,
  limit: Duration.Duration,
  late: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2, R> =>
  onWallClock(Effect.raceAllFirst([request, Effect.andThen(Effect.delay(socketsRead, limit), Effect.suspend(late))]))
