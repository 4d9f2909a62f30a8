/** What the tests of stream ownership share: producers. */
import { EntryId, type StreamName } from "@effect-simba/core/streams/StreamName"
import type { RawMessage } from "@effect-simba/core/streams/StreamStore"
import { Effect } from "effect"
import { Redis } from "effect/persistence/Redis"

/** Adds a message to a data stream. */
export const append = (stream: StreamName, fields: RawMessage["fields"]) =>
  Effect.flatMap(
    Redis,
    (redis) => Effect.map(redis.send<string>("XADD", stream, "*", ...fields.flat()), (id) => EntryId.make(id))
  )

/** Removes the messages of a data stream before this one. */
export const trim = (stream: StreamName, before: EntryId) =>
  Effect.flatMap(Redis, (redis) => redis.send("XTRIM", stream, "MINID", before))
