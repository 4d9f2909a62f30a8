/**
 * Distributed mutexes: one holder at a time among all processes that share a backend.
 *
 * **Example** (Holding a mutex while a scope is open)
 *
 * ```ts
 * import { Mutex, MutexStore } from "@effect-simba/core"
 *  * import { Effect, Layer } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.acquire("invoices")
 *   yield* Effect.log(`holding with token ${lease.token}`)
 * }))
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory))
 *
 * // Closes its scopes at a signal, which Effect.runPromise would not
 * NodeRuntime.runMain(Effect.provide(program, MutexLive))
 * ```
 *
 * @since 0.1.0
 */
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Contender, ContenderOptions } from "./Contender.ts"
import { make } from "./internal/mutex/service.ts"
import type { Body, Lease, LeaseGroup } from "./Lease.ts"
import * as MutexConfig from "./MutexConfig.ts"
import type { MutexState, MutexStore, Ownership } from "./MutexStore.ts"
import type { EventsOptions, OwnerEvent } from "./OwnerEvent.ts"
import type {
  AcquireError,
  BackendError,
  InvalidConfig,
  InvalidName,
  LeaseLost,
  StoreError,
  TryAcquireError
} from "./SimbaError.ts"

/**
 * The operations of this module, on one backend.
 *
 * **Example** (A service that has mutexes of its own)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Context, Effect, Layer } from "effect"
 *
 * class Invoices extends Context.Service<Invoices, { readonly close: Effect.Effect<void, SimbaError.AcquireError> }>()(
 *   "app/Invoices"
 * ) {
 *   static readonly layer = Layer.effect(
 *     Invoices,
 *     Effect.map(Mutex.Mutex, (mutex) => ({
 *       close: Effect.scoped(Effect.andThen(mutex.acquire("invoices"), Effect.log("closing")))
 *     }))
 *   )
 * }
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Mutex extends Context.Service<Mutex, {
  readonly acquire: (name: string, options?: AcquireOptions) => Effect.Effect<Lease, AcquireError, Scope.Scope>
  readonly tryAcquire: (
    name: string,
    options?: LeaseOptions
  ) => Effect.Effect<Option.Option<Lease>, TryAcquireError, Scope.Scope>
  readonly withLock: (
    name: string,
    options?: AcquireOptions
  ) => <A, E, R>(body: Body<A, E, R>) => Effect.Effect<A, E | AcquireError | LeaseLost, R>
  readonly withLockIfAvailable: (
    name: string,
    options?: LeaseOptions
  ) => <A, E, R>(body: Body<A, E, R>) => Effect.Effect<Option.Option<A>, E | TryAcquireError | LeaseLost, R>
  readonly acquireAll: (
    names: ReadonlyArray<string>,
    options?: AcquireOptions
  ) => Effect.Effect<LeaseGroup, AcquireError, Scope.Scope>
  readonly contend: (
    name: string,
    options?: ContenderOptions
  ) => Effect.Effect<Contender, InvalidName | InvalidConfig, Scope.Scope>
  readonly events: (
    name: string,
    options?: EventsOptions
  ) => Stream.Stream<OwnerEvent, StoreError | InvalidName | InvalidConfig>
  readonly inspect: (
    name: string,
    options?: { readonly waiters?: number | undefined }
  ) => Effect.Effect<MutexState, StoreError | InvalidName>
  readonly list: Stream.Stream<string, StoreError>
  readonly forceRelease: (name: string) => Effect.Effect<Ownership, StoreError | InvalidName>
  readonly owner: (name: string) => Effect.Effect<Ownership, StoreError | InvalidName>
}>()("@effect-simba/core/Mutex") {}

/**
 * Mutexes on whatever store is provided. Invalid options are refused when the layer is built. Closing the layer waits,
 * for at most `releaseTimeout`, until what was given back has been given back.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: MutexConfig.Options): Layer.Layer<Mutex, InvalidConfig | BackendError, MutexStore> =>
  Layer.effect(Mutex, make(options))

/**
 * Like `layer`, with `ttl` and `transition` from `SIMBA_REDIS_TTL` and `SIMBA_REDIS_TRANSITION`. Options that are given
 * here win over the configuration.
 *
 * **Example** (Durations from the environment, a name from the code)
 *
 * ```ts
 * import { Mutex, MutexStore } from "@effect-simba/core"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layerFromEnv({ contender: "billing-1" }).pipe(Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options?: MutexConfig.Options
): Layer.Layer<Mutex, InvalidConfig | BackendError | Config.ConfigError, MutexStore> =>
  Layer.effect(
    Mutex,
    Effect.flatMap(MutexConfig.config, (config) =>
      make({
        ...options,
        ttl: options?.ttl ?? config.ttl,
        transition: options?.transition ?? config.transition
      }))
  )

/**
 * Waits for the mutex, first come, first served, and holds it while the scope is open: renewed in the background,
 * released when the scope closes. A free mutex takes one round trip. Interrupting the wait, or letting it time out,
 * returns at once; the place in the queue is given up in the background.
 *
 * Closing the scope does not wait for the backend's answer where the connection to it is in order: what this process asks
 * afterwards comes behind the release, but another process may still see the lock for a moment.
 *
 * The lease does not interrupt its holder when it is lost: see `Lease`, or use `withLock`.
 *
 * Fails with `AcquireTimeout` if `timeout` passes first; with `AlreadyHeld` inside a `withLock` of the same name, which
 * would wait for itself; with `BackendError` if the backend refuses, or is out of reach for longer than a lease lasts.
 *
 * **Example** (Waiting for at most five seconds)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const lease = yield* Mutex.acquire("invoices", { timeout: "5 seconds" })
 *   yield* lease.ensure
 * }).pipe(
 *   Effect.scoped,
 *   Effect.catchTag("AcquireTimeout", (error) => Effect.log(error.message))
 * )
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const acquire = (
  name: string,
  options?: AcquireOptions
): Effect.Effect<Lease, AcquireError, Mutex | Scope.Scope> => Mutex.use((mutex) => mutex.acquire(name, options))

/**
 * Waits for several mutexes and holds them all, or none. They are asked for one after the other in the order of their
 * names, whatever order they are given in, so that two callers cannot wait for each other; a name given twice counts
 * once, and no name at all is `InvalidConfig`. `timeout` is for all of them together. Works on a Cluster: each mutex is an own request.
 *
 * **Example** (Moving money between two accounts)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const move = (from: string, to: string) =>
 *   Effect.scoped(Effect.gen(function*() {
 *     const lease = yield* Mutex.acquireAll([from, to], { timeout: "5 seconds" })
 *     yield* lease.protect(Effect.log(`moving with tokens ${[...lease.tokens.values()]}`))
 *   }))
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const acquireAll = (
  names: ReadonlyArray<string>,
  options?: AcquireOptions
): Effect.Effect<LeaseGroup, AcquireError, Mutex | Scope.Scope> =>
  Mutex.use((mutex) => mutex.acquireAll(names, options))

/**
 * Asks once, in one round trip, and never waits: `None` if the mutex is owned or waited for, also where a `withLock` around
 * the call owns it.
 *
 * **Example** (Doing without)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.tryAcquire("cache-warm-up")
 *   if (Option.isSome(lease)) yield* Effect.log("warming up")
 * }))
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const tryAcquire = (
  name: string,
  options?: LeaseOptions
): Effect.Effect<Option.Option<Lease>, TryAcquireError, Mutex | Scope.Scope> =>
  Mutex.use((mutex) => mutex.tryAcquire(name, options))

/**
 * Runs a body while holding the mutex. When the lease is lost the body is interrupted, no later than the local
 * deadline, and the result is `LeaseLost`. The mutex is released after the body, its finalizers included, has ended.
 * As with `acquire`, another process may still see the lock for a moment after that.
 * The body may be a function: it is given the lease, with its fencing token.
 *
 * **Example** (Protecting a transfer)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const transfer = Effect.log("transferring").pipe(Mutex.withLock("accounts"))
 *
 * const fenced = Mutex.withLock("accounts", { timeout: "2 seconds" })((lease) =>
 *   Effect.log(`writing with token ${lease.token}`)
 * )
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const withLock = (name: string, options?: AcquireOptions) =>
<A, E, R>(
  body: Body<A, E, R>
): Effect.Effect<A, E | AcquireError | LeaseLost, R | Mutex> =>
  Mutex.use((mutex) => mutex.withLock(name, options)(body))

/**
 * Like `withLock`, but asks once and never waits: `None`, without running the body, if the mutex is owned or waited for.
 *
 * **Example** (A clean-up that one node does, and the others leave to it)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.log("cleaning up").pipe(
 *   Mutex.withLockIfAvailable("clean-up"),
 *   Effect.flatMap((result) => Option.isNone(result) ? Effect.log("somebody else is at it") : Effect.void)
 * )
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const withLockIfAvailable = (name: string, options?: LeaseOptions) =>
<A, E, R>(
  body: Body<A, E, R>
): Effect.Effect<Option.Option<A>, E | TryAcquireError | LeaseLost, R | Mutex> =>
  Mutex.use((mutex) => mutex.withLockIfAvailable(name, options)(body))

/**
 * Who owns the mutex at this instant, contenders of other implementations included.
 *
 * **Example** (Who to ask about a job that hangs)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const holder = Effect.map(Mutex.owner("report"), (state) => state._tag === "Held" ? state.owner : undefined)
 * ```
 *
 * @category operations
 * @since 0.1.0
 */
