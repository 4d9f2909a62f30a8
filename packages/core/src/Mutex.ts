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
 * // runMain closes scopes on SIGINT and SIGTERM; Effect.runPromise does not
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
 * The operations of this module, bound to one backend.
 *
 * **Example** (A service that depends on Mutex)
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
  /** Internals used by `contend`, `events` and `Jobs`. A service that wraps this one must pass them through. */
  readonly parts: LayerParts
  /** Applied to each contender that `contend` creates. For services that wrap this one. */
  readonly wrapContender?: (contender: Contender) => Contender
}>()("@effect-simba/core/Mutex") {}

/**
 * Options for `Mutex.layer`.
 *
 * **Example** (Short leases, and exiting the process on an overrun)
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
 *       Effect.logFatal(`work is still running: ${loss.message}`),
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
  /**
   * How long an owner works before it renews its lease. A renewal may be sent up to an eighth earlier to share a batch
   * with others, and even earlier in a busy process. Default: 10 seconds.
   */
  readonly ttl?: Duration.Input | undefined
  /**
   * Grace period after `ttl`, during which the owner may still renew and nobody else can take over. Failed renewals are
   * retried within it. It must exceed the safety margin (5% of `ttl` plus `transition`, at least 100 milliseconds) plus
   * `commandTimeout`. Default: 6 seconds.
   */
  readonly transition?: Duration.Input | undefined
  /** How long a waiter has to confirm that it received the mutex. Default: 1.5 seconds. */
  readonly confirmTimeout?: Duration.Input | undefined
  /** How long an attempt to renew may take before it counts as failed. Default: 1 second. */
  readonly commandTimeout?: Duration.Input | undefined
  /** How long a closing scope or layer waits for its releases. Default: 2 seconds. */
  readonly releaseTimeout?: Duration.Input | undefined
  /** This process's name in the backend. Default: `<pid>@<host>`. */
  readonly processName?: string | undefined
  /**
   * Called when protected work is still running after its lease has ended on the server. The work was interrupted when
   * the loss was noticed, at the local deadline at the latest, but uninterruptible work and slow finalizers may keep
   * running and overlap with the next owner. Nothing inside the process can stop them, but the process can exit.
   *
   * Runs once for each such lease: one safety margin after the loss was noticed, or when the server's lease ends if
   * that is later. Runs with the layer's services, and never after the layer has closed. A crash is logged. Default:
   * log an error.
   */
  readonly onOverrun?: ((loss: LeaseLost) => Effect.Effect<void, never, R>) | undefined
  /**
   * Decides when owners renew. The default, `MutexSchedule.guard`, waits `ttl` after each renewal and retries failed
   * attempts with backoff.
   */
  readonly guard?: MutexSchedule | undefined
  /**
   * Whether `MutexMetrics` are labelled with the mutex's name. Each name adds time series that last as long as the
   * process. Default: false.
   */
  readonly metricsByMutex?: boolean | undefined
  /** How long this layer's fibers may pass a mutex on to one another. See `LeaseOptions`. Default: 10 milliseconds. */
  readonly localTurn?: Duration.Input | undefined
}

