/** The workers as the director sees them: fibers or processes. */
import { Mutex, type MutexState } from "@effect-simba/core"
import { Effect, Exit, type Queue, Scope } from "effect"
import type { Event } from "./events.ts"
import * as plan from "./plan.ts"

export interface Fleet {
  readonly events: Queue.Queue<Event>
  /** Lets the workers start to lead. */
  readonly begin: Effect.Effect<void>
  /** Kills a worker and waits until it is dead. The worker releases nothing and reports no more events. */
  readonly crash: (worker: string) => Effect.Effect<void>
  /** Interrupts a worker, so that it shuts down cleanly. */
  readonly interrupt: (worker: string) => Effect.Effect<void>
  /** The state of the mutex, according to the store. */
  readonly inspect: Effect.Effect<MutexState.MutexState>
}

/** Holds the mutex until `begin`, or until the scope closes. */
export const holdBack = Effect.gen(function*() {
  const curtain = yield* Scope.fork(yield* Effect.scope)
  yield* Scope.provide(Mutex.acquire(plan.mutex), curtain)
  return { begin: Scope.close(curtain, Exit.void) }
})
