/** The operations of `Mutex`, from a store and a configuration. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Body } from "../../Lease.ts"
import type { AcquireOptions, LeaseOptions, Mutex } from "../../Mutex.ts"
import * as MutexConfig from "../../MutexConfig.ts"
import type { MutexName } from "../../MutexName.ts"
import { MutexStore } from "../../MutexStore.ts"
import { type AcquireError, AcquireTimeout, InvalidConfig, type InvalidName } from "../../SimbaError.ts"
import * as wireId from "../contenderId.ts"
import * as contender from "../leadership/contender.ts"
import { instant } from "../lease/deadline.ts"
import * as leasesOf from "../lease/leaseTable.ts"
import { checked, mutexProblem } from "../names.ts"
import { positive } from "../optionChecks.ts"
import * as tracing from "../tracing.ts"
import * as placesOf from "./acquireQueue.ts"
import type * as contention from "./attempt.ts"
import { type HeldLease, termsOf } from "./heldLease.ts"
import { LeaseGroupImpl } from "./leaseGroup.ts"
import { LeaseImpl, protect } from "./leaseHandle.ts"
import * as leaseOptions from "./leaseOptions.ts"
import * as extent from "./nesting.ts"
import * as observer from "./ownerWatch.ts"

const mutexName = checked<MutexName>("mutex", mutexProblem)

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export const make = Effect.fnUntraced(function*(options: MutexConfig.Options = {}) {
  const store = yield* MutexStore
  const config = yield* MutexConfig.make(options)
  const leases = yield* leasesOf.make(store, config)
  const ids = yield* wireId.makeGenerator
  const places = yield* placesOf.make(store, leases, config, () => ids.next(config.contender))

  const usual = termsOf(config)

  /** Without options of its own. */
  const plain = (mutex: MutexName): contention.Attempt => {
    const { confirmTimeout: confirm, contender, maxLocalHandOffs, transition, ttl } = config
    return { mutex, id: ids.next(contender), ttl, transition, confirmTimeout: confirm, maxLocalHandOffs, terms: usual }
  }

  const attempt = (
    name: string,
    options?: LeaseOptions
  ): Effect.Effect<contention.Attempt, InvalidName | InvalidConfig> => {
    const checked = leaseOptions.check(config, options)
    if (checked === undefined) return Effect.map(mutexName(name), plain)
    return Effect.flatMap(mutexName(name), (mutex) =>
      Effect.map(checked, (chosen) => ({
        ...chosen,
        mutex,
        id: ids.next(config.contender),
        confirmTimeout: config.confirmTimeout,
        terms: termsOf(chosen)
      })))
  }

  const timeoutOf = (input: Duration.Input | undefined) => {
    if (input === undefined) return Effect.undefined
    const timeout = Duration.fromInput(input)
    // Not a number would be zero
    const problem = Option.isNone(timeout) || Number.isNaN(input)
      ? `${Number.isNaN(input) ? input : JSON.stringify(input)} is not a duration`
      : Duration.isNegative(timeout.value)
      ? "it must not be negative"
      : undefined
    return problem === undefined && Option.isSome(timeout)
      ? Effect.succeed(Duration.isFinite(timeout.value) ? timeout.value : undefined)
      : Effect.fail(new InvalidConfig({ option: "timeout", problem: problem! }))
  }

  const obtain = (
    name: string,
    options: AcquireOptions | undefined,
    restore: Restore
  ): Effect.Effect<HeldLease, AcquireError> =>
    options === undefined && mutexProblem(name) === undefined
      ? Effect.withFiber<HeldLease, AcquireError>((fiber) => {
        const held = extent.find(fiber, leases, name)
        return held === undefined
          ? placesOf.acquire(places, plain(name as MutexName), undefined, restore)
          : Effect.fail(held)
      })
      : Effect.gen(function*() {
        const wanted = yield* attempt(name, options)
        yield* extent.refuseNested(leases, wanted.mutex)
        const timeout = yield* timeoutOf(options?.timeout)
        return yield* placesOf.acquire(places, wanted, timeout, restore)
      })

  /** All or none: what was obtained is given back in the background when one of them cannot be had. */
  const obtainAll = (names: ReadonlyArray<string>, options: AcquireOptions | undefined, restore: Restore) =>
    Effect.suspend(() => {
      const holdings: Array<HeldLease> = []
      const obtaining = Effect.gen(function*() {
        if (names.length === 0) {
          return yield* new InvalidConfig({ option: "names", problem: "there is none" })
        }
        const timeout = yield* timeoutOf(options?.timeout)
        const clock = yield* Clock.Clock
        const end = timeout === undefined ? undefined : instant(clock).monotonic + Duration.toMillis(timeout)
        for (const name of [...new Set(names)].sort()) {
          const left = end === undefined ? undefined : Math.max(0, end - instant(clock).monotonic)
          const holding = yield* obtain(name, { ...options, timeout: left }, restore).pipe(
            Effect.catchTag(
              "AcquireTimeout",
              (error) => Effect.fail(timeout === undefined ? error : new AcquireTimeout({ ...error, timeout }))
            )
          )
          holdings.push(holding)
        }
        return holdings
      })
      return Effect.onExit(obtaining, (exit) =>
        Exit.isSuccess(exit)
          ? Effect.void
          : Effect.forEach(holdings, (holding) => leases.undo(holding, holding), { discard: true }))
    })

  const obtainIfAvailable = (name: string, options: LeaseOptions | undefined, restore: Restore) =>
    Effect.flatMap(attempt(name, options), (attempt) => placesOf.tryAcquire(places, attempt, restore))

  const inScope = (holding: HeldLease) =>
    Effect.flatMap(
      Effect.scope,
      (scope) => Effect.as(Scope.addFinalizer(scope, leases.release(holding)), new LeaseImpl(leases, holding))
    )

  const guarded = <A, E, R>(holding: HeldLease, body: Body<A, E, R>, restore: Restore, isTracing: boolean) => {
    const given = Effect.isEffect(body) ? body : Effect.suspend(() => body(new LeaseImpl(leases, holding)))
    const work = isTracing
      ? Effect.andThen(Effect.annotateCurrentSpan(tracing.attributes(holding)), given)
      : given
    return Effect.ensuring(
      restore(protect(leases, [holding], work, extent.provide(leases, holding))),
      leases.release(holding)
    )
  }

  const locked = <A, E, R>(
    name: string,
    lock: (restore: Restore, isTracing: boolean) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> =>
    Effect.withFiber<A, E, R>((fiber) =>
      tracing.spanOn(
        fiber,
        "simba.withLock",
        () => ({ attributes: tracing.attributes({ mutex: name }) }),
        Effect.uninterruptibleMask((restore) => lock(restore, tracing.isTracing(fiber)))
      )
    )

  const service: Mutex["Service"] = {
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
      locked(
        name,
        (restore, isTracing) =>
          Effect.flatMap(obtain(name, options, restore), (holding) => guarded(holding, body, restore, isTracing))
      ),
    withLockIfAvailable: (name, options) => (body) =>
      locked(name, (restore, isTracing) =>
        Effect.flatMap(
          obtainIfAvailable(name, options, restore),
          Option.match({
            onNone: () => Effect.succeedNone,
            onSome: (holding) => Effect.asSome(guarded(holding, body, restore, isTracing))
          })
        )),
    acquireAll: (names, options) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          obtainAll(names, options, restore),
          (holdings) =>
            Effect.map(
              Effect.forEach(holdings, inScope),
              (all) => new LeaseGroupImpl(all, (effect) => protect(leases, holdings, effect))
            )
        )
      ),
    contend: (name, options = {}) =>
      Effect.gen(function*() {
        const { mutex, transition } = yield* attempt(name, options)
        const every = yield* positive("every", options.every ?? "1 second")
        return yield* contender.make({
          store,
          mutex,
          transition,
          every,
          recorder: leases.recorder,
          acquire: service.acquire(mutex, options)
        })
      }),
    events: (name, options = {}) =>
      Stream.unwrap(Effect.gen(function*() {
        const mutex = yield* mutexName(name)
        const every = yield* positive("every", options.every ?? "1 second")
        return observer.events(store, mutex, { every, renewals: options.renewals ?? false })
      })),
    inspect: (name, options = {}) =>
      Effect.flatMap(mutexName(name), (mutex) => store.inspect(mutex, options.waiters ?? 100)),
    list: store.list,
    forceRelease: (name) =>
      Effect.flatMap(mutexName(name), (mutex) => store.forceRelease(mutex, config.confirmTimeout)),
    owner: (name) => Effect.flatMap(mutexName(name), store.owner)
  }
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(
    (yield* store.inbox(ids.key)).next,
    ({ id }) => Effect.sync(() => leases.suspect(id))
  )))
  return service
})
