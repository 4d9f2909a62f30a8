/** The events that the processes and the director report. */
import { Schema } from "effect"

const who = Schema.String
/** The time of the event on the reporting process's clock (`now`). */
const at = Schema.Finite
const stream = Schema.String
const token = Schema.Int

export const Event = Schema.TaggedUnion({
  /** A consumer is about to join. */
  Joins: { who, at },
  Announced: { who, at, stream },
  /** A handler started: its consumer owns the stream. */
  Taken: { who, at, stream, token },
  Processed: { who, at, stream, token, n: Schema.Int },
  /** The handler finished the stream's last message and ended. */
  Done: { who, at, stream, token },
  /** The handler ended between two messages because its stream was revoked. */
  Yielded: { who, at, stream, token },
  /** The handler was interrupted or failed. */
  Stopped: { who, at, stream, token },
  /** The director is about to send SIGKILL. */
  Killed: { who, at },
  /** The director is about to send SIGTERM. */
  AskedToEnd: { who, at },
  /** A process failed. */
  Failed: { who, at, problem: Schema.String }
})

export type Event = typeof Event.Type
