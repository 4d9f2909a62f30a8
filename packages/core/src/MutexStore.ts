/**
 * The port between the mutex and whatever keeps its state: typed requests in, typed results out, no strings of the wire.
 *
 * An implementation decides ownership by the backend's own time. It is held to its word by the contract suite in
 * `@effect-simba/testkit`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { BackendError, ProtocolError } from "./Errors.ts"
import type { MutexName, WireId } from "./Names.ts"
import type { FencingToken, Ownership, Ticket } from "./Ownership.ts"

/**
 * Asks for a mutex.
 *
 * - `try` never queues; `wait` queues when somebody else owns it.
 * - `lease` is ttl plus transition: how long a grant lasts without renewal.
 * - `confirm` is how long a waiter that is granted the mutex has to say that it is there.
 * - `ticket` is what an earlier attempt of the same wait was given: its place, which it keeps.
 * - `unfair` takes the mutex where nobody owns it, whoever waits for it.
 *
 * @category models
 * @since 0.1.0
 */
export interface AcquireRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly mode: "try" | "wait"
  readonly lease: Duration.Duration
  readonly confirm: Duration.Duration
  readonly ticket?: Ticket | undefined
  readonly unfair?: boolean | undefined
}

/**
 * - `Granted`: the caller owns the mutex for the whole lease. An owner that asks again keeps its token.
 * - `Refused`: it does not. `ticket` is its place if it queues, `position` how many contenders of ours are known to be
 *   ahead of it, `foreign` whether contenders of another implementation own it or wait for it: they wake one waiter
 *   only, alive or not.
 *
 * @category models
 * @since 0.1.0
 */
export type AcquireResult =
  | { readonly _tag: "Granted"; readonly token: FencingToken }
  | {
    readonly _tag: "Refused"
    readonly ownership: Ownership
    readonly ticket: Ticket | undefined
    readonly position: number
    readonly foreign: boolean
  }

/**
 * One lease to renew, to the full `lease` from now.
 *
 * @category models
 * @since 0.1.0
 */
export interface GuardRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly lease: Duration.Duration
}

/**
 * - `Renewed`: still the owner, for the whole lease.
 * - `Lost`: not the owner. A mutex that vanished is never created again by a renewal.
 * - `Failed`: this one could not be looked at; its neighbours are not concerned.
 *
 * @category models
 * @since 0.1.0
 */
export type GuardResult =
  | { readonly _tag: "Renewed" }
  | { readonly _tag: "Lost"; readonly ownership: Ownership }
  | { readonly _tag: "Failed"; readonly error: BackendError | ProtocolError }

/**
 * Gives a mutex back, or leaves its queue, whichever applies: also the undo of an attempt of unknown outcome.
 *
 * The owner hands the mutex to the first live waiter. If it is `unfair` it frees the mutex instead: the first live waiter
 * is told that it is its turn and keeps its place, and the one behind it is told to look after the confirm period.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReleaseRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly confirm: Duration.Duration
  readonly unfair?: boolean | undefined
}

/**
 * Why a waiter should ask again. Hints all of them: only the reply to an attempt says who owns the mutex.
 *
 * - `YourTurn`: the mutex was handed to this waiter, or freed for it.
 * - `LookIn`: ask again after `delay`.
 * - `Gap`: something may have been missed. Ask now.
 *
 * @category models
 * @since 0.1.0
 */
export type WakeUp =
  | { readonly _tag: "YourTurn"; readonly from: string }
  | { readonly _tag: "LookIn"; readonly delay: Duration.Duration }
  | { readonly _tag: "Gap" }

/**
 * An acknowledged subscription of one waiter.
 *
 * - `next` waits for the next wake-up.
 * - `bound` is the longest that this backend lets a waiter sleep, where it cannot see its own gaps.
 *
 * @category models
 * @since 0.1.0
 */
export interface WakeUps {
  readonly next: Effect.Effect<WakeUp>
  readonly bound: Duration.Duration | undefined
}

/**
 * Somebody in the queue of a mutex, and for how long.
 *
 * @category models
 * @since 0.1.0
 */