/**
 * Provides `Mutex` using the current `MutexStore`.
 *
 * **Details**
 *
 * Building the layer fails if an option is invalid. Closing it interrupts protected work and waits up to
 * `releaseTimeout` for that work to end, then up to `releaseTimeout` for the releases.
 *
 * **Example** (In-memory mutexes with a shorter ttl)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import * as MutexStore from "@effect-simba/core/MutexStore"
 * import { Layer } from "effect"
 *
 * const MutexLive = Mutex.layer({ ttl: "5 seconds" }).pipe(Layer.provide(MutexStore.layerMemory))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  options?: Options<R>
): Layer.Layer<Mutex, InvalidConfig | BackendError, MutexStore | HookServices<R>> => Layer.effect(Mutex, make(options))

/**
 * Provides `Mutex` with an in-memory store, for a single process.
 *
 * **When to use**
 *
 * Use it in tests and in single-process applications.
 *
 * **Gotchas**
 *
 * Each build of this layer has separate mutexes. Contenders that must exclude each other have to share one build.
 *
 * **Example** (A single-process application)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * // Both share the layer, so they run one after another
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
 * Like `layer`, but reads the options from `Config`.
 *
 * **Example** (Reading the ttl from the environment)
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
 * Waits for the mutex, first come, first served, and holds it until the scope closes.
 *
 * **When to use**
 *
 * Use it for a lease that spans several steps. Use `withLock` for work that must stop when the lease is lost.
 *
 * **Details**
 *
 * The lease is renewed in the background and released when the scope closes. Acquiring a free mutex takes one round
 * trip. An interruption or a timeout ends the wait immediately; the place in the queue is released in the background.
 *
 * Fails with `AcquireTimeout` if `timeout` elapses first, and with `AlreadyHeld` inside a `withLock` for the same
 * mutex, because the call would wait for itself. Fails with `BackendError` if the backend refuses the request, or if it
 * stays unreachable until `timeout` or for longer than a lease lasts. After waiting five seconds for a lease held by
 * its own process, it logs a warning about a possible self-deadlock, once per mutex.
 *
 * **Gotchas**
 *
 * Losing the lease does not interrupt the holder. While the connection is healthy, closing the scope sends the release
 * without waiting for the reply. Later requests from this process are sent after the release, but another process may
 * still find the mutex held for a moment.
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
 * Acquires several mutexes, all or none, and holds them until the scope closes.
 *
 * **Details**
 *
 * The mutexes are acquired one at a time, in the order of their names, so two callers cannot deadlock. Duplicate names
 * count once, and an empty list fails with `InvalidConfig`. `timeout` covers the whole operation; a timeout of zero
 * tries each mutex once. Each mutex needs its own request, so this also works on Redis Cluster. Fails with `LeaseLost`
 * if a lease is lost before all mutexes are held.
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
 * Tries to acquire the mutex without waiting, in at most one round trip.
 *
 * **Details**
 *
 * Returns `None` if the mutex is held, even by an enclosing `withLock`, or has waiters.
 *
 * **Example** (Skipping work while another process does it)
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
 * The body is interrupted no later than the local deadline, and the effect then fails with `LeaseLost`. The mutex is
 * released after the body and its finalizers have ended. If the body is a function, it receives the lease, which
 * contains the fencing token. `withLock` can also fail with any of `acquire`'s errors.
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
 * Like `withLock`, but returns `None` without running the body if the mutex is held or has waiters.
 *
 * **Example** (A cleanup that runs on one node)
 *
 * ```ts
 * import { Mutex } from "@effect-simba/core"
 * import { Effect, Option } from "effect"
 *
 * const program = Effect.log("cleaning up").pipe(
 *   Mutex.withLockIfAvailable("cleanup"),
 *   Effect.flatMap((result) => Option.isNone(result) ? Effect.log("another node is cleaning up") : Effect.void)
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

/** `E` if the options `O` may contain one of `Names`. */
type IfSet<O, Names, E> = O extends unknown ? Names extends keyof O ? O[Names] extends undefined ? never : E : never
  : never

type Failure<O> = StoreError | IfSet<O, "ttl" | "transition" | "isAlive", InvalidConfig>

/** The services that the hooks in the options `O` require. */
type Needs<O> = O extends { readonly isAlive?: infer Hook } ? Effect.Services<Hook> : never

type WaitFailure<O> = Failure<O> | AlreadyHeld | IfSet<O, "timeout", AcquireTimeout>

/**
 * A mutex whose name and options are validated once.
 *
 * **Details**
 *
 * The types omit errors that cannot occur. There is no `InvalidName`. `AcquireTimeout` is present only with a
 * `timeout`, and `InvalidConfig` only with a `ttl`, `transition` or `isAlive`, which may conflict with the layer's
 * timeouts.
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
 * Defines a mutex by its name and its lease options.
 *
 * **When to use**
 *
 * Use it at module level, for a mutex that several operations share. If the name is known only at run time, use the
 * operations of this module.
 *
 * **Gotchas**
 *
 * Throws `InvalidName` or `InvalidConfig` if the name or an option can never be valid, so mistakes surface when the
 * module loads.
 *
 * **Example** (Sharing a name and its options)
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
 * Creates a contender, which contends for the mutex until the scope closes and leads while it holds the mutex.
 *
 * **When to use**
 *
 * Use it for long-running work that only one node should do. `Contender.Service` provides a contender as a Layer.
 *
 * **Details**
 *
 * The contender keeps trying during backend outages.
 *
 * **Example** (Work that runs while this process leads)
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
 * Returns the current owner of the mutex, which may be a Simba contender.
 *
 * **Example** (Finding the owner of a stuck job)
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
 * Returns a mutex's owner, remaining time, fencing token and queue.
 *
 * **Example** (Finding waiters that have waited for over a minute)
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
    /** Maximum number of waiters to return. Default: 100. */
    readonly limit?: number | undefined
  }
): Effect.Effect<MutexState, StoreError | InvalidName, Mutex> => Mutex.use((mutex) => mutex.inspect(name, options))