export const owner = (name: string): Effect.Effect<Ownership, StoreError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.owner(name))

/**
 * Contends for the mutex as long as the scope is open: owns it whenever it can be had, many times over, and survives
 * outages of the backend. See `Contention` for what can be done with it, and `Contender` for the same as a Layer.
 *
 * **Example** (A job that runs where this process leads)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const contention = yield* Mutex.contend("cleaner")
 *   return yield* contention.whileLeader(Effect.forever(Effect.delay(Effect.log("cleaning"), "1 minute")))
 * }))
 * ```
 *
 * @category contention
 * @since 0.1.0
 */
export const contend = (
  name: string,
  options?: ContenderOptions
): Effect.Effect<Contender, InvalidName | InvalidConfig, Mutex | Scope.Scope> =>
  Mutex.use((mutex) => mutex.contend(name, options))

/**
 * What happens to the ownership of the mutex, for observers that do not contend; true for owners of other
 * implementations too. Begins with the present owner, if there is one. A slow reader blocks nobody: it is told by a
 * `Gap` that it missed something, and always gets the latest.
 *
 * **Example** (An alarm when an owner dies)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const alarms = Mutex.events("jobs", { every: "5 seconds" }).pipe(
 *   Stream.filter((event) => event._tag === "Expired"),
 *   Stream.runForEach((event) => Effect.logError(`${event.owner} did not renew ${event.mutex}`))
 * )
 * ```
 *
 * @category observing
 * @since 0.1.0
 */