export interface Waiter {
  readonly id: string
  readonly waited: Duration.Duration
}

/**
 * A mutex as the backend has it at one instant.
 *
 * - `token` is that of the owner, where the owner is one of ours.
 * - `waiting` counts all that queue, dead ones included until they are found out; `waiters` are the first of them.
 *
 * @category models
 * @since 0.1.0
 */
export interface MutexState {
  readonly ownership: Ownership
  readonly token: FencingToken | undefined
  readonly waiting: number
  readonly waiters: ReadonlyArray<Waiter>
}

/**
 * Why an observer should look.
 *
 * - `Acquired`: somebody says that it acquired the mutex.
 * - `Gap`: something may have been missed.
 *
 * @category models
 * @since 0.1.0
 */
export type Change = { readonly _tag: "Acquired"; readonly owner: string } | { readonly _tag: "Gap" }

/**
 * An acknowledged subscription of an observer. See `WakeUps`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Changes {
  readonly next: Effect.Effect<Change>
  readonly bound: Duration.Duration | undefined
}

/**
 * What is addressed to a layer rather than to one wait.
 *
 * - `Forced`: the lease of this wire id was taken away by force. A hint like all others: look.
 *
 * @category models
 * @since 0.1.0
 */
export interface Forced {
  readonly id: string
}

/**
 * Asks whether this is the first of the fleet to run `job` in a period.
 *
 * - With `at` (milliseconds since the epoch) the period is that scheduled instant: a later one has not run yet.
 * - Without, it is the backend's time divided by `every`.
 *
 * @category models
 * @since 0.1.0
 */
export interface TickRequest {
  readonly mutex: MutexName
  readonly job: string
  readonly every: Duration.Duration
  readonly at?: number | undefined
}

/**
 * - `first`: this caller is to run the job, and nobody else is for this period.
 * - `next`: how long until the next period begins, by the backend's time (with `at`: zero).
 *
 * @category models
 * @since 0.1.0
 */
export interface TickResult {
  readonly first: boolean
  readonly next: Duration.Duration
}

type StoreError = BackendError | ProtocolError

/**
 * Keeps who owns which mutex and who waits for it.
 *
 * @category services
 * @since 0.1.0
 */
export class MutexStore extends Context.Service<MutexStore, {
  readonly acquire: (request: AcquireRequest) => Effect.Effect<AcquireResult, StoreError>
  /** Renews many leases in few round trips; answers in the order of the requests. */
  readonly guard: (
    requests: ReadonlyArray<GuardRequest>
  ) => Effect.Effect<ReadonlyArray<GuardResult>, StoreError>
  /** Answers who owns the mutex now. Safe to repeat and safe when nothing is held. */
  readonly release: (request: ReleaseRequest) => Effect.Effect<Ownership, StoreError>
  readonly owner: (mutex: MutexName) => Effect.Effect<Ownership, StoreError>
  /** Subscribes a waiter; succeeds once nothing that is sent to it afterwards can be missed unnoticed. */
  readonly wakeUps: (mutex: MutexName, id: WireId) => Effect.Effect<WakeUps, BackendError, Scope.Scope>
  /** Subscribes an observer, likewise. */
  readonly changes: (mutex: MutexName) => Effect.Effect<Changes, BackendError, Scope.Scope>
  /** Subscribes a layer, by the random part of its wire ids, likewise. */
  readonly inbox: (key: string) => Effect.Effect<{ readonly next: Effect.Effect<Forced> }, BackendError, Scope.Scope>
  /** With the first `limit` waiters. */
  readonly inspect: (mutex: MutexName, limit: number) => Effect.Effect<MutexState, StoreError>
  /** The mutexes that are owned or waited for, in no order. What comes and goes meanwhile may be missing. */
  readonly list: Stream.Stream<MutexName, StoreError>
  /** Takes the mutex from whoever owns it, and hands it over as a release does. Answers who it was taken from. */
  readonly forceRelease: (mutex: MutexName, confirm: Duration.Duration) => Effect.Effect<Ownership, StoreError>
  readonly tick: (request: TickRequest) => Effect.Effect<TickResult, StoreError>
}>()("@effect-simba/core/MutexStore") {}
