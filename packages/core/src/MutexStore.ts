/**
 * Storage port behind `Mutex`. Requests and results are typed; the wire format stays inside the store.
 *
 * A store decides ownership by the backend's clock. Test a store with the contract suite in `@effect-simba/testkit`.
 *
 * This port is unstable: it may change in any release. The package's index does not export it, so import it by its
 * path.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Scheduler from "effect/Scheduler"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FencingToken } from "./FencingToken.ts"
import { instant } from "./internal/lease/instant.ts"
import * as timeouts from "./internal/lease/replyTimeout.ts"
import { type Last, MemoryMutex } from "./internal/mutex/memoryStore.ts"
import * as stride from "./internal/mutex/tokenStride.ts"
import type { JobStore } from "./JobStore.ts"
import type { LeaseId, MutexName } from "./MutexName.ts"
import type { MutexState, Ownership } from "./MutexState.ts"
import type { BackendError, StoreError } from "./SimbaError.ts"
import type { Subscription } from "./Subscriber.ts"

/**
 * A request to acquire a mutex.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface AcquireRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  /** `try` never queues. `wait` queues if another contender owns the mutex. */
  readonly mode: "try" | "wait"
  /** How long a grant lasts without renewal: ttl plus transition. */
  readonly lease: Duration.Duration
  /** How long a waiter has to confirm that it received the mutex. */
  readonly confirm: Duration.Duration
  /** The ticket from an earlier request in the same wait. It keeps the waiter's place in the queue. */
  readonly ticket?: Ticket | undefined
}

/**
 * The reply to an `AcquireRequest`.
 *
 * **Details**
 *
 * - `Granted`: the caller owns the mutex for the whole lease. If `token` is a multiple of `tokenStride`, the grant
 *   includes all tokens up to the next multiple, for successive owners within the caller's process. Otherwise the grant
 *   includes only `token`. An owner that repeats its request keeps its token.
 * - `Refused`: the caller does not own the mutex. If it queued, `ticket` is its place, which is kept for at least the
 *   owner's remaining lease plus `lease` plus `confirm`, and `position` is the number of waiters ahead. If it did not
 *   queue, `position` is 0. `foreign` is true if Simba contenders own the mutex or wait for it; they wake only one
 *   waiter, dead or alive.
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
    /**
     * When the reply was created. A waiter needs it to determine the age of a grant in a wake-up; without it, the
     * waiter polls.
     */
    readonly stamp?: Stamp | undefined
  }

/**
 * The backend's time in microseconds, and the token of the latest grant at that time (0 if there was none). Later
 * grants have larger tokens, even if the clock is set back.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface Stamp {
  readonly micros: number
  readonly token: number
}

/**
 * A grant that a wake-up delivers: its token, the backend's time of the grant in microseconds, and its duration in
 * milliseconds. If that duration differs from the lease that the waiter wants, the waiter confirms the grant.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface Grant extends Stamp {
  readonly token: FencingToken
  readonly millis: number
}

/**
 * A request to confirm the grant from a wake-up, which extends it to the full `lease`. A confirmation never grants the
 * mutex, and does not affect a grant with another token.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface ConfirmRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly token: FencingToken
  readonly lease: Duration.Duration
}

/**
 * A lease to renew, for the full `lease` from now.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface GuardRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly lease: Duration.Duration
}

/**
 * The reply to a `GuardRequest`.
 *
 * **Details**
 *
 * - `Renewed`: the caller is still the owner, for the full lease.
 * - `Lost`: the caller is not the owner. A renewal never recreates a mutex that has vanished.
 * - `Failed`: the backend refused this request or did not reply. Other requests in the same call are not affected.
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
 * A request to release a mutex or to leave its queue. It also undoes an attempt with an unknown outcome.
 *
 * **Details**
 *
 * A mutex that the caller owned, or that is free, passes to the first live waiter. A waiter is fresh if it queued at
 * most `confirm` ago, by the backend's clock, and the backend knows that it is subscribed. A fresh waiter is granted a
 * full `lease`. Any other waiter is granted `confirm`, and the waiter behind it is notified to poll after that time.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface ReleaseRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly confirm: Duration.Duration
  /** How long a fresh waiter's grant lasts: the default lease of the caller's layer. */
  readonly lease: Duration.Duration
  /**
   * Another attempt, queued behind all waiters before the release, even if the caller no longer owns the mutex. Its
   * `id` is new and should already be subscribed. `lease` applies if it is granted immediately.
   */
  readonly requeue?: {
    readonly id: LeaseId
    readonly lease: Duration.Duration
  } | undefined
}

