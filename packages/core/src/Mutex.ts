/**
 * Distributed mutexes: one owner at a time among all processes that share a backend.
 *
 * **Example** (Holding a mutex while a scope is open)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { NodeRuntime } from "@effect/platform-node"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.acquire("invoices")
 *   yield* Effect.log(`holding with token ${lease.token}`)
 * }))
 *
 * const MutexLive = Mutex.layerMemory()
 *
 * // Closes its scopes at a signal, which Effect.runPromise would not
 * NodeRuntime.runMain(Effect.provide(program, MutexLive))
 * ```
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Contender, Options as ContenderOptions } from "./Contender.ts"
import type { HookServices } from "./internal/hookServices.ts"
import * as contention from "./internal/leadership/contention.ts"
import type { LayerParts } from "./internal/mutex/layerParts.ts"
import { checkName } from "./internal/mutex/leaseOptions.ts"
import * as ownerWatch from "./internal/mutex/ownerWatch.ts"
import { make } from "./internal/mutex/service.ts"
import type { Body, Lease, LeaseGroup } from "./Lease.ts"
import type { MutexName } from "./MutexName.ts"
import type { MutexSchedule } from "./MutexSchedule.ts"
import type { MutexState, Ownership } from "./MutexState.ts"
import { layerMemory as storeInMemory, type MutexStore } from "./MutexStore.ts"
import type { OwnerEvent } from "./OwnerEvent.ts"
import type {
  AcquireError,
  AcquireTimeout,
  AlreadyHeld,
  BackendError,
  InvalidConfig,
  InvalidName,
  LeaseLost,
  RequestError,
  StoreError
} from "./SimbaError.ts"

/**
 * The operations of this module, on one backend.
 *
 * **Example** (A service that has mutexes of its own)
 *
 * ```ts
 * import { Mutex, type SimbaError } from "@effect-simba/core"
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
  readonly acquire: <RA = never>(
    name: string,
    options?: AcquireOptions<RA>
  ) => Effect.Effect<Lease, AcquireError, HookServices<RA> | Scope.Scope>
  readonly acquireIfAvailable: <RA = never>(
    name: string,
    options?: LeaseOptions<RA>
  ) => Effect.Effect<Option.Option<Lease>, RequestError, HookServices<RA> | Scope.Scope>
  readonly withLock: <RA = never>(
    name: string,
    options?: AcquireOptions<RA>
  ) => <A, E, R>(body: Body<A, E, R>) => Effect.Effect<A, E | AcquireError | LeaseLost, R | HookServices<RA>>
  readonly withLockIfAvailable: <RA = never>(
    name: string,
    options?: LeaseOptions<RA>
  ) => <A, E, R>(
    body: Body<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | RequestError | LeaseLost, R | HookServices<RA>>
  readonly acquireAll: <RA = never>(
    names: ReadonlyArray<string>,
    options?: AcquireOptions<RA>
  ) => Effect.Effect<LeaseGroup, AcquireError | LeaseLost, HookServices<RA> | Scope.Scope>
  readonly inspect: (
    name: string,
    options?: { readonly limit?: number | undefined }
  ) => Effect.Effect<MutexState, StoreError | InvalidName>
  readonly list: Stream.Stream<string, StoreError>
  readonly forceRelease: (name: string) => Effect.Effect<Ownership, StoreError | InvalidName>
  readonly owner: (name: string) => Effect.Effect<Ownership, StoreError | InvalidName>
  /** The internals that `contend`, `events` and `Jobs` use. A service that wraps this one keeps them. */
  readonly parts: LayerParts
  /** How a service that wraps this one wraps each contender of `contend`. */
  readonly wrapContender?: (contender: Contender) => Contender
}>()("@effect-simba/core/Mutex") {}

