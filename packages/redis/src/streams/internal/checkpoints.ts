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
const readCommitted = reader("the reply of the commit script", eachOf(Moved))
const readMoved = reader("the reply of the dead-letter script", Moved)
const readCheckpoint = reader("a checkpoint", Schema.NullOr(StreamWire.Checkpoint))
const readEnded = reader("the reply of the end script", Schema.Literals(["Open", "Reopened", "Ended"]))
const readUntil = reader("the reply of the gap script", Schema.Union([Schema.Literal(""), EntryId]))
const readKept = reader("the reply of the keep script", Schema.Literal("1"))
const readMessages = reader("messages of a data stream", StreamWire.Entries)

export const toMessages = (rows: typeof StreamWire.Entries.Type): ReadonlyArray<RawMessage> =>
  rows.map(([id, fields]) => ({ id, fields }))

type Part = Pick<
  Service,
  "deadLetterMessage" | "checkpoint" | "commit" | "deletedAfter" | "end" | "keepCheckpoints" | "messages"
>

export const make = (context: ServiceContext): Part => {
  const failures = keys.failures(context.service)
  const commitAll = context.run("commit", scripts.commitCheckpoints, readCommitted)
  const deadLetter = context.run("dead-letter a message", scripts.deadLetterMessage, readMoved)
  const readEnd = context.run("look for the end", scripts.readEnd, readEnded)
  const readGap = context.run("look for deleted messages", scripts.readGap, readUntil)
  const keep = context.run("keep checkpoints", scripts.keepCheckpoints, readKept)

  const keysOf = ({ stream }: Held) => [keys.streamLease(stream), keys.checkpoint(stream), failures] as const
  const valueOf = ({ consumer, epoch, token }: Held) => `${consumer}@@${epoch}@@${token}`

  interface Commit {
    readonly held: Held
    readonly id: EntryId
    readonly last: "1" | ""
  }
  const commit = batchedRequest.make("commit", (commits: ReadonlyArray<Commit>) =>
    commitAll(
      [failures, ...commits.flatMap(({ held }) => [keys.streamLease(held.stream), keys.checkpoint(held.stream)])],
      commits.flatMap(({ held, id, last }) => [valueOf(held), held.entry, id, last] as const)
    ))

  return {
    commit: (held, id, isLast) => commit({ held, id, last: isLast === true ? "1" : "" }),
    deadLetterMessage: (held, message, reason) =>
      deadLetter(
        [...keysOf(held), keys.deadMessages(held.stream)],
        [valueOf(held), held.entry, message.id, reason, held.token, ...message.fields.flat()]
      ),
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