/**
 * The reply to a `ReleaseRequest`.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export interface Released {
  /**
   * The place of the queued attempt, and the current owner. If `token` is set, nobody was ahead of the attempt, and it
   * owns the mutex for its full lease. Otherwise it waits, and `position` and `stamp` mean the same as in `Refused`.
   */
  readonly requeued: {
    readonly ownership: Ownership
    readonly ticket: Ticket
    readonly token: FencingToken | undefined
    readonly position?: number | undefined
    readonly stamp?: Stamp | undefined
  } | undefined
}

/**
 * A message to a waiter: a reason to poll, or a grant.
 *
 * **Details**
 *
 * - `YourTurn`: the mutex was handed to this waiter, or freed for it. With a `grant`, the waiter may start immediately
 *   if it can prove that the grant is recent enough.
 * - `PollAfter`: poll after `delay`.
 * - `Gap`: messages may have been missed. Poll now.
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export type WakeUp =
  | { readonly _tag: "YourTurn"; readonly grant?: Grant | undefined }
  | { readonly _tag: "PollAfter"; readonly delay: Duration.Duration }
  | { readonly _tag: "Gap" }

/**
 * A reason for an observer to poll: a contender published that it acquired the mutex, or messages may have been missed
 * (`Gap`).
 *
 * @see {@link MutexStore}
 * @category models
 * @since 0.1.0
 */
export type Change = { readonly _tag: "Acquired"; readonly owner: string } | { readonly _tag: "Gap" }

/**
 * Stores each mutex's owner and waiters.
 *
 * **Example** (A store that logs its replies)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Effect, Exit, Layer } from "effect"
 *
 * const LoggingStore = Layer.effect(
 *   MutexStore.MutexStore,
 *   Effect.map(MutexStore.MutexStore, (store) =>
 *     MutexStore.MutexStore.of({
 *       ...store,
 *       acquire: (request, done) =>
 *         store.acquire(request, (exit) => {
 *           if (Exit.isSuccess(exit) && exit.value._tag === "Granted") {
 *             console.debug(`${request.id} has ${request.mutex} with token ${exit.value.token}`)
 *           }
 *           done(exit)
 *         })
 *     }))
 * ).pipe(Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class MutexStore extends Context.Service<MutexStore, {
  /**
   * Calls `done` once, with the reply. The returned function abandons the request: the store does not send it again,
   * and the caller ignores the reply. An abandoned request may still be granted, so the caller releases it.
   *
   * @see {@link acquire} for an Effect
   */
  readonly acquire: (
    request: AcquireRequest,
    done: (exit: Exit.Exit<AcquireResult, StoreError>) => void
  ) => () => void
  /**
   * Renews many leases in a few round trips. Calls `done` once, with the results in the order of the requests. A
   * renewed lease lasts its full duration from now, even if it then ends sooner than before. A store with several
   * servers passes each result to `onResult` as soon as it arrives. The returned function abandons the call: the store
   * does not send what it has not sent yet. Results that were passed to `onResult` before still count.
   *
   * A list of requests never changes. A group of leases that stays the same is usually passed in the same list again, so
   * a store can keep what it derives from the list in a `WeakMap`.
   *
   * @see {@link guard} for an Effect
   */
  readonly guard: (
    requests: ReadonlyArray<GuardRequest>,
    done: (exit: Exit.Exit<ReadonlyArray<GuardResult>, StoreError>) => void,
    onResult?: (index: number, result: GuardResult) => void
  ) => () => void
  /** Sends a confirmation before it returns. Calls `done` once, with the reply. */
  readonly confirm: (request: ConfirmRequest, done: (exit: Exit.Exit<AcquireResult, StoreError>) => void) => void
  /**
   * Sends a release before it returns. Calls `done` once, with the reply. Safe to repeat, and safe if nothing is held.
   *
   * @see {@link release} for an Effect
   */
  readonly release: (request: ReleaseRequest, done: (exit: Exit.Exit<Released, StoreError>) => void) => void
  /** Whether the backend seems reachable and later requests cannot overtake earlier ones. */
  readonly isReady: () => boolean
  readonly owner: (mutex: MutexName) => Effect.Effect<Ownership, StoreError>
  /** Subscribes an observer. Once subscribed, it never misses a change without a `Gap`. */
  readonly changes: (mutex: MutexName) => Effect.Effect<Subscription<Change>, BackendError, Scope.Scope>
  /**
   * Subscribes a layer before any of its waiters queues. `key` is the random part of the layer's ids. Once subscribed,
   * its waiters never miss a wake-up without a `Gap`. Calls `onForced` with the id of each lease that a forced release
   * ended.
   *
   * @see {@link wakeUps} to subscribe a single waiter
   */
  readonly inbox: (key: string, onForced: (id: string) => void) => Effect.Effect<
    {
      /**
       * Calls the listener with one waiter's wake-ups until the returned function is called. The listener must neither
       * throw nor block.
       */
      readonly listen: (mutex: MutexName, id: LeaseId, listener: (wakeUp: WakeUp) => void) => () => void
      /** Maximum time that a waiter sleeps. Set if gaps cannot be detected. */
      readonly bound: Duration.Duration | undefined
    },
    BackendError,
    Scope.Scope
  >
  /** Reads the mutex's state, with at most `limit` waiters. */
  readonly inspect: (mutex: MutexName, limit: number) => Effect.Effect<MutexState, StoreError>
  /**
   * The mutexes that are held or have waiters, in no particular order. Mutexes that appear or disappear during the scan
   * may be missing.
   */
  readonly list: Stream.Stream<MutexName, StoreError>
  /**
   * Takes the mutex from its owner, hands it to the first live waiter for `confirm`, and returns the previous owner. A
   * late copy of the request does not affect a later owner.
   */
  readonly forceRelease: (mutex: MutexName, confirm: Duration.Duration) => Effect.Effect<Ownership, StoreError>
  /** Each mutex's jobs. */
  readonly jobs: JobStore
}>()("@effect-simba/core/MutexStore") {}

