/**
 * What a caller may ask of a lease, and of the wait for it.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"

/**
 * What one lease is to be like. Checked by the call; what cannot work fails with `InvalidConfig`.
 *
 * - `ttl`, `transition`: default to those of the layer.
 * - `maxHold` (at least 1 millisecond; default: no limit): the longest the lease may be held in all, counted from just
 *   before the granting request was sent. Then at the latest it ends as a loss (`Expired`): protected work is
 *   interrupted, and the mutex is given back once that has ended. Against work that is stuck, or a lease that leaked.
 * - `alive` (default: none): asked before each renewal whether the holder still does what it should. While it answers
 *   `false`, fails, or takes longer than `commandTimeout`, the lease is not renewed, so that it ends at its deadline
 *   (`Expired`): at most ttl plus transition after the last renewal. It is asked again at the pace of failed renewals,
 *   and once it says `true` in time the lease goes on. It needs a transition that exceeds the safety margin plus twice
 *   `commandTimeout`.
 * - `unfair` (default false): throughput before order. The mutex is taken whenever it is free, whoever waits for it;
 *   and the release leaves it free and wakes the first waiter, instead of handing over to it, so that it can be used
 *   while that one wakes up. The price is paid by those who wait: behind unfair holders there is no order of arrival and
 *   no bound on the wait, and a waiter that was woken and says nothing costs the next one up to two confirm periods.
 *   Nobody is left asleep before a free mutex. Who waits keeps its place, and a fair holder's release serves the first,
 *   as ever. Where waiters wake up quickly this gains nothing: a hand-off costs no more round trips than a race.
 * - `localHandover` (default that of the layer, which is 0; a whole number up to 10,000): throughput inside one process
 *   before order between processes. A release hands the lease to the fiber of this layer that waits longest, without the
 *   backend, up to so many times in a row; then it is the turn of other processes. So they wait for up to so many holders
 *   more. Each holder has a token of its own, larger than the one before. Nobody outside notices: the owner stays the same,
 *   and nothing is announced. A lease that is due for renewal, or that the next one wants with another `ttl` or
 *   `transition`, goes through the backend.
 *
 * **Example** (An import that must get on)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Clock, Effect, Ref } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const lastRow = yield* Ref.make(yield* Clock.currentTimeMillis)
 *   const alive = Effect.map(
 *     Effect.all([Clock.currentTimeMillis, Ref.get(lastRow)]),
 *     ([now, last]) => now - last < 30_000
 *   )
 *   const work = Effect.flatMap(Clock.currentTimeMillis, (now) => Ref.set(lastRow, now))
 *   yield* work.pipe(Mutex.withLock("import", { alive, maxHold: "1 hour" }))
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface LeaseOptions {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly maxHold?: Duration.Input | undefined
  readonly alive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
  readonly localHandover?: number | undefined
}

/**
 * `timeout`: how long to wait for the mutex; without it, as long as it takes. Zero or more: anything else is
 * `InvalidConfig`.
 *
 * @see {@link Mutex.acquire}
 * @category models
 * @since 0.1.0
 */
export interface AcquireOptions extends LeaseOptions {
  readonly timeout?: Duration.Input | undefined
}
