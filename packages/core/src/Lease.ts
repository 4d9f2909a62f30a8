/**
 * A held mutex, from the grant to its release or loss.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Inspectable } from "effect/Inspectable"
import type { Pipeable } from "effect/Pipeable"
import type { FencingToken } from "./FencingToken.ts"
import type { LeaseId, MutexName } from "./MutexName.ts"
import type { LeaseLost } from "./SimbaError.ts"

/**
 * One period of ownership of a mutex, renewed in the background until its scope closes or it is lost.
 *
 * **Details**
 *
 * `isHeld`, `ensure`, `timeLeft`, `lost` and `protect` read the local clock when they run, so they notice that the
 * deadline has passed even if no timer has fired yet. The lease is measured from just before the last successful
 * renewal was sent. The local deadline is one safety margin (5% of `ttl` plus `transition`, at least 100 ms) before the
 * server's lease ends.
 *
 * A printed lease shows `mutex`, `id`, `token` and `timeLeft`.
 *
 * **Gotchas**
 *
 * Losing a lease from `Mutex.acquire` does not interrupt its holder. Run the work in `protect`, or run `ensure` before
 * each step that needs the mutex. `Mutex.withLock` protects its body.
 *
 * **Example** (Checking the lease before a step)
 *
 * ```ts
 * import type { Lease } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const step = (lease: Lease.Lease, write: (token: number) => Effect.Effect<void>) =>
 *   Effect.gen(function*() {
 *     yield* lease.ensure
 *     const left = yield* lease.timeLeft
 *     if (Duration.isLessThan(left, Duration.seconds(1))) yield* Effect.logWarning("renewals are late")
 *     yield* lease.protect(write(lease.token))
 *   })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Lease extends Pipeable, Inspectable {
  readonly mutex: MutexName
  /** The owner's id in the backend. Shared by leases that are handed on within a process: see `localTurn`. */
  readonly id: LeaseId
  /** Grows with every grant of this mutex. Pass it to the resource that the mutex protects. */
  readonly token: FencingToken
  /** Whether the lease is held right now. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while the lease is held. Otherwise fails with `LeaseLost`, whose `reason` says why. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the local deadline; zero once the lease has ended. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /**
   * Waits until the lease is lost. A regular release does not complete a wait that has already started. A wait that
   * starts after the release returns `Released` immediately.
   */
  readonly lost: Effect.Effect<LeaseLost>
  /**
   * Runs `effect` under the lease. If the lease is lost, interrupts `effect` no later than the local deadline, waits
   * for its finalizers, and fails with `LeaseLost`. Also fails with `LeaseLost` if the lease ended before `effect`
   * succeeded. A failure of `effect` itself takes precedence.
   */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * Several leases that are held together. The group is lost as soon as one of them is lost.
 *
 * **Example** (Work that needs two mutexes)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const group = yield* Mutex.acquireAll(["stock", "orders"])
 *   yield* group.protect(Effect.log(`moving with token ${group.tokens.get("stock")}`))
 * }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface LeaseGroup extends Pipeable, Inspectable {
  readonly leases: ReadonlyArray<Lease>
  /** The fencing tokens, by mutex name. */
  readonly tokens: ReadonlyMap<string, FencingToken>
  /** Whether all leases are held right now. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while all leases are held. Otherwise fails with the `LeaseLost` of the first one that is not. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the earliest local deadline. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /** Waits until any of the leases is lost. */
  readonly lost: Effect.Effect<LeaseLost>
  /** Runs `effect` while all leases are held. See `Lease.protect`. */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * The work to run under a lock: an effect, or a function that takes the lease and returns an effect.
 *
 * **Example** (A reusable lock with fixed options)
 *
 * ```ts
 * import { Lease, Mutex } from "@effect-simba/core"
 *
 * const withBooks = <A, E, R>(body: Lease.Body<A, E, R>) =>
 *   Mutex.withLock("books", { timeout: "10 seconds", maxHold: "5 minutes" })(body)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Body<A, E, R> = Effect.Effect<A, E, R> | ((lease: Lease) => Effect.Effect<A, E, R>)
