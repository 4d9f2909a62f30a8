/**
 * Retries failed store requests with backoff. `releaseSender`, `leaseEnds` and `jobRunner` have separate retry loops.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { StoreError } from "../../SimbaError.ts"
import * as log from "../log.ts"
import { isTransient } from "./storeFailure.ts"

/**
 * The delay before the next attempt in milliseconds. It doubles from `first` up to `longest`, with 20% jitter. `random`
 * is a random number from 0 to 1.
 */
const backoff = (first: number, longest: number) => (failures: number, random: number): number =>
  Math.min(first * 2 ** failures, longest) * (0.8 + 0.4 * random)

/** `backoff` as a schedule with a single cheap step: in an outage, thousands of leases run it. */
export const retrySchedule = (first: Duration.Input, longest: Duration.Input): Schedule.Schedule<Duration.Duration> => {
  const pauseAfter = backoff(Duration.toMillis(first), Duration.toMillis(longest))
  return Schedule.fromStep(Effect.sync(() => {
    let failures = 0
    return () =>
      Effect.map(Random.next, (random): [Duration.Duration, Duration.Duration] => {
        const pause = Duration.millis(pauseAfter(failures++, random))
        return [pause, pause]
      })
  }))
}

/** How long a waiter pauses after this many consecutive failures, in milliseconds. */
export const outagePause = backoff(50, 1000)

/** The retry schedule for loops that never give up. */
export const endlessRetry = retrySchedule("100 millis", "10 seconds")

interface RetryPauses {
  readonly succeeded: () => void
  /** Pauses after a failed attempt that took `lastedMillis`. */
  readonly failed: (lastedMillis: number) => Effect.Effect<void>
}

/**
 * The pauses of `endlessRetry`, for attempts that may take a long time. A success ends the streak of failures. An
 * attempt that fails only after more than the longest pause begins a new streak.
 */
export const retryPauses = (): RetryPauses => {
  const longest = 10_000
  const pauseAfter = backoff(100, longest)
  let failures = 0
  return {
    succeeded: () => {
      failures = 0
    },
    failed: (lastedMillis) => {
      if (lastedMillis > longest) failures = 0
      return Effect.flatMap(Random.next, (random) => Effect.sleep(pauseAfter(failures++, random)))
    }
  }
}

/** Loops retry even after a malformed reply, because they have other work and an operator may fix the data. */
const isOutlasted = (error: StoreError) => isTransient(error) || error._tag === "ProtocolError"

/** Retries until the request succeeds or is refused, with pauses of at most 5 seconds. Logs the first failure. */
export const persist = <A, R>(
  what: string,
  request: Effect.Effect<A, StoreError, R>,
  longestPause: Duration.Duration = Duration.seconds(5)
): Effect.Effect<A, StoreError, R> =>
  Effect.suspend(() => {
    let isLogged = false
    return request.pipe(
      Effect.tapError((error) => {
        if (isLogged || !isOutlasted(error)) return Effect.void
        isLogged = true
        return log.warning(`${what} failed; retrying: ${error.message}`)
      }),
      Effect.retry({
        schedule: retrySchedule("100 millis", Duration.min(longestPause, Duration.seconds(5))),
        while: isOutlasted
      })
    )
  })
