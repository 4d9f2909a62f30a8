/** The messages of a data stream, and how far its owner is. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Held, RawMessage, Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import * as StreamKeys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as scripts from "./scripts.ts"
import type { Backend } from "./service.ts"

const readMoved = reader("the reply of the commit script", Schema.Literals(["Committed", "Behind", "NotOwner"]))
const readCheckpoint = reader("a checkpoint", Schema.NullOr(EntryId))
const readField = reader("whether something was committed", Schema.NullOr(Schema.String))
const readKept = reader("the reply of the keep script", Schema.Literal("1"))
const readMessages = reader("messages of a data stream", StreamWire.Entries)

export const toMessages = (rows: typeof StreamWire.Entries.Type): ReadonlyArray<RawMessage> =>
  rows.map(([id, fields]) => ({ id, fields }))

/** Checkpoints of one call. */
const keptAtOnce = 200

type Part = Pick<
  Service,
  "deadLetterMessage" | "checkpoint" | "commit" | "hasCommitted" | "keepCheckpoints" | "messages"
>

export const make = (backend: Backend): Part => {
  const failures = StreamKeys.failures(backend.service)
  const commit = backend.run("commit", scripts.commitCheckpoint, readMoved)
  const bury = backend.run("bury a message", scripts.deadLetterMessage, readMoved)
  const keep = backend.run("keep checkpoints", scripts.keepCheckpoints, readKept)

  const keysOf = ({ stream }: Held) =>
    [StreamKeys.streamLease(stream), StreamKeys.checkpoint(stream), failures] as const
  const valueOf = ({ consumer, epoch, token }: Held) => `${consumer}@@${epoch}@@${token}`

  return {
    commit: (held, id) => commit(keysOf(held), [valueOf(held), held.entry, id]),
    deadLetterMessage: (held, message, reason) =>
      bury(
        [...keysOf(held), StreamKeys.deadMessages(held.stream)],
        [valueOf(held), held.entry, message.id, reason, held.token, ...message.fields.flat()]
      ),
    checkpoint: (stream) =>
      Effect.andThen(
        backend.admit("checkpoint", stream),
        Effect.map(
          backend.send("checkpoint", readCheckpoint, "GET", StreamKeys.checkpoint(stream)),
          Option.fromNullishOr
        )
      ),
    hasCommitted: ({ entry }) =>
      Effect.map(
        backend.send("look for a commit", readField, "HGET", failures, `${entry}:moved`),
        (field) => field !== null
      ),
    keepCheckpoints: Effect.fnUntraced(function*(streams) {
      for (let i = 0; i < streams.length; i += keptAtOnce) {
        yield* keep(streams.slice(i, i + keptAtOnce).map(StreamKeys.checkpoint), [])
      }
    }),
    messages: (stream, after, count) =>
      Effect.andThen(
        backend.admit("read messages", stream),
        Effect.map(
          backend.send("read messages", readMessages, "XRANGE", stream, `(${after}`, "+", "COUNT", String(count)),
          toMessages
        )
      )
  }
}
