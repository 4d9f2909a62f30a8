/**
 * The port between the mutex and whatever keeps its state: typed requests in, typed results out, no strings of the wire.
 *
 * An implementation decides ownership by the backend's own time. It is held to its word by the contract suite in
 * `@effect-simba/testkit`.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FencingToken } from "./FencingToken.ts"
import { MemoryMutex } from "./internal/mutex/memoryStore.ts"
import { type ContenderId, inboxOf, type MutexName } from "./MutexName.ts"
import type { BackendError, StoreError } from "./SimbaError.ts"

/**
 * Asks for a mutex.
 *
 * - `try` never queues; `wait` queues when somebody else owns it.
 * - `lease` is ttl plus transition: how long a grant lasts without renewal.
 * - `confirm` is how long a waiter that is granted the mutex has to say that it is there.
 * - `ticket` is what an earlier attempt of the same wait was given: its place, which it keeps.
 * - `unfair` takes the mutex where nobody owns it, whoever waits for it.
 * - `reserve` (default 0) is how many further fencing tokens this grant takes, for holders that the caller hands the lease
 *   on to by itself. An owner that asks again with a larger number has that many.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface AcquireRequest {
  readonly mutex: MutexName
  readonly id: ContenderId
  readonly mode: "try" | "wait"
  readonly lease: Duration.Duration
  readonly confirm: Duration.Duration
  readonly ticket?: Ticket | undefined
  readonly unfair?: boolean | undefined
  readonly reserve?: number | undefined
}

/**
 * - `Granted`: the caller owns the mutex for the whole lease. `token` is the first of `reserve + 1` consecutive ones. An
 *   owner that asks again keeps its token.
 * - `Refused`: it does not. `ticket` is its place if it queues, `position` how many contenders of ours are known to be
 *   ahead of it, `foreign` whether contenders of another implementation own it or wait for it: they wake one waiter
 *   only, alive or not.
 *
 * @see {@link MutexStore}
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
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface GuardRequest {
  readonly mutex: MutexName
  readonly id: ContenderId
  readonly lease: Duration.Duration
}

/**
 * - `Renewed`: still the owner, for the whole lease.
 * - `Lost`: not the owner. A mutex that vanished is never created again by a renewal.
 * - `Failed`: this one could not be looked at; its neighbours are not concerned.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export type GuardResult =
  | { readonly _tag: "Renewed" }
  | { readonly _tag: "Lost"; readonly ownership: Ownership }
  | { readonly _tag: "Failed"; readonly error: StoreError }

/**
 * Gives a mutex back, or leaves its queue, whichever applies: also the undo of an attempt of unknown outcome.
 *
 * The owner hands the mutex to the first live waiter. If it is `unfair` it frees the mutex instead: the first live waiter
 * is told that it is its turn and keeps its place, and the one behind it is told to look after the confirm period.
 * `requeue` queues another attempt first.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface ReleaseRequest {
  readonly mutex: MutexName
  readonly id: ContenderId
  readonly confirm: Duration.Duration
  readonly unfair?: boolean | undefined
  readonly requeue?: Requeue | undefined
}

/**
 * Queues another attempt together with a release, behind all who wait. It takes place whether or not the mutex was still
 * the releaser's.
 *
 * - `id` is new, and should listen already.
 * - `lease`, `reserve`: as those of an `AcquireRequest`, for a grant at once.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface Requeue {
  readonly id: ContenderId
  readonly lease: Duration.Duration
  readonly reserve: number
}

/**
 * - `ownership`: who owns the mutex now.
 * - `requeued`: the place of the attempt that was queued. With a `token` nobody was ahead of it: it owns the mutex, for its
 *   whole lease. Otherwise it waits, as after an `AcquireRequest` in mode `wait`.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface Released {
  readonly ownership: Ownership
  readonly requeued: { readonly ticket: Ticket; readonly token: FencingToken | undefined } | undefined
}

/**
 * Why a waiter should ask again. Hints all of them: only the reply to an attempt says who owns the mutex.
 *
 * - `YourTurn`: the mutex was handed to this waiter, or freed for it.
 * - `LookIn`: ask again after `delay`.
 * - `Gap`: something may have been missed. Ask now.
 *
 * @see {@link WakeUps}
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
 * **Example** (How long a waiter may sleep on)
 *
 * ```ts
 * import type { MutexName, MutexStore } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const sleeping = (store: MutexStore.MutexStore["Service"], mutex: MutexName.MutexName, id: MutexName.ContenderId) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const wakeUps = yield* store.wakeUps(mutex, id)
 *     const wakeUp = yield* wakeUps.next
 *     return wakeUp._tag === "LookIn" ? wakeUp.delay : Duration.zero
 *   }))
 * ```
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
 * @see {@link Mutex.inspect}
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
 * @see {@link Mutex.inspect}
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
 * @see {@link Changes}
 * @category models
 * @since 0.1.0
 */
export type Change = { readonly _tag: "Acquired"; readonly owner: string } | { readonly _tag: "Gap" }

