/**
 * Distributed mutexes: one holder at a time among all processes that share a backend.
 *
 * **Example** (Holding a mutex while a scope is open)
 *
 * ```ts
 * import { MemoryMutexStore, Mutex } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const program = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* Mutex.acquire("invoices")
 *   yield* Effect.log(`holding with token ${lease.token}`)
 * }))
 *
 * const MutexLive = Mutex.layer().pipe(Layer.provide(MemoryMutexStore.layer))
 * Effect.runPromise(Effect.provide(program, MutexLive))
 * ```
 *
 * @since 0.1.0
 */
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import type { AcquireTimeout, BackendError, InvalidName, LeaseLost, ProtocolError } from "./Errors.ts"
import { InvalidConfig } from "./Errors.ts"
import * as contention from "./internal/contention.ts"
import type { Holding } from "./internal/holding.ts"
import { LeaseImpl, protect } from "./internal/lease.ts"
import * as leasesOf from "./internal/leases.ts"
import * as wireId from "./internal/wireId.ts"
import type { Lease } from "./Lease.ts"
import * as MutexConfig from "./MutexConfig.ts"
import { MutexStore } from "./MutexStore.ts"
import { mutexName } from "./Names.ts"
import type { Ownership } from "./Ownership.ts"

/**
 * Overrides for one lease. `ttl` and `transition` default to those of the layer.
 *
 * @category models
 * @since 0.1.0
 */
export interface LeaseOptions {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
}

/**
 * `timeout`: how long to wait for the mutex; without it, as long as it takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface AcquireOptions extends LeaseOptions {
  readonly timeout?: Duration.Input | undefined
}

/**
 * Why a mutex could not be asked for.
 *
 * @category errors
 * @since 0.1.0
 */
export type TryAcquireError = BackendError | ProtocolError | InvalidName | InvalidConfig

/**
 * Why a mutex could not be had.
 *
 * @category errors
 * @since 0.1.0
 */
export type AcquireError = TryAcquireError | AcquireTimeout

/**
 * What a lock protects: an effect, or a function that is given the lease.
 *
 * @category models
 * @since 0.1.0
 */
export type Body<A, E, R> = Effect.Effect<A, E, R> | ((lease: Lease) => Effect.Effect<A, E, R>)

/**
 * The operations of this module, on one backend.
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
  readonly owner: (name: string) => Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName>
}>()("@effect-simba/core/Mutex") {}

const make = Effect.fnUntraced(function*(options: MutexConfig.Options = {}) {
  const store = yield* MutexStore
  const config = yield* MutexConfig.make(options)
  const leases = yield* leasesOf.make(store, config)
  const nextId = yield* wireId.makeGenerator

  const attempt = (name: string, options: LeaseOptions = {}) => {
    const { confirm, contender, transition, ttl } = config
    const named = Effect.map(mutexName(name), (mutex) => ({ mutex, id: nextId(contender), ttl, transition, confirm }))
    if (options.ttl === undefined && options.transition === undefined) return named
    return Effect.flatMap(named, (attempt) =>
      Effect.map(
        MutexConfig.checkPeriods({
          commandTimeout: config.commandTimeout,
          ttl: options.ttl ?? ttl,
          transition: options.transition ?? transition
        }),
        (periods) => ({ ...attempt, ...periods })
      ))
  }

  const timeoutOf = (input: Duration.Input | undefined) => {
    if (input === undefined) return Effect.undefined
    const timeout = Duration.fromInput(input)
    return Option.isNone(timeout)
      ? Effect.fail(new InvalidConfig({ option: "timeout", problem: `${JSON.stringify(input)} is not a duration` }))
      : Effect.succeed(Duration.isFinite(timeout.value) ? timeout.value : undefined)
  }

  type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

  const obtain = (name: string, options: AcquireOptions | undefined, restore: Restore) =>
    Effect.flatMap(
      attempt(name, options),
      (attempt) =>
        Effect.flatMap(timeoutOf(options?.timeout), (timeout) =>
          contention.acquire(store, leases, attempt, timeout, restore))
    )

  const obtainIfAvailable = (name: string, options: LeaseOptions | undefined, restore: Restore) =>
    Effect.flatMap(attempt(name, options), (attempt) => contention.tryAcquire(store, leases, attempt, restore))

  const inScope = (holding: Holding) =>
    Effect.flatMap(
      Effect.scope,
      (scope) => Effect.as(Scope.addFinalizer(scope, leases.release(holding)), new LeaseImpl(leases, holding))
    )

  const guarded = <A, E, R>(holding: Holding, body: Body<A, E, R>, restore: Restore) =>
    Effect.ensuring(
      restore(protect(
        leases,
        holding,
        Effect.isEffect(body) ? body : Effect.suspend(() => body(new LeaseImpl(leases, holding)))
      )),
      leases.release(holding)
    )

  return Mutex.of({
    acquire: (name, options) =>
      Effect.uninterruptibleMask((restore) => Effect.flatMap(obtain(name, options, restore), inScope)),
    tryAcquire: (name, options) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          obtainIfAvailable(name, options, restore),
          Option.match({
            onNone: () => Effect.succeedNone,
            onSome: (holding) => Effect.asSome(inScope(holding))
          })
        )
      ),
    withLock: (name, options) => (body) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(obtain(name, options, restore), (holding) => guarded(holding, body, restore))
      ),
    withLockIfAvailable: (name, options) => (body) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          obtainIfAvailable(name, options, restore),
          Option.match({
            onNone: () => Effect.succeedNone,
            onSome: (holding) => Effect.asSome(guarded(holding, body, restore))
          })
        )
      ),
    owner: (name) => Effect.flatMap(mutexName(name), store.owner)
  })
})

/**
 * Mutexes on whatever store is provided. Invalid options are refused when the layer is built. Closing the layer waits,
 * for at most `releaseTimeout`, until what was given back has been given back.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: MutexConfig.Options): Layer.Layer<Mutex, InvalidConfig, MutexStore> =>
  Layer.effect(Mutex, make(options))

/**
 * Like `layer`, with `ttl` and `transition` from `SIMBA_REDIS_TTL` and `SIMBA_REDIS_TRANSITION`. Options that are given
 * here win over the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options?: MutexConfig.Options
): Layer.Layer<Mutex, InvalidConfig | Config.ConfigError, MutexStore> =>
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
 * The lease does not interrupt its holder when it is lost: see `Lease`, or use `withLock`.
 *
 * Fails with `AcquireTimeout` if `timeout` passes first; with `BackendError` if the backend refuses, or is out of reach
 * for longer than a lease lasts.
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
 * Asks once, in one round trip, and never waits: `None` if somebody else owns the mutex or waits for it.
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
 * Like `withLock`, but asks once and never waits: `None`, without running the body, if somebody else owns the mutex.
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
 * @category operations
 * @since 0.1.0
 */
export const owner = (name: string): Effect.Effect<Ownership, BackendError | ProtocolError | InvalidName, Mutex> =>
  Mutex.use((mutex) => mutex.owner(name))