/**
 * Lists the names of all mutexes that are held or have waiters, in no particular order.
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
 * Follows the ownership of a mutex without contending for it. Reports Simba contenders too.
 *
 * **Details**
 *
 * Starts with the current owner, if there is one. A slow reader does not block anyone. If it falls behind, a `Gap`
 * replaces the oldest events, but it always receives the latest one. The stream fails with `BackendError` when its
 * layer closes.
 *
 * **Example** (Alerting when an owner dies)
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
 * Use it to take a mutex from a hung process.
 *
 * **Gotchas**
 *
 * The old owner loses its lease with the reason `ForcedRelease`, but its work may keep running for a moment. If
 * ownership changes at the same time, the new owner keeps the mutex.
 *
 * **Example** (Taking a mutex from a hung process)
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
 * Options for a single lease. A call with an invalid option fails with `InvalidConfig`.
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
  /** How long the owner works before it renews. Default: the layer's `ttl`. */
  readonly ttl?: Duration.Input | undefined
  /** Grace period after `ttl`, during which the owner may still renew. Default: the layer's `transition`. */
  readonly transition?: Duration.Input | undefined
  /**
   * Maximum total duration of the lease; at least 1 millisecond. Measured from the grant if a message delivered it,
   * otherwise from just before the request was sent. When it is reached, the lease is lost (`Expired`), and the mutex
   * is released once protected work has ended. Protects against stuck work and leaked leases. Default: no limit.
   */
  readonly maxHold?: Duration.Input | undefined
  /**
   * Runs before each renewal and returns whether the holder is still making progress. If it returns `false`, fails, or
   * takes longer than `commandTimeout`, the lease is not renewed, and the probe is retried like a failed renewal. If no
   * probe succeeds, the lease ends at its deadline (`Expired`), at most `ttl` plus `transition` after the last renewal.
   * Requires a `transition` that exceeds the safety margin plus twice `commandTimeout`. Runs with the services of the
   * call it is passed to. Default: none.
   */
  readonly isAlive?: Effect.Effect<boolean, unknown, R> | undefined
  /**
   * Maximum duration of a turn, which starts when the backend grants the mutex to this layer. Until it ends, a release
   * hands the lease to the layer's longest-waiting fiber without a request to the backend. After that, other processes
   * get their turns. Each fiber receives a larger token than the one before. Other processes see the same owner
   * throughout, and nothing is published. A release goes through the backend if the lease is due for renewal, if the
   * next fiber wants a different `ttl` or `transition`, or after 99 hand-offs. With 0, each grant serves one fiber,
   * which keeps strict order between processes. Default: the layer's `localTurn`, 10 milliseconds unless set.
   */
  readonly localTurn?: Duration.Input | undefined
}

/**
 * Options for the operations that wait for a mutex.
 *
 * @see {@link acquire}
 * @category options
 * @since 0.1.0
 */
export interface AcquireOptions<R = never> extends LeaseOptions<R> {
  /**
   * How long to wait for the mutex; must not be negative. Zero tries once, without queueing, and waits for the reply,
   * so a free mutex is acquired no matter how slow the backend is. Default: forever.
   */
  readonly timeout?: Duration.Input | undefined
}

/**
 * Options for `events`.
 *
 * @see {@link events}
 * @category options
 * @since 0.1.0
 */
export interface EventsOptions {
  /**
   * Maximum time between two polls while nothing is published. Expiries, renewals, and releases without a waiter are
   * not published, so they may be reported this late. Several renewals between two polls become one event. The observer
   * also polls 100 milliseconds before a lease ends: `Expired` means that the lease was not renewed by then. Default: 1
   * second.
   */
  readonly pollInterval?: Duration.Input | undefined
  /** Whether to report renewals too. Default: false. */
  readonly renewals?: boolean | undefined
}