/**
 * An acknowledged subscription of an observer. See `WakeUps`.
 *
 * **Example** (What the next message says)
 *
 * ```ts
 * import type { MutexName, MutexStore } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const nextOwner = (store: MutexStore.MutexStore["Service"], mutex: MutexName.MutexName) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const changes = yield* store.changes(mutex)
 *     const change = yield* changes.next
 *     return change._tag === "Acquired" ? change.owner : (yield* store.owner(mutex))
 *   }))
 * ```
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
 * **Example** (Who is concerned)
 *
 * ```ts
 * import type { MutexStore } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const nextForced = (store: MutexStore.MutexStore["Service"], key: string) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const inbox = yield* store.inbox(key)
 *     const { id } = yield* inbox.next
 *     return id
 *   }))
 * ```
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
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface ClaimPeriodRequest {
  readonly mutex: MutexName
  readonly job: string
  readonly every: Duration.Duration
  readonly at?: number | undefined
}

/**
 * - `first`: this caller is to run the job, and nobody else is for this period.
 * - `next`: how long until the next period begins, by the backend's time (with `at`: zero).
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface ClaimPeriodResult {
  readonly first: boolean
  readonly next: Duration.Duration
}

/**
 * Keeps who owns which mutex and who waits for it.
 *
 * **Example** (A store that tells what it is asked)
 *
 * ```ts
 * import { MutexStore } from "@effect-simba/core"
 * import { Duration, Effect, Layer } from "effect"
 *
 * const Talkative = Layer.effect(
 *   MutexStore.MutexStore,
 *   Effect.map(MutexStore.MutexStore, (store) =>
 *     MutexStore.MutexStore.of({
 *       ...store,
 *       acquire: (request) =>
 *         Effect.tap(store.acquire(request), (result) =>
 *           Effect.logDebug(
 *             result._tag === "Granted"
 *               ? `${request.id} has ${request.mutex} with token ${result.token}`
 *               : `${request.id} is number ${result.position} for ${request.mutex}`
 *           )),
 *       guard: (requests) =>
 *         Effect.tap(store.guard(requests), (results) =>
 *           Effect.logDebug(
 *             `not renewed: ${requests.filter((_, index) => results[index]?._tag !== "Renewed").map(({ id }) => id)}`
 *           )),
 *       release: (request) =>
 *         Effect.tap(store.release(request), ({ ownership, requeued }) =>
 *           Effect.logDebug(`${request.mutex} is ${ownership._tag}; ${request.requeue?.id} waits at ${requeued?.ticket}`)),
 *       claimPeriod: (request) =>
 *         Effect.tap(store.claimPeriod(request), ({ first, next }) =>
 *           Effect.logDebug(`${request.job} ${first ? "runs" : `may run in ${Duration.format(next)}`}`))
 *     }))
 * ).pipe(Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class MutexStore extends Context.Service<MutexStore, {
  readonly acquire: (request: AcquireRequest) => Effect.Effect<AcquireResult, StoreError>
  /**
   * Renews many leases in few round trips; answers in the order of the requests. A store that asks several servers tells
   * each result, by its index, as soon as it is there: what was told counts even if the whole is given up.
   */
  readonly guard: (
    requests: ReadonlyArray<GuardRequest>,
    told?: (index: number, result: GuardResult) => void
  ) => Effect.Effect<ReadonlyArray<GuardResult>, StoreError>
  /** Safe to repeat and safe when nothing is held. */
  readonly release: (request: ReleaseRequest) => Effect.Effect<Released, StoreError>
  /**
   * Sends a release without waiting for the answer, which `done` is told once, later. Answers false, and has sent
   * nothing, unless the backend seems to be in reach and what this store is asked from now on comes behind the release.
   */
  readonly sendRelease?: (request: ReleaseRequest, done: (exit: Exit.Exit<Released, StoreError>) => void) => boolean
  readonly owner: (mutex: MutexName) => Effect.Effect<Ownership, StoreError>
  /** Subscribes a waiter; succeeds once nothing that is sent to it afterwards can be missed unnoticed. */
  readonly wakeUps: (mutex: MutexName, id: ContenderId) => Effect.Effect<WakeUps, BackendError, Scope.Scope>
  /**
   * Whether a layer that has an `inbox` is listening for all of its waiters, so that `wakeUps` neither waits nor fails. Then
   * a layer queues without having tried where a mutex was not free before. A store that does not say so is tried first.
   */
  readonly isListening?: boolean
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
  readonly claimPeriod: (request: ClaimPeriodRequest) => Effect.Effect<ClaimPeriodResult, StoreError>
}>()("@effect-simba/core/MutexStore") {}

/**
 * A waiter's place in the queue: the server's time, in seconds with six decimals, when it first asked.
 *
 * **Example** (When a waiter came)
 *
 * ```ts
 * import { MutexStore } from "@effect-simba/core"
 * import { Effect, Schema } from "effect"
 *
 * const arrival = (score: string) =>
 *   Effect.map(
 *     Schema.decodeEffect(MutexStore.Ticket)(score),
 *     (ticket) => DateTime.makeUnsafe(Number(ticket) * 1000)
 *   )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Ticket = Schema.String.check(Schema.isPattern(/^\d+\.\d{6}$/)).pipe(
  Schema.brand("@effect-simba/Ticket")
)

/**
 * @category models
 * @since 0.1.0
 */
