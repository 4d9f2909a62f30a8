/** The workers as the director sees them, whether they are fibers or processes. */
import type { MutexStore } from "@effect-simba/core"
import type { Effect, Queue } from "effect"
import type { Event } from "./events.ts"

export interface Fleet {
  readonly events: Queue.Queue<Event>
  /** Kills a worker, which releases nothing and reports nothing more. Awaits its death. */
  readonly crash: (worker: string) => Effect.Effect<void>
  /** Interrupts a worker, which leaves in order. */
  readonly interrupt: (worker: string) => Effect.Effect<void>
  /** The mutex as the store has it. */
  readonly inspect: Effect.Effect<MutexStore.MutexState>
}