/**
 * Options of `Mutex.layer`.
 *
 * **Example** (Short leases, and the end of the process as the hard stop)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const options: Mutex.Options = {
 *   ttl: "2 seconds",
 *   transition: "2 seconds",
 *   commandTimeout: "500 millis",
 *   onOverrun: (loss) =>
 *     Effect.andThen(
 *       Effect.logFatal(`work without its lease: ${loss.message}`),
 *       Effect.sync(() => process.exit(1))
 *     )
 * }
 *
 * const MutexLive = Mutex.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** How long an owner works before it renews; up to an eighth less, to join other renewals. Default: 10 seconds. */
  readonly ttl?: Duration.Input | undefined
  /**
   * Grace after `ttl`, in which the owner may still renew and nobody else takes over. Failed renewals are retried
   * within it. It must exceed the safety margin (5 % of `ttl` plus `transition`, at least 100 milliseconds) plus
   * `commandTimeout`. Default: 6 seconds.
   */
  readonly transition?: Duration.Input | undefined
  /** How long a waiter that was handed the mutex has to confirm it. Default: 1.5 seconds. */
  readonly confirmTimeout?: Duration.Input | undefined
  /** How long one attempt to renew may take before it counts as failed. Default: 1 second. */
  readonly commandTimeout?: Duration.Input | undefined
  /** How long a closing scope or layer waits for releases. Default: 2 seconds. */
  readonly releaseTimeout?: Duration.Input | undefined
  /** The name of this process in the backend. Default: `<pid>@<host>`. */
  readonly processName?: string | undefined
  /**
   * Called for work that is still running after the server's lease has ended. Protected work is interrupted at the
   * local deadline, a safety margin before that end. Uninterruptible work, and finalizers that take longer than the
   * margin, overlap with the next owner. Nothing inside a process can stop them, but the process itself can exit.
   *
   * It runs once for each such lease: at the end of the server's lease if the lease expired, otherwise a margin after
   * the loss was noticed. It does not run after the layer has closed. It has the services of the layer. If it crashes,
   * that is logged. Default: log an error.
   */
  readonly onOverrun?: ((loss: LeaseLost) => Effect.Effect<void, never, R>) | undefined
  /**
   * When owners renew. Default: `MutexSchedule.guard`, which renews `ttl` after a renewal, and soon after an attempt
   * that failed.
   */
  readonly guard?: MutexSchedule | undefined
  /**
   * Whether `MutexMetrics` carry the name of the mutex as a label. Each name creates time series that stay for the life
   * of the process. Default: false.
   */
  readonly metricsByMutex?: boolean | undefined
  /** How long one turn may serve fiber after fiber of this layer, see `LeaseOptions`. Default: 10 milliseconds. */
  readonly localTurn?: Duration.Input | undefined
}

/**
 * Provides `Mutex` using the current `MutexStore`.
 *
 * **Details**
 *
 * Invalid options are refused when the layer is built. Closing the layer interrupts protected work and waits for it,
 * for at most `releaseTimeout`. Then it waits for all releases, for at most as long again.
 *
 * **Example** (Mutexes in the memory of this process)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 *
 * const MutexLive = Mutex.layerMemory({ ttl: "5 seconds" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  options?: Options<R>
): Layer.Layer<Mutex, InvalidConfig | BackendError, MutexStore | HookServices<R>> => Layer.effect(Mutex, make(options))

/**
 * Provides `Mutex` in the memory of this process.
 *
 * **When to use**
 *
 * Use it for tests, and for applications of one process.
 *
 * **Gotchas**
 *
 * Each build of this layer has its own mutexes. Share one build among the contenders that must exclude each other.
 *
 * **Example** (An application of one process)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * // The second runs when the first is done: they share the layer
 * const work = Effect.log("working").pipe(Mutex.withLock("report"))
 * const program = Effect.all([work, work], { concurrency: 2 }).pipe(Effect.provide(Mutex.layerMemory()))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory = <R = never>(
  options?: Options<R>
): Layer.Layer<Mutex, InvalidConfig | BackendError, HookServices<R>> => Layer.provide(layer(options), storeInMemory)

/**
 * Like `layer`, with options from `Config`.
 *
 * **Example** (Options whose names the application chooses)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Config, Layer } from "effect"
 *
 * const MutexLive = Mutex.layerConfig({
 *   ttl: Config.Duration("LOCK_TTL"),
 *   transition: Config.succeed("2 seconds")
 * }).pipe(Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Mutex, InvalidConfig | BackendError | Config.ConfigError, MutexStore> =>
  Layer.effect(Mutex, Effect.flatMap(Config.unwrap(options), make))

/**
 * Waits for the mutex, first come, first served, and holds it while the scope is open.
 *
 * **When to use**
 *
 * Use it for a lease that spans several steps. Use `withLock` for work that must stop when the lease is lost.
 *
 * **Details**
 *
 * The lease is renewed in the background, and released when the scope closes. A free mutex takes one round trip. An
 * interruption or a timeout ends the wait at once; the place in the queue is released in the background.
 *
 * Fails with `AcquireTimeout` if `timeout` passes first. Fails with `AlreadyHeld` inside a `withLock` of the same name,
 * which would wait for itself. Fails with `BackendError` if the backend refuses, or is unreachable until `timeout` or
 * for longer than a lease lasts. An `acquire` that waits for its own process is logged after five seconds, once for
 * each mutex.
 *
 * **Gotchas**
 *
 * A loss does not interrupt the holder. While the connection is healthy, closing the scope does not wait for the
 * backend's reply: later requests of this process are sent after the release, but another process may still see the
 * lock for a moment.
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
 * @category combinators
 * @since 0.1.0
 */
