/**
 * When the owner of a mutex renews.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { Outcome } from "./internal/lease/trackedLease.ts"

/**
 * When an owner renews: `ttl` after a renewal, and soon after an attempt that failed.
 *
 * **Details**
 *
 * After a failure it waits 100 milliseconds, doubling up to a second, varied by a fifth. It never ends by itself: the
 * lease's deadline ends the guard, or a reply that names another owner.
 *
 * **Example** (The same rhythm for a lease of one's own)
 *
 * ```ts
 * import { MutexSchedule } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const renewed = { _tag: "Renewed", ttl: Duration.seconds(10) } as const
 *
 * const keepAlive = <E, R>(renew: Effect.Effect<void, E, R>) =>
 *   renew.pipe(
 *     Effect.match({ onSuccess: () => renewed, onFailure: () => ({ _tag: "Failed" as const }) }),
 *     Effect.repeat(MutexSchedule.guard)
 *   )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const guard: Schedule.Schedule<Duration.Duration, Outcome> = Schedule.fromStep(Effect.sync(() => {
  let failures = 0
  return (_now: number, outcome: Outcome) => {
    if (outcome._tag === "Renewed") {
      failures = 0
      return Effect.succeed([outcome.ttl, outcome.ttl] as [Duration.Duration, Duration.Duration])
    }
    const base = Math.min(100 * 2 ** failures++, 1000)
    return Effect.map(Random.nextBetween(0.8, 1.2), (factor): [Duration.Duration, Duration.Duration] => {
      const delay = Duration.millis(base * factor)
      return [delay, delay]
    })
  }
}))
