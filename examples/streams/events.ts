/** The events that the processes report, and the director. */
import { Schema } from "effect"

const who = Schema.String
/** The instant at which it happened, by `now` of the process in which it happened. */
const at = Schema.Finite
const stream = Schema.String
const token = Schema.Int

export const Event = Schema.TaggedUnion({
  /** A consumer is about to join. */
  Joins: { who, at },
  Announced: { who, at, stream },
  /** A handler starts: its consumer owns the stream. */
  Taken: { who, at, stream, token },
  Processed: { who, at, stream, token, n: Schema.Int },
  /** The handler ended after the last message. */
  Done: { who, at, stream, token },
  /** The handler ended between two messages because its stream was revoked. */
  Yielded: { who, at, stream, token },
  /** The handler was interrupted, or failed. */
  Stopped: { who, at, stream, token },
  /** From the director, just before SIGKILL. */
  Killed: { who, at },
  /** From the director, just before SIGTERM. */
  AskedToEnd: { who, at },
  /** A process failed. */
  Failed: { who, at, problem: Schema.String }
})

export type Event = typeof Event.Type