export const acquire = <R = never>(
  name: string,
  options?: AcquireOptions<R>
): Effect.Effect<Lease, AcquireError, Mutex | Scope.Scope | HookServices<R>> =>
  Mutex.use((mutex) => mutex.acquire(name, options))

/**
 * Waits for several mutexes and holds them all, or none.
 *
 * **Details**
 *
 * They are acquired one by one in the order of their names, so two callers cannot deadlock. A repeated name counts
 * once, and an empty list fails with `InvalidConfig`. `timeout` covers all of them together, and a timeout of zero
 * sends one request for each. Works on Redis Cluster, with one request per mutex. Fails with `LeaseLost` as soon as one
 * of them is lost before all are held.
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
 * @category combinators
 * @since 0.1.0
 */
export const acquireAll = <R = never>(
  names: ReadonlyArray<string>,
  options?: AcquireOptions<R>
): Effect.Effect<LeaseGroup, AcquireError | LeaseLost, Mutex | Scope.Scope | HookServices<R>> =>
  Mutex.use((mutex) => mutex.acquireAll(names, options))

/**
 * Tries to acquire the mutex in one round trip, without waiting.
 *
 * **Details**
 *
 * Returns `None` if the mutex is owned or waited for, even if a `withLock` around the call owns it.
 *
 * **Example** (Skipping the work)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.acquireIfAvailable("cache-warm-up")
 *   if (Option.isSome(lease)) yield* Effect.log("warming up")
 * }))
 * // => warming up
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const acquireIfAvailable = <R = never>(
  name: string,
  options?: LeaseOptions<R>
): Effect.Effect<Option.Option<Lease>, RequestError, Mutex | Scope.Scope | HookServices<R>> =>
  Mutex.use((mutex) => mutex.acquireIfAvailable(name, options))

/**
 * Runs a body while holding the mutex, and interrupts it when the lease is lost.
 *
 * **Details**
 *
 * The interruption comes no later than the local deadline, and the result is `LeaseLost`. The mutex is released after
 * the body and its finalizers have ended. A body that is a function gets the lease, with its fencing token. Other
 * failures are those of `acquire`.
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
 * @category combinators
 * @since 0.1.0
 */
export const withLock = <RA = never>(name: string, options?: AcquireOptions<RA>) =>
<A, E, R>(
  body: Body<A, E, R>
): Effect.Effect<A, E | AcquireError | LeaseLost, R | HookServices<RA> | Mutex> =>
  Mutex.use((mutex) => mutex.withLock(name, options)(body))

/**
 * Like `withLock`, but returns `None` without running the body if the mutex is owned or waited for.
 *
 * **Example** (A clean-up that only one node does)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.log("cleaning up").pipe(
 *   Mutex.withLockIfAvailable("clean-up"),
 *   Effect.flatMap((result) => Option.isNone(result) ? Effect.log("somebody else is at it") : Effect.void)
 * )
 * // => cleaning up
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const withLockIfAvailable = <RA = never>(name: string, options?: LeaseOptions<RA>) =>
<A, E, R>(
  body: Body<A, E, R>
): Effect.Effect<Option.Option<A>, E | RequestError | LeaseLost, R | HookServices<RA> | Mutex> =>
  Mutex.use((mutex) => mutex.withLockIfAvailable(name, options)(body))

type Failure<O> =
  | StoreError
  | (O extends { readonly ttl: {} } | { readonly transition: {} } | { readonly isAlive: {} } ? InvalidConfig : never)

/** The services that the hooks of these options need. */
type Needs<O> = O extends { readonly isAlive: Effect.Effect<boolean, unknown, infer R> } ? R : never

type WaitFailure<O> = Failure<O> | AlreadyHeld | (O extends { readonly timeout: {} } ? AcquireTimeout : never)

/**
 * A mutex whose name and options are validated once.
 *
 * **Details**
 *
 * Errors that cannot happen are not in the types: no `InvalidName`, `AcquireTimeout` only with a `timeout`, and
 * `InvalidConfig` only with a `ttl`, `transition` or `isAlive`, which may not fit the layer's other timeouts.
 *
 * @see {@link named}
 * @category models
 * @since 0.1.0
 */
