/** The events that the workers report. */
import { Schema } from "effect"

const worker = Schema.String
/** The instant at which it happened, by `now` of the process in which it happened. */
const at = Schema.Finite
const token = Schema.Int
const term = Schema.Int

export const Event = Schema.TaggedUnion({
  Waiting: { worker, at, term },
  Leading: { worker, at, term, token },
  /** Reported before the release: when the work of the leader ended. */
  Leaving: { worker, at, term },
  Lost: { worker, at, reason: Schema.String },
  Finished: { worker, at },
  Interrupted: { worker, at },
  /** Killed. The lease ended at `leaseEnds` or later, according to the store. */
  Crashed: { worker, at, leaseEnds: Schema.optionalKey(Schema.Finite) },
  Failed: { worker, at, problem: Schema.String },
  /** A worker logged something. */
  Note: { worker, at, text: Schema.String }
})

export type Event = typeof Event.Type

const endings: ReadonlyArray<Event["_tag"]> = ["Finished", "Interrupted", "Crashed", "Failed"]

/** Whether it is the last event of its worker. */
export const isEnding = (event: Event): boolean => endings.includes(event._tag)
