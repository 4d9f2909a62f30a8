/** Implements the operations of `Mutex` on a store. `Mutex.layer` calls `make`. */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { Body } from "../../Lease.ts"
import type { AcquireOptions, LeaseOptions, Mutex, Options } from "../../Mutex.ts"
import * as MutexConfig from "../../MutexConfig.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import { MutexStore } from "../../MutexStore.ts"
import { type AcquireError, AcquireTimeout, InvalidConfig, type InvalidName } from "../../SimbaError.ts"
import { protect } from "../lease/leaseHandle.ts"
import * as log from "../log.ts"
import { checked, mutexProblem } from "../nameRules.ts"
import { refuse } from "../optionChecks.ts"
import { randomKey } from "../processIdentity.ts"
import * as tracing from "../tracing.ts"
import { acquire, acquireIfAvailable, type Restore } from "./acquire.ts"
import type { Attempt } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import * as heldLeases from "./heldLeases.ts"
import type { LayerParts } from "./layerParts.ts"
import { LeaseGroupImpl, LeaseImpl } from "./leaseHandle.ts"
import * as leaseOptions from "./leaseOptions.ts"
import * as localQueues from "./localQueues.ts"
import * as nestedLocks from "./nestedLocks.ts"

const mutexName = checked<MutexName>("mutex", mutexProblem)