export interface NamedMutex<O extends AcquireOptions<unknown>> {
  readonly name: MutexName
  /** See `acquire`. */
  readonly acquire: Effect.Effect<Lease, WaitFailure<O>, Mutex | Scope.Scope | Needs<O>>
  /** See `acquireIfAvailable`. */
  readonly acquireIfAvailable: Effect.Effect<Option.Option<Lease>, Failure<O>, Mutex | Scope.Scope | Needs<O>>
  /** See `withLock`. */
  readonly withLock: <A, E, R>(
    body: Body<A, E, R>
  ) => Effect.Effect<A, E | WaitFailure<O> | LeaseLost, R | Mutex | Needs<O>>
  /** See `withLockIfAvailable`. */
  readonly withLockIfAvailable: <A, E, R>(
    body: Body<A, E, R>
  ) => Effect.Effect<Option.Option<A>, E | Failure<O> | LeaseLost, R | Mutex | Needs<O>>
  /** See `owner`. */
  readonly owner: Effect.Effect<Ownership, StoreError, Mutex>
  /** See `inspect`. */
  readonly inspect: Effect.Effect<MutexState, StoreError, Mutex>
  /** See `forceRelease`. */
  readonly forceRelease: Effect.Effect<Ownership, StoreError, Mutex>
}

/**
 * Names a mutex once, with the options of its leases.
 *
 * **When to use**
 *
 * Use it at the top of a module, for a mutex that several operations share. Use the operations of this module for names
 * that are known at run time only.
 *
 * **Gotchas**
 *
 * Throws `InvalidName` or `InvalidConfig` if the name or an option can never work, so that a mistake shows when the
 * module loads.
 *
 * **Example** (One name, one place for the options)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const Invoices = Mutex.named("invoices", { maxHold: "10 minutes" })
 *
 * const close = Effect.log("closing").pipe(Invoices.withLock)
 *
 * const write = Invoices.withLock((lease) => Effect.log(`writing with token ${lease.token}`))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const named = <const O extends AcquireOptions<unknown> = {}>(
  name: string,
  options?: O & { readonly [Unknown in Exclude<keyof O, keyof AcquireOptions>]: never }
): NamedMutex<O> => {
  const mutex = checkName(name, options)
  return {
    name: mutex,
    acquire: acquire(mutex, options),
    acquireIfAvailable: acquireIfAvailable(mutex, options),
    withLock: withLock(mutex, options),
    withLockIfAvailable: withLockIfAvailable(mutex, options),
    owner: owner(mutex),
    inspect: inspect(mutex),
    forceRelease: forceRelease(mutex)
  } as NamedMutex<O>
}

/**
 * Contends for the mutex while the scope is open, and owns it whenever it can.
 *
 * **When to use**
 *
 * Use it for work that one node does for a long time. `Contender.Service` does the same in a Layer.
 *
 * **Details**
 *
 * The contender survives outages of the backend.
 *
 * **Example** (A job that runs where this process leads)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const contender = yield* Mutex.contend("cleaner")
 *   return yield* contender.whileLeader(Effect.forever(Effect.delay(Effect.log("cleaning"), "1 minute")))
 * }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const contend = <R = never>(
  name: string,
  options?: ContenderOptions<R>
): Effect.Effect<Contender, InvalidName | InvalidConfig, Mutex | Scope.Scope | HookServices<R>> =>
  Mutex.use(({ parts, wrapContender }) => {
    const contending = contention.contend(parts, name, options as ContenderOptions<unknown>)
    return wrapContender === undefined ? contending : Effect.map(contending, wrapContender)
  }) as Effect.Effect<Contender, InvalidName | InvalidConfig, Mutex | Scope.Scope | HookServices<R>>

/**
 * Reads who owns the mutex at this instant, including Simba contenders.
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
 * @category getters
 * @since 0.1.0
 */
export const owner = (name: string): Effect.Effect<Ownership, StoreError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.owner(name))

/**
 * Reads the owner, the time left, the token and the queue of a mutex.
 *
 * **Example** (Who waits for longer than a minute)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const stuck = Effect.map(
 *   Mutex.inspect("invoices", { limit: 10 }),
 *   ({ waiters }) => waiters.filter(({ waited }) => Duration.toMinutes(waited) > 1).map(({ id }) => id)
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const inspect = (
  name: string,
  options?: {
    /** The maximum number of waiters to name. Default: 100. */
    readonly limit?: number | undefined
  }
): Effect.Effect<MutexState, StoreError | InvalidName, Mutex> => Mutex.use((mutex) => mutex.inspect(name, options))

/**
 * Lists the names of all mutexes that are owned or waited for, in no order.
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
 * @category getters
 * @since 0.1.0
 */
