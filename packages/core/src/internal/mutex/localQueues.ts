/**
 * One layer's local queues, by mutex. A queue exists while a fiber holds the mutex or wants it. Created by `service`.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { AttemptContext } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { HeldLeases } from "./heldLeases.ts"
import { LatestNames } from "./latestNames.ts"
import { type Layer, LocalQueue } from "./localQueue.ts"

export interface LocalQueues {
  readonly context: AttemptContext
  readonly leases: HeldLeases
  /** Returns the queue for an attempt. Use the queue in the same step, because an unused queue may be replaced. */
  readonly at: (mutex: MutexName) => LocalQueue
  /** The lease held by a fiber in this layer, if any. */
  readonly held: (mutex: MutexName) => HeldLease | undefined
  readonly isClosed: () => boolean
}

export const make = Effect.fnUntraced(function*(
  context: AttemptContext,
  leases: HeldLeases,
  nextId: () => LeaseId
): Effect.fn.Return<LocalQueues, never, Scope.Scope> {
  // An object, because V8 replaces a Map's table when its last entry is deleted. In the heap's old generation, a
  // replaced table keeps the next one and all its former entries alive
  const queues: Record<MutexName, LocalQueue> = Object.create(null)
  const layer: Layer = {
    context,
    leases,
    nextId,
    queues,
    contended: new LatestNames(),
    selfDeadlocks: new LatestNames(),
    isClosed: false
  }
  leases.follow({
    lost: (lease) => queues[lease.mutex]?.lost(lease),
    released: (lease, now) => {
      const queue = queues[lease.mutex]
      return queue === undefined ? {} : queue.released(lease, now)
    }
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      layer.isClosed = true
      for (const queue of Object.values(queues)) queue.close()
    })
  )
  return {
    context,
    leases,
    held: (mutex) => queues[mutex]?.held,
    isClosed: () => layer.isClosed,
    at: (mutex) => {
      queues[mutex]?.check()
      return queues[mutex] ??= new LocalQueue(layer, mutex)
    }
  }
})
