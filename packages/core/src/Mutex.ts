/**
 * Distributed mutexes: one holder at a time among all processes that share a backend.
 *
 * **Example** (Holding a mutex while a scope is open)
 *
 * ```ts
 * import { MemoryMutexStore, Mutex } from "@effect-simba/core"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.acquire("invoices")
 *   yield* Effect.log(`holding with token ${lease.token}`)
 * }))
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MemoryMutexStore.layer))
 *
 * // Closes its scopes at a signal, which Effect.runPromise would not
 * NodeRuntime.runMain(Effect.provide(program, MutexLive))
 * ```
 *
 * @since 0.1.0
 */
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ContenderClass, Contention, ContentionOptions } from "./Contention.ts"
import type {
  AcquireError,
  BackendError,
  InvalidConfig,
  InvalidName,
  LeaseLost,
  ProtocolError,
  TryAcquireError
} from "./Errors.ts"
import { make } from "./internal/mutexService.ts"
import type { Body, Lease, LeaseGroup } from "./Lease.ts"
import type { AcquireOptions, LeaseOptions } from "./LeaseOptions.ts"
import * as MutexConfig from "./MutexConfig.ts"
import type { MutexState, MutexStore } from "./MutexStore.ts"
import type { EventsOptions, OwnerEvent } from "./OwnerEvent.ts"
import type { Ownership } from "./Ownership.ts"

export type { ContenderClass } from "./Contention.ts"
export type { AcquireError, TryAcquireError } from "./Errors.ts"
export type { Body } from "./Lease.ts"
export type { AcquireOptions, LeaseOptions } from "./LeaseOptions.ts"
export type { EventsOptions } from "./OwnerEvent.ts"

/**
 * The operations of this module, on one backend.
 *
 * **Example** (A service that has mutexes of its own)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Context, Effect, Layer } from "effect"
 *
 * class Invoices extends Context.Service<Invoices, { readonly close: Effect.Effect<void, Mutex.AcquireError> }>()(
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
    options?: ContentionOptions
  ) => Effect.Effect<Contention, InvalidName | InvalidConfig, Scope.Scope>
  readonly events: (
    name: string,
    options?: EventsOptions
  ) => Stream.Stream<OwnerEvent, BackendError | ProtocolError | InvalidName | InvalidConfig>
  readonly inspect: (
    name: string,
    options?: { readonly waiters?: number | undefined }
  ) => Effect.Effect<MutexState, BackendError | ProtocolError | InvalidName>
  readonly list: Stream.Stream<string, BackendError | ProtocolError>
  readonly forceRelease: (name: string) => Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName>
  readonly owner: (name: string) => Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName>
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
 * import { MemoryMutexStore, Mutex } from "@effect-simba/core"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layerConfig({ contender: "billing-1" }).pipe(Layer.provide(MemoryMutexStore.layer))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
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
export const owner = (name: string): Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName, Mutex> =>
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
  options?: ContentionOptions
): Effect.Effect<Contention, InvalidName | InvalidConfig, Mutex | Scope.Scope> =>
  Mutex.use((mutex) => mutex.contend(name, options))

/**
 * A contender as a class: a service that is a `Contention`, with the Layer that makes it. The tag carries the name of
 * the mutex, so that several contenders live in one application, on the connections of one `Mutex`.
 *
 * Two classes with one name are one service to Effect: whoever asks for either gets the same contender, with the options of
 * one of them. Make one class, and share it. The name is that of a mutex like any other: work of the leader that takes a
 * lock of that name waits for its own leadership to end.
 *
 * **Example** (A service built on being the leader)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * class Jobs extends Mutex.Contender<Jobs>()("jobs", { ttl: "5 seconds" }) {}
 *
 * const Cleaner = Layer.effectDiscard(Effect.gen(function*() {
 *   const jobs = yield* Jobs
 *   yield* Effect.forkScoped(jobs.whileLeader(Effect.log("cleaning")))
 * })).pipe(Layer.provide(Jobs.layer))
 * ```
 *
 * @category contention
 * @since 0.1.0
 */
export const Contender =
  <Self>() => <const Name extends string>(name: Name, options?: ContentionOptions): ContenderClass<Self, Name> =>
    class extends Context.Service<Self, Contention>()(`@effect-simba/core/Contender/${name}`) {
      static readonly layer = Layer.effect(this, contend(name, options))
    } as unknown as ContenderClass<Self, Name>

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
): Stream.Stream<OwnerEvent, BackendError | ProtocolError | InvalidName | InvalidConfig, Mutex> =>
  Stream.unwrap(Effect.map(Mutex, (mutex) => mutex.events(name, options)))
