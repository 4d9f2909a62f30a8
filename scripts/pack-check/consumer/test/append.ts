/** Adds a message to a data stream, like a producer. */
import { StreamName, type StreamState } from "@effect-simba/core/streams"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"

export const append = (stream: StreamName.StreamName, fields: StreamState.RawMessage["fields"]) =>
  Effect.flatMap(
    Redis,
    (redis) =>
      Effect.map(redis.send<string>("XADD", stream, "*", ...fields.flat()), (id) => StreamName.EntryId.make(id))
  )
