/**
 * Waiters of one layer on one name share one place in the fleet's queue. Whoever comes first asks by itself; the others
 * stand in line behind it, at no cost to the backend, and the place contends for whoever is the first of them.
 */
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { MutexConfig } from "../../MutexConfig.ts"
import type { ContenderId, MutexName } from "../../MutexName.ts"
import type { MutexStore } from "../../MutexStore.ts"
import type { AcquireTimeout } from "../../SimbaError.ts"
import type { LeaseTable } from "../lease/leaseTable.ts"
import { AcquireQueue, type Layer } from "./acquirePlace.ts"
import type { Attempt, StoreError } from "./attempt.ts"
import * as contention from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { Waiter } from "./waiter.ts"

export interface AcquireQueues {
  readonly store: MutexStore["Service"]
  readonly leases: LeaseTable
  /**
   * The place of this layer in the queue of a mutex, made where there is none. To be used at once: one that nobody has
   * asked or joined may be replaced by another.
   */
  readonly at: (mutex: MutexName) => AcquireQueue
  readonly isClosed: () => boolean
}

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  leases: LeaseTable,
  config: MutexConfig,
  nextId: () => ContenderId
): Effect.fn.Return<AcquireQueues, never, Scope.Scope> {
  const table = new Map<MutexName, AcquireQueue>()
  const layer: Layer = {
    store,
    leases,
    config,
    clock: yield* Clock.Clock,
    table,
    nextId,
    run: Effect.runForkWith(yield* Effect.context<never>()),
    contended: new Set(),
    isClosed: false
  }
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      layer.isClosed = true
      const turns = [...table.values()].map((place) => place.close()).filter((fiber) => fiber !== undefined)
      return Effect.asVoid(Fiber.awaitAll(turns))
    })
  )
  return {
    store,
    leases,
    isClosed: () => layer.isClosed,
    at: (mutex) => {
      table.get(mutex)?.check()
      let place = table.get(mutex)
      if (place === undefined) table.set(mutex, place = new AcquireQueue(layer, mutex))
      return place
    }
  }
})

/** Waits for the mutex, for at most `timeout`. Call it uninterruptibly, with what restores interruption. */
export const acquire = (
  { at, isClosed, leases, store }: AcquireQueues,
  attempt: Attempt,
  timeout: Duration.Duration | undefined,
  restore: Restore
): Effect.Effect<HeldLease, StoreError | AcquireTimeout> =>
  Effect.withFiber((fiber) => {
    if (isClosed()) return Effect.fail(contention.closed())
    if (attempt.unfair) return contention.acquire(store, leases, attempt, timeout, restore)
    const place = at(attempt.mutex)
    let asking = place.comesFirst()
    let waiter: Waiter | undefined
    let granted: HeldLease | undefined
    const note = (holding: HeldLease) => {
      granted = holding
      return holding
    }
    const join = () => {
      waiter = place.join(attempt, fiber, asking)
      asking = false
      return Effect.map(waiter.outcome, note)
    }
    const asked = () => {
      place.ask()
      return Effect.flatMap(
        contention.retryOutages(attempt, contention.send(store, leases, attempt, { mode: "try" }), place),
        (result) => {
          if (contention.isRefused(result)) {
            place.refused(result)
            return join()
          }
          asking = false
          place.granted(note(result), attempt)
          return Effect.succeed(result)
        }
      )
    }
    return contention.withUndo(
      leases,
      attempt,
      restore(contention.withTimeout(attempt, timeout, asking ? asked() : join(), () => place.owner)),
      () => granted,
      () => {
        if (waiter !== undefined) return place.leave(waiter)
        if (granted !== undefined) return leases.undo(granted, granted)
        if (!asking) return Effect.void
        asking = false
        return Effect.map(leases.undo(attempt), () => place.gaveUp())
      }
    )
  })

/** One request that never queues, and none where the answer is known. */
export const tryAcquire = (
  { at, isClosed, leases, store }: AcquireQueues,
  attempt: Attempt,
  restore: Restore
): Effect.Effect<Option.Option<HeldLease>, StoreError> =>
  Effect.suspend(() => {
    if (isClosed()) return Effect.fail(contention.closed())
    if (attempt.unfair) return contention.tryAcquire(store, leases, attempt, restore)
    const place = at(attempt.mutex)
    let granted: HeldLease | undefined
    if (!place.isOpen()) {
      return contention.withUndo(leases, attempt, Effect.succeedNone, () => granted, () => Effect.void)
    }
    place.ask()
    let asking = true
    return contention.withUndo(
      leases,
      attempt,
      Effect.map(restore(contention.send(store, leases, attempt, { mode: "try" })), (result) => {
        asking = false
        if (contention.isRefused(result)) {
          place.refused(result)
          place.gaveUp()
          return Option.none()
        }
        granted = result
        place.granted(result, attempt)
        return Option.some(result)
      }),
      () => granted,
      () => {
        if (granted !== undefined) return leases.undo(granted, granted)
        return asking ? Effect.map(leases.undo(attempt), () => place.gaveUp()) : leases.undo(attempt)
      }
    )
  })
