/**
 * When an owner renews, when a waiter looks again, and when an outage is tried again.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type { AcquireResult } from "./MutexStore.ts"

type GuardOutcome =
  | { readonly _tag: "Renewed"; readonly ttl: Duration.Duration }
  | { readonly _tag: "Failed" }

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
export const guard: Schedule.Schedule<Duration.Duration, GuardOutcome> = Schedule.fromStep(Effect.sync(() => {
  let failures = 0
  return (_now: number, outcome: GuardOutcome) => {
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

/** A step between waiters near the head of the queue, so that they do not all look at once. Milliseconds. */
const stagger = 30
const staggered = 8

/** Owners of another implementation wake one waiter only, so the others look this often. Milliseconds. */
const foreignLook = 2000

/**
 * When a waiter looks again if nothing wakes it.
 *
 * **Details**
 *
 * The first waiter looks right after the owner's key expires. The next seven follow 30 milliseconds apart, and the rest is
 * spread over one confirm period. Where contenders of another implementation take part, the first looks every confirm
 * period and the others every 2 seconds. A mutex held without end is looked at once per `lease`.
 *
 * **Example** (Waiting without being told, on a store that answers with a failure when the mutex is had)
 *
 * ```ts
 * import { MutexSchedule, type MutexStore } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * type Refused = Extract<MutexStore.AcquireResult, { readonly _tag: "Refused" }>
 *
 * const schedule = MutexSchedule.contend({ confirm: Duration.millis(1500), lease: Duration.seconds(16) })
 *
 * const polling = <Had, R>(ask: Effect.Effect<Refused, Had, R>) => Effect.repeat(ask, schedule)
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const contend = (options: {
  /** How long a waiter that was handed the mutex has to confirm it. */
  readonly confirm: Duration.Duration
  /** Ttl plus transition. */
  readonly lease: Duration.Duration
}): Schedule.Schedule<Duration.Duration, Extract<AcquireResult, { readonly _tag: "Refused" }>> => {
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

/**
 * When to try again after an outage of the backend.
 *
 * **Details**
 *
 * It waits 50 milliseconds, doubling up to a second, varied by a fifth.
 *
 * **Example** (Asking a backend that is down)
 *
 * ```ts
 * import { Mutex, MutexSchedule } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const state = Mutex.inspect("invoices").pipe(
 *   Effect.retry({
 *     schedule: MutexSchedule.outage,
 *     while: (error) => error._tag === "BackendError" && error.retryable
 *   })
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const outage: Schedule.Schedule<Duration.Duration> = Schedule.min([
  Schedule.exponential("50 millis"),
  Schedule.spaced("1 second")
]).pipe(Schedule.jittered)
