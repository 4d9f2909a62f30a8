/** What the workers report. Between processes it travels as one JSON text per line. */
import { Clock, Effect, Schema } from "effect"

const worker = Schema.String
/** Monotonic milliseconds: the same clock in all processes of a machine. */
const at = Schema.Finite
const token = Schema.Int
const term = Schema.Int

export const Event = Schema.TaggedUnion({
  Waiting: { worker, at, term },
  Leading: { worker, at, term, token },
  /** About to release: the last instant at which it leads. */
  Leaving: { worker, at, term },
  Lost: { worker, at, reason: Schema.String },
  Finished: { worker, at },
  Interrupted: { worker, at },
  /** Killed; `leaseEnds` is when the mutex becomes free, as the store says. */
  Crashed: { worker, at, leaseEnds: Schema.optionalKey(Schema.Finite) },
  /** Ended as it should not have. */
  Failed: { worker, at, problem: Schema.String },
  /** Something that the worker logged. */
  Note: { worker, at, text: Schema.String }
})

export type Event = typeof Event.Type

const Line = Schema.fromJsonString(Event)

export const encode = Schema.encodeSync(Line)

export const decode = Schema.decodeUnknownEffect(Line)

export const now: Effect.Effect<number> = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos) / 1e6)

const endings: ReadonlyArray<Event["_tag"]> = ["Finished", "Interrupted", "Crashed", "Failed"]

/** Whether the worker reports nothing more after this. */
export const isEnding = (event: Event): boolean => endings.includes(event._tag)