/**
 * A waiter's place in the queue: the server's time at which it queued, in seconds with six decimals.
 *
 * **Example** (When a waiter queued)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { DateTime, Effect, Schema } from "effect"
 *
 * const queuedAt = (score: string) =>
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
 * A validated ticket.
 *
 * @category models
 * @since 0.1.0
 */
export type Ticket = typeof Ticket.Type

/**
 * A grant whose token is a multiple of this number includes all tokens up to the next multiple.
 *
 * **Details**
 *
 * Successive owners within a process take these tokens one by one, without the backend. A store grants such a token
 * unless its previous grant was only a moment ago: otherwise tokens would run ahead of the clock.
 *
 * **Example** (The last token of a grant)
 *
 * ```ts
 * import { tokenStride } from "@effect-simba/core/MutexStore"
 *
 * const last = (first: number) => first + tokenStride - 1
 * ```
 *
 * @see {@link spareTokens}
 * @category constants
 * @since 0.1.0
 */
export const tokenStride: number = stride.tokenStride

/**
 * The number of additional tokens that a grant with this token includes.
 *
 * **Example** (The last token of a grant)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 *
 * const last = (token: number) => token + MutexStore.spareTokens(token)
 * console.log(last(500)) // => 599
 * console.log(last(501)) // => 501
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const spareTokens: (token: number) => number = stride.spareTokens

/**
 * Sends an acquire and waits for the reply. An interruption abandons the request, which may still be granted.
 *
 * **Example** (Asking once)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Duration, Effect } from "effect"
 *
 * const ask = (attempt: Pick<MutexStore.AcquireRequest, "id" | "mutex">) =>
 *   Effect.flatMap(MutexStore.MutexStore, (store) =>
 *     MutexStore.acquire(store, {
 *       ...attempt,
 *       mode: "try",
 *       confirm: Duration.millis(1500),
 *       lease: Duration.seconds(16)
 *     }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const acquire = (
  store: MutexStore["Service"],
  request: AcquireRequest
): Effect.Effect<AcquireResult, StoreError> => Effect.callback((resume) => Effect.sync(store.acquire(request, resume)))

/**
 * Renews leases and waits for the results. An interruption abandons the call.
 *
 * **Example** (Renewing a lease)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Duration, Effect } from "effect"
 *
 * const renew = (attempt: Pick<MutexStore.AcquireRequest, "id" | "mutex">) =>
 *   Effect.flatMap(MutexStore.MutexStore, (store) =>
 *     MutexStore.guard(store, [{ ...attempt, lease: Duration.seconds(16) }]))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const guard = (
  store: MutexStore["Service"],
  requests: ReadonlyArray<GuardRequest>
): Effect.Effect<ReadonlyArray<GuardResult>, StoreError> =>
  Effect.callback((resume) => Effect.sync(store.guard(requests, resume)))

/**
 * Releases a mutex and waits for the reply.
 *
 * **Example** (Undoing an attempt)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Duration, Effect } from "effect"
 *
 * const undo = (attempt: Pick<MutexStore.AcquireRequest, "id" | "mutex">) =>
 *   Effect.flatMap(MutexStore.MutexStore, (store) =>
 *     MutexStore.release(store, {
 *       ...attempt,
 *       confirm: Duration.millis(1500),
 *       lease: Duration.seconds(16)
 *     }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const release = (
  store: MutexStore["Service"],
  request: ReleaseRequest
): Effect.Effect<Released, StoreError> => Effect.callback((resume) => store.release(request, resume))

/**
 * Subscribes a single waiter through its layer's inbox.
 *
 * **Example** (Waiting for a wake-up)
 *
 * ```ts
 * import type { LeaseId, MutexName } from "@effect-simba/core/MutexName"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Effect } from "effect"
 *
 * const turn = Effect.fn(function*(mutex: MutexName, id: LeaseId) {
 *   const store = yield* MutexStore.MutexStore
 *   const { next } = yield* MutexStore.wakeUps(store, mutex, id)
 *   return yield* next
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const wakeUps = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  mutex: MutexName,
  id: LeaseId
): Effect.fn.Return<Subscription<WakeUp>, BackendError, Scope.Scope> {
  const { bound, listen } = yield* store.inbox(inboxOf(id), () => undefined)
  return {
    ...yield* subscription<WakeUp>((offer) => listen(mutex, id, offer)),
    bound
  }
})

/**
 * Waits until data that has already arrived on sockets has been read.
 *
 * **When to use**
 *
 * Use it in the timers of a store that uses sockets, before treating a request as lost. Node runs due timers before it
 * reads sockets, so in a busy process a reply may have arrived without being read.
 *
 * **Example** (Finding missed heartbeats)
 *
 * ```ts
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Effect } from "effect"
 *
 * const missed = (pending: Set<string>) =>
 *   Effect.sleep("1 second").pipe(
 *     Effect.andThen(MutexStore.socketsRead),
 *     Effect.map(() => [...pending])
 *   )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const socketsRead: Effect.Effect<void> = timeouts.socketsRead

/**
 * Continues with `late` if no reply arrives within `limit`. A reply that has already arrived counts, no matter how late
 * the timer fires. See `socketsRead`.
 *
 * **Example** (Failing a request that gets no reply)
 *
 * ```ts
 * import { SimbaError } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Duration, Effect } from "effect"
 *
 * const within = <A>(request: Effect.Effect<A>) =>
 *   MutexStore.replyTimeout(request, Duration.seconds(1), () =>
 *     Effect.fail(
 *       new SimbaError.BackendError({ operation: "read", isRetryable: true, cause: new Error("no reply within 1s") })
 *     ))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const replyTimeout: <A, E, R, B, E2>(
  request: Effect.Effect<A, E, R>,
  limit: Duration.Duration,
  late: () => Effect.Effect<B, E2>
) => Effect.Effect<A | B, E | E2, R> = timeouts.replyTimeout

/** An unbounded queue that a subscription fills until its scope closes. */
const subscription = <A>(
  subscribe: (offer: (value: A) => void) => () => void
): Effect.Effect<Subscription<A>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const queue = yield* Queue.unbounded<A>()
    yield* Effect.acquireRelease(
      Effect.sync(() => subscribe((value) => Queue.offerUnsafe(queue, value))),
      (unsubscribe) => Effect.sync(unsubscribe)
    )
    return { next: Queue.take(queue), bound: undefined }
  })

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher()
  const mutexes = new Map<MutexName, MemoryMutex>()
  let last: Last = { token: 0, ticket: 0 }
  const inboxes = new Set<{ readonly key: string; readonly onForced: (id: string) => void }>()

  const withMutex = <A>(name: MutexName, f: (mutex: MemoryMutex) => A): A => {
    let mutex = mutexes.get(name)
    if (mutex === undefined) mutexes.set(name, mutex = new MemoryMutex(last))
    mutex.advance(instant(clock))
    const result = f(mutex)
    if (mutex.isIdle()) {
      mutexes.delete(name)
      last = mutex.lastOf(last)
    }
    return result
  }

  const using = <A>(name: MutexName, f: (mutex: MemoryMutex) => A) => Effect.sync(() => withMutex(name, f))

  const attach = (name: MutexName, listen: (mutex: MemoryMutex) => () => void) => {
    const unlisten = withMutex(name, listen)
    return () => withMutex(name, unlisten)
  }

  return MutexStore.of({
    acquire: (request, done) => {
      done(Exit.succeed(withMutex(request.mutex, (mutex) => mutex.acquire(request))))
      return () => {}
    },
    guard: (requests, done) => {
      done(
        Exit.succeed(
          requests.map(({ id, lease, mutex }) => withMutex(mutex, (mutex) => mutex.guard(id, Duration.toMillis(lease))))
        )
      )
      return () => {}
    },
    confirm: (request, done) => done(Exit.succeed(withMutex(request.mutex, (mutex) => mutex.confirm(request)))),
    release: (request, done) => done(Exit.succeed(withMutex(request.mutex, (mutex) => mutex.release(request)))),
    isReady: () => true,
    owner: (name) => using(name, (mutex) => mutex.ownership()),
    changes: (name) =>
      subscription<Change>((offer) =>
        attach(name, (mutex) => mutex.observe((owner) => offer({ _tag: "Acquired", owner })))
      ),
    inbox: (key, onForced) =>
      Effect.as(
        Effect.acquireRelease(
          Effect.sync(() => {
            const inbox = { key, onForced }
            inboxes.add(inbox)
            return inbox
          }),
          (inbox) => Effect.sync(() => inboxes.delete(inbox))
        ),
        {
          listen: (name, id, listener) => {
            let isOpen = true
            // Deliver in a later task: a fiber that frees a mutex can then request it again before the waiters do
            const later = (wakeUp: WakeUp) => dispatcher.scheduleTask(() => isOpen ? listener(wakeUp) : undefined, 0)
            const leave = attach(name, (mutex) => mutex.listen(id, later))
            return () => {
              isOpen = false
              leave()
            }
          },
          bound: undefined
        }
      ),
    inspect: (name, limit) => using(name, (mutex) => mutex.inspect(limit)),
    list: Stream.suspend(() => Stream.fromIterable([...mutexes.keys()])).pipe(
      Stream.filterEffect((name) => using(name, (mutex) => mutex.isWanted()))
    ),
    forceRelease: (name, confirm) =>
      Effect.sync(() => {
        const before = withMutex(name, (mutex) => mutex.force(confirm))
        if (before._tag === "Free") return before
        const { owner } = before
        for (const { key, onForced } of inboxes) if (key === inboxOf(owner)) onForced(owner)
        return before
      }),
    jobs: {
      read: (request) => using(request.mutex, (mutex) => mutex.readJobs(request)),
      claim: (request) => using(request.mutex, (mutex) => mutex.claimRun(request)),
      end: (request) => using(request.mutex, (mutex) => mutex.endRun(request)),
      steer: (name, order) => using(name, (mutex) => mutex.steerJobs(order))
    }
  })
})

/**
 * Provides `MutexStore` in memory, for a single process.
 *
 * **When to use**
 *
 * Use it in stores that wrap another one. Tests and single-process applications use `Mutex.layerMemory`.
 *
 * **Gotchas**
 *
 * Each build of this layer has separate mutexes. Contenders that must exclude each other have to share one build.
 *
 * **Example** (A single-process application)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory))
 *
 * // Both share the layer, so they run one after another
 * const work = Effect.log("working").pipe(Mutex.withLock("report"))
 * const program = Effect.all([work, work], { concurrency: 2 }).pipe(Effect.provide(MutexLive))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<MutexStore> = Layer.effect(MutexStore, make)

/**
 * The part of an id that is the same for all ids from one layer; empty for Simba ids.
 *
 * **Example** (Grouping waiters by process)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Effect } from "effect"
 *
 * const processes = Effect.map(
 *   Mutex.inspect("invoices"),
 *   ({ waiters }) => new Set(waiters.map(({ id }) => MutexStore.inboxOf(id)))
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const inboxOf = (id: string): string => /^\d+-([0-9a-z]{12}):/.exec(id)?.[1] ?? ""
