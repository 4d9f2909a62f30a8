/**
 * Guards: schedules that decide when a mutex's owner renews its lease.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"

/**
 * The outcome of the last attempt to renew a lease, which is the input of a guard.
 *
 * @see {@link MutexSchedule}
 * @category models
 * @since 0.1.0
 */
export type Renewal = { readonly _tag: "Renewed"; readonly ttl: Duration.Duration } | { readonly _tag: "Failed" }

/**
 * A schedule of renewals, for the `guard` option of `Mutex.layer`.
 *
 * **Details**
 *
 * After the grant and after `Renewed`, the delay is the time until the next renewal, at most `ttl`. After `Failed`, it
 * is the time until the next attempt. If the schedule ends, renewals continue at intervals of `ttl`, and of one second
 * after failures, until the lease is released or lost.
 *
 * **Example** (Renewing after half the ttl)
 *
 * ```ts
 * import { Mutex, MutexSchedule } from "@effect-simba/core"
 * import { Duration, Effect, Schedule } from "effect"
 *
 * const early: MutexSchedule.MutexSchedule = MutexSchedule.guard.pipe(
 *   Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.divideUnsafe(duration, 2)))
 * )
 *
 * const MutexLive = Mutex.layerMemory({ ttl: "10 seconds", guard: early })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type MutexSchedule = Schedule.Schedule<unknown, Renewal>

/**
 * The default guard: waits `ttl` after each renewal, and retries failed attempts with backoff.
 *
 * **Details**
 *
 * After a failure it waits 100 milliseconds, doubling up to one second, with 20% jitter.
 *
 * **Example** (Using the guard for your own lease)
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
export const guard: Schedule.Schedule<Duration.Duration, Renewal> = Schedule.fromStep(Effect.sync(() => {
  let failures = 0
  return (_now: number, renewal: Renewal) => {
    if (renewal._tag === "Renewed") {
      failures = 0
      return Effect.succeed([renewal.ttl, renewal.ttl] as [Duration.Duration, Duration.Duration])
    }
    const base = Math.min(100 * 2 ** failures++, 1000)
    return Effect.map(Random.nextBetween(0.8, 1.2), (factor): [Duration.Duration, Duration.Duration] => {
      const delay = Duration.millis(base * factor)
      return [delay, delay]
    })
  }
}))