export const make = Effect.fnUntraced(function*(options: Options<unknown> = {}) {
  const store = yield* MutexStore
  const config = yield* MutexConfig.make(options)
  if (Duration.toMillis(config.ttl) < 100) {
    yield* log.warning(
      `A ttl of ${
        Duration.format(config.ttl)
      } is very short: each lease is renewed that often. A number is milliseconds; ` +
        `"10 seconds" is ten seconds`
    )
  }
  const { confirmTimeout } = config
  const leases = yield* heldLeases.make(store, config, options.onOverrun)
  const key = yield* randomKey
  let counter = 0
  // Concatenated once, because the parts would take 64 bytes more per lease
  const suffix = `-${key}:${config.processName}`
  const nextId = () => (++counter + suffix) as LeaseId
  const services = yield* Effect.context<never>()
  const random = Context.get(services, Random.Random)
  const usual = leaseOptions.settingsOf(config)
  const context = {
    store,
    inbox: yield* store.inbox(key, leases.suspect),
    confirmTimeout,
    lease: usual.lease,
    ...leases,
    fork: Effect.runForkWith(services),
    random: () => random.nextDoubleUnsafe()
  }
  const queues = yield* localQueues.make(context, leases, nextId)
  const attempt = (
    name: string,
    options: LeaseOptions<unknown> | undefined
  ): Effect.Effect<Attempt, InvalidName | InvalidConfig> =>
    Effect.flatMap(
      mutexName(name),
      (mutex) =>
        Effect.map(leaseOptions.check(config, usual, options), (settings) => ({ mutex, id: nextId(), settings }))
    )

  const obtain = (
    name: string,
    options: AcquireOptions<unknown> | undefined,
    restore: Restore
  ): Effect.Effect<HeldLease, AcquireError> =>
    Effect.withFiber<HeldLease, AcquireError>((fiber) => {
      const held = nestedLocks.find(fiber, leases, name)
      if (options === undefined && mutexProblem(name) === undefined) {
        const plain = { mutex: name as MutexName, id: nextId(), settings: usual }
        return held === undefined ? acquire(queues, plain, undefined, restore) : Effect.fail(held)
      }
      return Effect.gen(function*() {
        const wanted = yield* attempt(name, options)
        if (held !== undefined) return yield* held
        return yield* acquire(queues, wanted, yield* leaseOptions.checkTimeout(options?.timeout), restore)
      })
    })

  /**
   * Wraps `restore`: a wait then fails if one of the leases is lost before `until`, in monotonic milliseconds. At
   * `until`, the wait ends anyway.
   */
  const whileHeld = (obtained: ReadonlyArray<HeldLease>, until: number, restore: Restore): Restore => {
    if (obtained.length === 0) return restore
    const losses = obtained.map((lease) => new LeaseImpl(leases, lease).lost)
    const lost = Effect.flatMap(
      Effect.raceAllFirst(losses),
      (loss) => leases.now().monotonic < until ? Effect.fail(loss) : Effect.never
    )
    // The type of `restore` only allows the failures of a single acquire; `obtainAll` may also fail with `LeaseLost`
    return (effect) => restore(Effect.raceFirst(effect, lost as Effect.Effect<never>))
  }

  /** Acquires all or none: if one lease cannot be acquired, the others are released in the background. */
  const obtainAll = (names: ReadonlyArray<string>, options: AcquireOptions<unknown> | undefined, restore: Restore) =>
    Effect.suspend(() => {
      const obtained: Array<HeldLease> = []
      const obtaining = Effect.gen(function*() {
        if (!Array.isArray(names) || names.length === 0) {
          return yield* new InvalidConfig({ option: "names", problem: "the list is empty" })
        }
        const timeout = yield* leaseOptions.checkTimeout(options?.timeout)
        const end = timeout === undefined ? Infinity : leases.now().monotonic + Duration.toMillis(timeout)
        const isOneTry = timeout !== undefined && Duration.isZero(timeout)
        for (const name of [...new Set(names)].sort()) {
          const first = obtained[0]
          const firstEnds = first === undefined ? Infinity : first.since.monotonic + first.options.maxHold
          const left = isOneTry ? 0 : Math.min(end, firstEnds) - leases.now().monotonic
          const limit = firstEnds < end ? Duration.millis(first!.options.maxHold) : timeout
          const next = isOneTry || left > 0
            ? obtain(name, { ...options, timeout: left }, whileHeld(obtained, firstEnds, restore))
            : Effect.fail(new AcquireTimeout({ mutex: name, timeout: limit! }))
          obtained.push(
            yield* next.pipe(Effect.catchTag(
              "AcquireTimeout",
              (error) => Effect.fail(limit === undefined ? error : new AcquireTimeout({ ...error, timeout: limit }))
            ))
          )
        }
        for (const lease of obtained) {
          leases.check(lease, leases.now())
          if (lease.loss !== undefined) return yield* lease.loss
        }
        return obtained
      })
      return Effect.onExit(
        obtaining,
        (exit) => Exit.isSuccess(exit) ? Effect.void : Effect.forEach(obtained, leases.giveUp, { discard: true })
      )
    })

  const obtainIfAvailable = (name: string, options: LeaseOptions<unknown> | undefined, restore: Restore) =>
    Effect.flatMap(attempt(name, options), (attempt) => acquireIfAvailable(queues, attempt, restore))

  const inScope = (lease: HeldLease) =>
    Effect.flatMap(
      Effect.scope,
      (scope) => Effect.as(Scope.addFinalizer(scope, leases.release(lease)), new LeaseImpl(leases, lease))
    )

  const guarded = <A, E, R>(lease: HeldLease, body: Body<A, E, R>, restore: Restore, isTracing: boolean) => {
    const effect = Effect.isEffect(body) ? body : Effect.suspend(() => body(new LeaseImpl(leases, lease)))
    const work = isTracing ? Effect.andThen(tracing.annotate(lease), effect) : effect
    return Effect.ensuring(
      restore(protect(leases, [lease], work, nestedLocks.provide(leases, lease))),
      leases.release(lease)
    )
  }

  const locked = <A, E, R>(
    name: string,
    body: unknown,
    lock: (restore: Restore, isTracing: boolean) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | InvalidConfig, R> =>
    Effect.withFiber<A, E | InvalidConfig, R>((fiber) => {
      if (typeof body !== "function" && !Effect.isEffect(body)) {
        return refuse("body", "it must be an Effect, or a function that returns one")
      }
      return tracing.spanOn(
        fiber,
        "simba.withLock",
        () => ({ attributes: tracing.attributes({ mutex: name }) }),
        Effect.uninterruptibleMask((restore) => lock(restore, tracing.isTracing(fiber)))
      )
    })

  const acquireScoped = (name: string, options: AcquireOptions<unknown> | undefined) =>
    Effect.uninterruptibleMask((restore) => Effect.flatMap(obtain(name, options, restore), inScope))

  const acquireScopedIfAvailable = (name: string, options: LeaseOptions<unknown> | undefined) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(
        obtainIfAvailable(name, options, restore),
        (lease) => lease === undefined ? Effect.succeedNone : Effect.asSome(inScope(lease))
      )
    )

  const parts: LayerParts = {
    ...context,
    scope: yield* Effect.scope,
    services,
    attempt,
    acquire: acquireScoped,
    acquireIfAvailable: acquireScopedIfAvailable,
    held: (mutex) => {
      const lease = queues.held(mutex)
      if (lease !== undefined) leases.check(lease, leases.now())
      return lease
    },
    follow: undefined
  }

  const service: Mutex["Service"] = {
    parts,
    acquire: acquireScoped,
    acquireIfAvailable: acquireScopedIfAvailable,
    withLock: (name, options) => (body) =>
      locked(
        name,
        body,
        (restore, isTracing) =>
          Effect.flatMap(obtain(name, options, restore), (lease) => guarded(lease, body, restore, isTracing))
      ),
    withLockIfAvailable: (name, options) => (body) =>
      locked(name, body, (restore, isTracing) =>
        Effect.flatMap(
          obtainIfAvailable(name, options, restore),
          (lease) => lease === undefined ? Effect.succeedNone : Effect.asSome(guarded(lease, body, restore, isTracing))
        )),
    acquireAll: (names, options) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          obtainAll(names, options, restore),
          (obtained) =>
            Effect.map(
              Effect.forEach(obtained, inScope),
              (all) => new LeaseGroupImpl(all, (effect) => protect(leases, obtained, effect))
            )
        )
      ),
    inspect: (name, { limit = 100 } = {}) =>
      Effect.flatMap(
        mutexName(name),
        (mutex) => store.inspect(mutex, Math.trunc(Math.max(0, Math.min(limit, 1_000_000_000))) || 0)
      ),
    list: store.list,
    forceRelease: (name) => Effect.flatMap(mutexName(name), (mutex) => store.forceRelease(mutex, confirmTimeout)),
    owner: (name) => Effect.flatMap(mutexName(name), store.owner)
  }
  return service
})
