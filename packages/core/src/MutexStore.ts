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
 * @category models
 * @since 0.1.0
 */
export interface ReleaseRequest {
  readonly mutex: MutexName
  readonly id: WireId
  readonly confirm: Duration.Duration
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
 * Keeps who owns which mutex and who waits for it.
 *
 * @category services
 * @since 0.1.0
 */
export class MutexStore extends Context.Service<MutexStore, {
  readonly acquire: (request: AcquireRequest) => Effect.Effect<AcquireResult, BackendError | ProtocolError>
  /** Renews many leases in few round trips; answers in the order of the requests. */
  readonly guard: (
    requests: ReadonlyArray<GuardRequest>
  ) => Effect.Effect<ReadonlyArray<GuardResult>, BackendError | ProtocolError>
  /** Answers who owns the mutex now. Safe to repeat and safe when nothing is held. */
  readonly release: (request: ReleaseRequest) => Effect.Effect<Ownership, BackendError | ProtocolError>
  readonly owner: (mutex: MutexName) => Effect.Effect<Ownership, BackendError | ProtocolError>
  /** Subscribes a waiter; succeeds once nothing that is sent to it afterwards can be missed unnoticed. */
  readonly wakeUps: (mutex: MutexName, id: WireId) => Effect.Effect<WakeUps, BackendError, Scope.Scope>
}>()("@effect-simba/core/MutexStore") {}
