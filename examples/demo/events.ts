/** The demo's events. Workers report most of them; the director reports `Crashed`. */
import { Schema } from "effect"

const worker = Schema.String
/** The time of the event on the reporting process's clock (`now`). */
const at = Schema.Finite
const token = Schema.Int
const term = Schema.Int

export const Event = Schema.TaggedUnion({
  Waiting: { worker, at, term },
  Leading: { worker, at, term, token },
  /** The leader's work has ended, but the mutex is not released yet. */
  Leaving: { worker, at, term },
  Lost: { worker, at, reason: Schema.String },
  Finished: { worker, at },
  Interrupted: { worker, at },
  /** The director killed the worker. According to the store, the worker's lease ended no earlier than `leaseEnds`. */
  Crashed: { worker, at, leaseEnds: Schema.optionalKey(Schema.Finite) },
  Failed: { worker, at, problem: Schema.String },
  /** A worker logged something. */
  Note: { worker, at, text: Schema.String }
})

export type Event = typeof Event.Type

const endings: ReadonlyArray<Event["_tag"]> = ["Finished", "Interrupted", "Crashed", "Failed"]

/** Whether this is a worker's last event. */
export const isEnding = (event: Event): boolean => endings.includes(event._tag)