export const events = (
  name: string,
  options?: EventsOptions
): Stream.Stream<OwnerEvent, StoreError | InvalidName | InvalidConfig, Mutex> =>
  Stream.unwrap(Effect.map(Mutex, (mutex) => mutex.events(name, options)))

/**
 * What one lease is to be like. Checked by the call; what cannot work fails with `InvalidConfig`.
 *
 * - `ttl`, `transition`: default to those of the layer.
 * - `maxHold` (at least 1 millisecond; default: no limit): the longest the lease may be held in all, counted from just
 *   before the granting request was sent. Then at the latest it ends as a loss (`Expired`): protected work is
 *   interrupted, and the mutex is given back once that has ended. Against work that is stuck, or a lease that leaked.
 * - `isAlive` (default: none): asked before each renewal whether the holder still does what it should. While it answers
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
 * - `maxLocalHandOffs` (default that of the layer, which is 0; a whole number up to 10,000): throughput inside one process
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
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const lastRow = yield* Ref.make(yield* Clock.currentTimeMillis)
 *   const isAlive = Effect.map(
 *     Effect.all([Clock.currentTimeMillis, Ref.get(lastRow)]),
 *     ([now, last]) => now - last < 30_000
 *   )
 *   const work = Effect.flatMap(Clock.currentTimeMillis, (now) => Ref.set(lastRow, now))
 *   yield* work.pipe(Mutex.withLock("import", { isAlive, maxHold: "1 hour" }))
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
  readonly isAlive?: Effect.Effect<boolean, unknown> | undefined
  readonly unfair?: boolean | undefined
  readonly maxLocalHandOffs?: number | undefined
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

/**
 * A mutex as the backend has it: owner, time left, token, and the queue with waiting times (the first 100 waiters, or
 * `waiters`).
 *
 * **Example** (Who waits for longer than a minute)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const stuck = Effect.map(
 *   Mutex.inspect("invoices", { waiters: 10 }),
 *   ({ waiters }) => waiters.filter(({ waited }) => Duration.toMinutes(waited) > 1).map(({ id }) => id)
 * )
 * ```
 *
 * @category observing
 * @since 0.1.0
 */
export const inspect = (
  name: string,
  options?: { readonly waiters?: number | undefined }
): Effect.Effect<MutexState, StoreError | InvalidName, Mutex> => Mutex.use((mutex) => mutex.inspect(name, options))

/**
 * The names of all mutexes that are owned or waited for, in no order.
 *
 * **Example** (Counting the mutexes of a service)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Stream } from "effect"
 *
 * const invoices = Mutex.list.pipe(Stream.filter((name) => name.startsWith("invoices:")), Stream.runCount)
 * ```
 *
 * @category observing
 * @since 0.1.0
 */
export const list: Stream.Stream<string, StoreError, Mutex> = Stream.unwrap(
  Effect.map(Mutex, (mutex) => mutex.list)
)

/**
 * Takes the mutex from whoever owns it and hands it over as a release does, to the first live waiter, with a new
 * fencing token. The old owner is told and loses its lease with the reason `ForcedRelease`. For operators: the old
 * owner's work may not have ended yet. Answers who it was taken from.
 *
 * **Example** (Taking a mutex from a process that hangs)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.flatMap(
 *   Mutex.forceRelease("invoices"),
 *   (before) => Effect.log(before._tag === "Held" ? `taken from ${before.owner}` : "it was free")
 * )
 * ```
 *
 * @category intervening
 * @since 0.1.0
 */
export const forceRelease = (
  name: string
): Effect.Effect<Ownership, StoreError | InvalidName, Mutex> => Mutex.use((mutex) => mutex.forceRelease(name))
