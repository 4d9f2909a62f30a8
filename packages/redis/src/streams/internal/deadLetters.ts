/** Lists dead letters of a service and dead messages of a data stream, and brings them back. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { RawMessage, Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { Flag } from "./codecs.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as scripts from "./scripts.ts"
import type { ServiceContext } from "./service.ts"

const readEntries = reader("dead letters", StreamWire.Entries)
const readAdded = reader("the id of a message", EntryId)
const readDeleted = reader("a count", Schema.Int)
/** More fields than a script can add. */
const readFields = reader("the fields of a dead message", Schema.fromJsonString(StreamWire.Fields))

const ours = ["simba-reason", "simba-id", "simba-token"]

type Row = (typeof StreamWire.Entries.Type)[number]

const toLetter = ([id, fields]: Row) => {
  const of = (name: string) => fields.findLast((field) => field[0] === name)?.[1] ?? ""
  return {
    id,
    before: of("simba-id") as EntryId,
    reason: of("simba-reason"),
    fields: fields.filter(([name]) => !ours.includes(name))
  }
}

const unpack = Effect.fnUntraced(function*(fields: RawMessage["fields"]) {
  const [first] = fields
  return fields.length === 1 && first?.[0] === "simba-fields" ? yield* readFields(first[1]) : fields
})

export const make = (
  context: ServiceContext
): Pick<Service, "deadLetters" | "deadMessages" | "redrive" | "replayMessage"> => {
  const { announced, deadLetters, input, parse } = context
  const streamOf = (letter: Row) => {
    const content = parse(...letter)
    return content._tag === "Announced" ? content.stream : undefined
  }
  const redrive = context.run("redrive", scripts.redriveDeadLetter, Flag)

  const list = (key: string, after: EntryId | undefined, count: number) =>
    context.send(
      "look at dead letters",
      readEntries,
      "XRANGE",
      key,
      after === undefined ? "-" : `(${after}`,
      "+",
      "COUNT",
      String(Math.max(1, count))
    )

  return {
    deadLetters: (after, count) =>
      Effect.map(list(deadLetters, after, count), (rows) =>
        rows.map((row) => {
          const { before, fields, id, reason } = toLetter(row)
          return { id, entry: before, stream: streamOf(row), reason, fields }
        })),
    redrive: Effect.fnUntraced(function*(id) {
      const [letter] = yield* context.send("redrive", readEntries, "XRANGE", deadLetters, id, id)
      if (letter === undefined) return false
      const stream = streamOf(letter)
      const checkpoint = stream === undefined ? deadLetters : keys.checkpoint(stream)
      return yield* redrive([input, deadLetters, announced, checkpoint], [id, stream ?? ""])
    }),
    deadMessages: Effect.fnUntraced(function*(stream, after, count) {
      yield* context.admit("look at dead messages", stream)
      const rows = yield* list(keys.deadMessages(stream), after, count)
      return yield* Effect.forEach(rows, (row) => {
        const { before, fields, id, reason } = toLetter(row)
        return Effect.map(unpack(fields), (fields) => ({ id, message: before, reason, fields }))
      })
    }),
    // No script: it could not add a message of thousands of fields
    replayMessage: Effect.fnUntraced(function*(stream, id) {
      yield* context.admit("replay", stream)
      const key = keys.deadMessages(stream)
      const [letter] = yield* context.send("replay", readEntries, "XRANGE", key, id, id)
      if (letter === undefined) return false
      const fields = yield* unpack(toLetter(letter).fields)
      yield* context.send("replay", readAdded, "XADD", stream, "*", ...fields.flat())
      yield* context.send("replay", readDeleted, "XDEL", key, id)
      return true
    })
  }
}
