/**
 * When a waiter looks again if nothing wakes it. The first looks right after the owner's key expires, the next seven 30
 * milliseconds apart, the rest spread over one confirm period. A mutex held without end is looked at once per `lease`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { Refused } from "./attempt.ts"

/** A step between waiters near the head of the queue, so that they do not all look at once. Milliseconds. */
const stagger = 30
const staggered = 8

/** Owners of another implementation wake one waiter only, so the others look this often. Milliseconds. */
const foreignLook = 2000

export const lookSchedule = (options: {
  /** How long a waiter that was handed the mutex has to confirm it. */
  readonly confirm: Duration.Duration
  /** Ttl plus transition. */
  readonly lease: Duration.Duration
}): Schedule.Schedule<Duration.Duration, Pick<Refused, "foreign" | "ownership" | "position">> => {
  const confirm = Duration.toMillis(options.confirm)
  return Schedule.fromStep(
    Effect.succeed((_now, refused) =>
      Effect.map(Random.next, (random): [Duration.Duration, Duration.Duration] => {
        const { foreign, ownership, position } = refused
        const remaining = ownership._tag === "Free"
          ? confirm
          : ownership.remaining === undefined
          ? Duration.toMillis(options.lease)
          // A key is gone one millisecond after its remaining time has reached zero
          : Duration.toMillis(ownership.remaining) + 1
        const apart = position < staggered
          ? position * stagger
          : staggered * stagger + random * Math.max(0, confirm - staggered * stagger)
        const bound = !foreign ? Infinity : position === 0 ? confirm : foreignLook
        const delay = Duration.millis(Math.min(remaining + apart, bound))
        return [delay, delay]
      })
    )
  )
}