export const list: Stream.Stream<string, StoreError, Mutex> = Stream.unwrap(Effect.map(Mutex, (mutex) => mutex.list))

/**
 * Follows the ownership of a mutex without contending, including Simba contenders.
 *
 * **Details**
 *
 * Starts with the current owner, if there is one. A slow reader blocks nobody: it gets a `Gap` if it missed something,
 * and always the latest event. The stream fails with `BackendError` when its layer closes, as waiters do.
 *
 * **Example** (An alarm when an owner dies)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Stream } from "effect"
 *
 * const alarms = Mutex.events("jobs", { pollInterval: "5 seconds" }).pipe(
 *   Stream.filter((event) => event._tag === "Expired"),
 *   Stream.runForEach((event) => Effect.logError(`${event.owner} did not renew ${event.mutex}`))
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const events = (
  name: string,
  options?: EventsOptions
): Stream.Stream<OwnerEvent, StoreError | InvalidName | InvalidConfig, Mutex> =>
  Stream.unwrap(Effect.map(Mutex, ({ parts }) => ownerWatch.events(parts, name, options)))

/**
 * Takes the mutex from its owner, hands it to the first live waiter with a new fencing token, and returns the previous
 * owner.
 *
 * **When to use**
 *
 * Use it as an operator, to take a mutex from a process that hangs.
 *
 * **Gotchas**
 *
 * The old owner loses its lease with the reason `ForcedRelease`, but its work may continue for a moment. If another
 * contender becomes the owner at the same moment, it keeps the mutex.
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
 * // => it was free
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const forceRelease = (name: string): Effect.Effect<Ownership, StoreError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.forceRelease(name))

/**
 * Options of one lease. An option that cannot work fails the call with `InvalidConfig`.
 *
 * **Example** (An import that must make progress)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Clock, Effect, Ref } from "effect"
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
 * @category options
 * @since 0.1.0
 */
export interface LeaseOptions<R = never> {
  /** How long an owner works before it renews. Default: as for the layer. */
  readonly ttl?: Duration.Input | undefined
  /** Grace after `ttl`, in which the owner may still renew. Default: as for the layer. */
  readonly transition?: Duration.Input | undefined
  /**
   * The longest total duration of the lease, from just before the granting request was sent; at least 1 millisecond.
   * Then the lease is lost (`Expired`), and the mutex is released once protected work has ended. Protects against stuck
   * work and leaked leases. Default: no limit.
   */
  readonly maxHold?: Duration.Input | undefined
  /**
   * Runs before each renewal, and returns whether the holder still makes progress. While it returns `false`, fails, or
   * takes longer than `commandTimeout`, the lease is not renewed and ends at its deadline (`Expired`), at most `ttl`
   * plus `transition` after the last renewal. The probe is retried like a failed renewal. It needs a `transition` that
   * exceeds the safety margin plus twice `commandTimeout`, and has the services of the call that it is passed to.
   * Default: none.
   */
  readonly isAlive?: Effect.Effect<boolean, unknown, R> | undefined
  /**
   * A turn of this layer starts when the backend grants it the mutex. While the turn is younger than this, a release
   * hands the lease to the longest waiting fiber of this layer, without the backend. Then other processes have their
   * turns. Each fiber gets a larger token than the one before. To other processes the owner stays the same, and nothing
   * is published. A release goes through the backend if the lease is due for renewal, if the next fiber wants other
   * periods, or after 99 hand-offs. With 0 each turn serves one fiber: strict order between processes. Default: as for
   * the layer, which is 10 milliseconds.
   */
  readonly localTurn?: Duration.Input | undefined
}

/**
 * Options of an operation that waits for a mutex.
 *
 * @see {@link acquire}
 * @category options
 * @since 0.1.0
 */
export interface AcquireOptions<R = never> extends LeaseOptions<R> {
  /**
   * How long to wait for the mutex, zero or more. Zero sends one request that never queues, and waits for its reply: a
   * free mutex is acquired, no matter how slow the backend is. Default: forever.
   */
  readonly timeout?: Duration.Input | undefined
}

/**
 * Options of `events`.
 *
 * @see {@link events}
 * @category options
 * @since 0.1.0
 */
export interface EventsOptions {
  /**
   * The longest time between two polls while nothing is published. Expiries, renewals, and releases without a waiter
   * are not published, so they are reported at most this late, and several renewals between two polls are one event.
   * The observer also polls 100 milliseconds before the end of a lease: `Expired` means that it was not renewed by
   * then. Default: 1 second.
   */
  readonly pollInterval?: Duration.Input | undefined
  /** Whether renewals are events too. Default: false. */
  readonly renewals?: boolean | undefined
}
