/**
 * One holding of a mutex, from the grant to its release or loss.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FencingToken } from "./FencingToken.ts"
import type { ContenderId, MutexName } from "./MutexName.ts"
import type { LeaseLost } from "./SimbaError.ts"

/**
 * Marks a lease.
 *
 * **Example** (Telling a lease from a group of them)
 *
 * ```ts
 * import { Lease } from "@effect-simba/core"
 *
 * const tokensOf = (held: Lease.Lease | Lease.LeaseGroup) =>
 *   Lease.TypeId in held ? [held.token] : [...held.tokens.values()]
 * ```
 *
 * @category type IDs
 * @since 0.1.0
 */
export const TypeId = "~@effect-simba/core/Lease" as const

/**
 * A lease is renewed in the background while its scope is open. It ends when the scope closes, or is lost earlier.
 *
 * A lease from `Mutex.acquire` does not interrupt its holder by itself: put work that must stop at a loss into
 * `protect`, or ask `ensure` before each step that must not happen without the mutex. `Mutex.withLock` protects its
 * body.
 *
 * All judgements are local, by the clock: they hold even if no timer could fire since the deadline passed. The
 * deadline counts from just before the last successful renewal was sent, and lies a safety margin before the end of the
 * server's lease.
 *
 * **Example** (A step at a time)
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
export interface Lease {
  readonly [TypeId]: typeof TypeId
  readonly mutex: MutexName
  /** The owner's id in the backend, unique to this lease. */
  readonly id: ContenderId
  /** Grows with every grant of this mutex. Give it to the resource that the mutex protects. */
  readonly token: FencingToken
  /** Whether the lease is held at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while the lease is held, otherwise fails with `LeaseLost` and the reason. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the local deadline; zero once the lease is over. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /**
   * Waits for the loss of the lease. Who waits while it is released in order goes on waiting; who asks after that is told
   * `Released` at once.
   */
  readonly lost: Effect.Effect<LeaseLost>
  /**
   * Runs `effect` as long as the lease is held. When it is lost, `effect` is interrupted no later than the local
   * deadline, its finalizers are awaited, and the result is `LeaseLost`. It is `LeaseLost` too if the lease was over
   * before `effect` succeeded. A failure of `effect` itself stays what it is.
   */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * Marks a group of leases.
 *
 * **Example** (Naming what is held)
 *
 * ```ts
 * import { Lease } from "@effect-simba/core"
 *
 * const namesOf = (held: Lease.Lease | Lease.LeaseGroup) =>
 *   Lease.LeaseGroupTypeId in held ? held.leases.map(({ mutex }) => mutex) : [held.mutex]
 * ```
 *
 * @category type IDs
 * @since 0.1.0
 */
export const LeaseGroupTypeId = "~@effect-simba/core/LeaseGroup" as const

/**
 * Several leases held together: lost as soon as one of them is.
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
export interface LeaseGroup {
  readonly [LeaseGroupTypeId]: typeof LeaseGroupTypeId
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
  /** Runs `effect` as long as all are held. See `Lease.protect`. */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
}

/**
 * What a lock protects: an effect, or a function that is given the lease.
 *
 * **Example** (A lock with a name and options of one's own)
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