export type Ticket = typeof Ticket.Type

/**
 * Who owns a mutex at the instant the backend was asked.
 *
 * - `Free`: nobody.
 * - `Held`: `owner` does, for `remaining` unless it renews; without `remaining` it is held without end (somebody wrote
 *   the key without an expiry).
 *
 * **Example** (In words)
 *
 * ```ts
 * import { MutexStore } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const words = MutexStore.Ownership.match({
 *   Free: () => "nobody has it",
 *   Held: ({ owner, remaining }) =>
 *     `${owner} has it ${remaining === undefined ? "without end" : `for ${Duration.format(remaining)}`}`
 * })
 *
 * const program = Effect.map(Mutex.owner("invoices"), words)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Ownership = Schema.TaggedUnion({
  Free: {},
  Held: { owner: Schema.String, remaining: Schema.optionalKey(Schema.Duration) }
})

/**
 * @category models
 * @since 0.1.0
 */
export type Ownership = typeof Ownership.Type

/** An unbounded queue that a subscription fills from outside until its scope closes. */
const subscription = <A>(
  subscribe: (offer: (value: A) => void) => Effect.Effect<Effect.Effect<void>>
): Effect.Effect<{ readonly next: Effect.Effect<A>; readonly bound: undefined }, never, Scope.Scope> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<A>()
    const offer = (value: A) => {
      Queue.offerUnsafe(queue, value)
    }
    yield* Effect.asVoid(Effect.acquireRelease(subscribe(offer), (unsubscribe) => unsubscribe))
    return { next: Queue.take(queue), bound: undefined }
  })

const make = Effect.sync((): MutexStore["Service"] => {
  const mutexes = new Map<MutexName, MemoryMutex>()
  const inboxes = new Map<string, (forced: Forced) => void>()

  const withMutex = <A>(name: MutexName, f: (mutex: MemoryMutex) => A): Effect.Effect<A> =>
    Clock.clockWith((clock) =>
      Effect.sync(() => {
        let mutex = mutexes.get(name)
        if (mutex === undefined) mutexes.set(name, mutex = new MemoryMutex())
        mutex.advance(Number(clock.monotonicTimeNanosUnsafe()) / 1e6, clock.currentTimeMillisUnsafe())
        const result = f(mutex)
        if (mutex.isIdle()) mutexes.delete(name)
        return result
      })
    )

  return {
    acquire: (request) => withMutex(request.mutex, (mutex) => mutex.acquire(request)),
    guard: (requests) =>
      Effect.forEach(
        requests,
        (request) => withMutex(request.mutex, (mutex) => mutex.guard(request.id, Duration.toMillis(request.lease)))
      ),
    release: (request) => withMutex(request.mutex, (mutex) => mutex.release(request)),
    owner: (name) => withMutex(name, (mutex) => mutex.ownership()),
    isListening: true,
    wakeUps: (name, id) =>
      subscription<WakeUp>((offer) =>
        Effect.as(
          withMutex(name, (mutex) => mutex.listen(id, offer)),
          withMutex(name, (mutex) => mutex.unlisten(id))
        )
      ),
    changes: (name) =>
      subscription<Change>((offer) =>
        Effect.map(
          withMutex(name, (mutex) => mutex.observe((owner) => offer({ _tag: "Acquired", owner }))),
          (unobserve) => withMutex(name, unobserve)
        )
      ),
    inbox: (key) =>
      subscription<Forced>((offer) =>
        Effect.sync(() => {
          inboxes.set(key, offer)
          return Effect.sync(() => void inboxes.delete(key))
        })
      ),
    inspect: (name, limit) => withMutex(name, (mutex) => mutex.inspect(limit)),
    list: Stream.suspend(() => Stream.fromIterable([...mutexes.keys()])).pipe(
      Stream.filterEffect((name) => withMutex(name, (mutex) => mutex.isWanted()))
    ),
    forceRelease: (name, confirm) =>
      Effect.tap(
        withMutex(name, (mutex) => mutex.force(Duration.toMillis(confirm))),
        (before) =>
          Effect.sync(() => {
            if (before._tag === "Held") inboxes.get(inboxOf(before.owner))?.({ id: before.owner })
          })
      ),
    claimPeriod: (request) =>
      withMutex(request.mutex, (mutex) => mutex.tick(request.job, Duration.toMillis(request.every), request.at))
  }
})

/**
 * Each use of this layer is a world of its own: share one layer among the contenders that must exclude each other.
 *
 * **Example** (An application of one process)
 *
 * ```ts
 * import { MutexStore } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory))
 *
 * // The second runs when the first is done: they share the layer
 * const work = Effect.log("working").pipe(Mutex.withLock("report"))
 * const program = Effect.all([work, work], { concurrency: 2 }).pipe(Effect.provide(MutexLive))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<MutexStore> = Layer.effect(MutexStore, make)
