/** The workers as the director sees them, whether they are fibers or processes. */
import type { MutexStore } from "@effect-simba/core"
import type { Effect, Queue } from "effect"
import type { Event } from "./events.ts"

export interface Fleet {
  readonly events: Queue.Queue<Event>
  /** Ends a worker on the spot: it releases nothing and reports nothing. */
  readonly crash: (worker: string) => Effect.Effect<void>
  /** Asks a worker to stop: it leaves in good order. */
  readonly interrupt: (worker: string) => Effect.Effect<void>
  /** Who owns the mutex, as the store says. */
  readonly owner: Effect.Effect<MutexStore.Ownership>
}
