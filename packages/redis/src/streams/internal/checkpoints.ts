/** Reads the messages of a data stream, and moves its checkpoint. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Held, RawMessage, Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import * as batchedRequest from "./batchedRequest.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import { eachOf } from "./replies.ts"
import * as scripts from "./scripts.ts"
import type { ServiceContext } from "./service.ts"

const Moved = Schema.Literals(["Committed", "Behind", "NotOwner"])
const readCheckpoint = reader("a checkpoint", Schema.NullOr(StreamWire.Checkpoint))
const readMessages = reader("messages of a data stream", StreamWire.Entries)

export const toMessages = (rows: typeof StreamWire.Entries.Type): ReadonlyArray<RawMessage> =>
  rows.map(([id, fields]) => ({ id, fields }))

type Part = Pick<
  Service,
  "checkpoint" | "commit" | "deletedAfter" | "end" | "keepCheckpoints" | "messages"
>

export const make = (context: ServiceContext): Part => {
  const commitAll = context.run("commit", scripts.commitCheckpoints, eachOf(Moved))
  const readEnd = context.run("look for the end", scripts.readEnd, Schema.Literals(["Open", "Reopened", "Ended"]))
  const readGap = context.run("look for deleted messages", scripts.readGap, Schema.Union([Schema.Literal(""), EntryId]))
  const keep = context.run("keep checkpoints", scripts.keepCheckpoints, Schema.Literal("1"))

  const keysOf = ({ stream }: Held) => [keys.streamLease(stream), keys.checkpoint(stream)] as const

  const commit = batchedRequest.make(
    "commit",
    (commits: ReadonlyArray<readonly [held: Held, id: EntryId, last: "1" | ""]>) =>
      commitAll(
        [context.failures, ...commits.flatMap(([held]) => keysOf(held))],
        commits.flatMap(([held, id, last]) => [keys.streamValue(held), held.entry, id, last] as const)
      )
  )

  return {
    commit: (held, id, isLast) => commit([held, id, isLast === true ? "1" : ""]),
    checkpoint: (stream) =>
      Effect.andThen(
        context.admit("checkpoint", stream),
        Effect.map(
          context.send("checkpoint", readCheckpoint, "GET", keys.checkpoint(stream)),
          (checkpoint) => Option.fromNullishOr(checkpoint?.id)
        )
      ),
    end: ({ entry, stream }) => readEnd([keys.checkpoint(stream), stream], [entry]),
    deletedAfter: (stream, after) =>
      Effect.andThen(
        context.admit("look for deleted messages", stream),
        Effect.map(readGap([stream], [after]), (until) => until === "" ? Option.none() : Option.some(until))
      ),
    keepCheckpoints: (streams) =>
      Effect.asVoid(
        batchedRequest.inCalls(streams, (streams) => Effect.as(keep(streams.map(keys.checkpoint), []), streams))
      ),
    messages: (stream, after, count) =>
      Effect.andThen(
        context.admit("read messages", stream),
        Effect.map(
          context.send("read messages", readMessages, "XRANGE", stream, `(${after}`, "+", "COUNT", String(count)),
          toMessages
        )
      )
  }
}
