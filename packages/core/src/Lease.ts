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
 * deadline has passed even if no timer could fire. The lease period starts just before the last successful renewal was
 * sent, and the deadline is a safety margin before the end of the lease on the server.
 *
 * Printing a lease shows `mutex`, `id`, `token` and `timeLeft`.
 *
 * **Gotchas**
 *
 * A lease from `Mutex.acquire` does not interrupt its holder. Run the work in `protect`, or run `ensure` before each
 * step that needs the mutex. `Mutex.withLock` protects its body.
 *
 * **Example** (One step at a time)
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
  /** The owner's id in the backend, unique to this lease. */
  readonly id: LeaseId
  /** Grows with every grant of this mutex. Pass it to the resource that the mutex protects. */
  readonly token: FencingToken
  /** Whether the lease is held at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while the lease is held, otherwise fails with `LeaseLost` and the reason. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the local deadline, zero once the lease is over. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /**
   * Waits for the loss of the lease. A regular release does not end a wait that started before it; a wait that starts
   * after it gets `Released` at once.
   */
  readonly lost: Effect.Effect<LeaseLost>
  /**
   * Runs `effect` while the lease is held. A loss interrupts it no later than the local deadline, waits for its
   * finalizers, and fails with `LeaseLost`; so does a lease that ended before `effect` succeeded. A failure of `effect`
   * takes precedence over the loss.
   */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * Several leases that are held together, and lost as soon as one of them is lost.
 *
 * **Example** (Work that needs both)
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
  /** The fencing token of each mutex, by its name. */
  readonly tokens: ReadonlyMap<string, FencingToken>
  /** Whether all are held at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while all are held, otherwise fails with the loss of the first that is not. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the nearest local deadline. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /** Waits for the first loss. */
  readonly lost: Effect.Effect<LeaseLost>
  /** Runs `effect` while all are held. See `Lease.protect`. */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * Work under a lock: an effect, or a function from the lease to an effect.
 *
 * **Example** (A lock with its own name and options)
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
