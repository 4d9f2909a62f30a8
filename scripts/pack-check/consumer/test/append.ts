/** What a producer does: adds a message to a data stream. */
import { StreamNames, type StreamStore } from "@effect-simba/core"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"

export const append = (stream: StreamNames.StreamName, fields: StreamStore.RawMessage["fields"]) =>
  Effect.flatMap(
    Redis,
    (redis) =>
      Effect.map(redis.send<string>("XADD", stream, "*", ...fields.flat()), (id) => StreamNames.EntryId.make(id))
  )
