/** Lists dead letters of a service and dead messages of a data stream, and brings them back. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { textOf } from "./announcementEntry.ts"
import { Flag } from "./codecs.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as scripts from "./scripts.ts"
import type { ServiceContext } from "./service.ts"

const readEntries = reader("dead letters", StreamWire.Entries)
const readAdded = reader("the id of a message", EntryId)
const readDeleted = reader("a count", Schema.Int)
const decodeFields = Schema.decodeUnknownOption(Schema.fromJsonString(StreamWire.Fields))

const ours = ["simba-reason", "simba-id", "simba-token"]

type Row = (typeof StreamWire.Entries.Type)[number]

/** Fields that are packed in one. A field of this name with another text is what it was. */
const unpack = (fields: StreamWire.Fields): Option.Option<StreamWire.Fields> => {
  const [first] = fields
  return fields.length === 1 && first?.[0] === "simba-fields" ? decodeFields(first[1]) : Option.none()
}

const toLetter = ([id, fields]: Row) => {
  const kept = fields.filter(([name]) => !ours.includes(name))
  const unpacked = unpack(kept)
  const of = (name: string) => fields.findLast((field) => field[0] === name)?.[1] ?? ""
  return {
    id,
    before: of("simba-id") as EntryId,
    reason: of("simba-reason"),
    fields: Option.getOrElse(unpacked, () => kept),
    isPacked: Option.isSome(unpacked)
  }
}

export const make = (
  context: ServiceContext
): Pick<Service, "deadLetters" | "deadMessages" | "redrive" | "replayMessage"> => {
  const { announced, deadLetters, input, parse } = context
  const streamOf = ({ fields, id }: ReturnType<typeof toLetter>) => {
    const content = parse(id, fields)
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
          const letter = toLetter(row)
          const { before, fields, id, reason } = letter
          return { id, entry: before, stream: streamOf(letter), reason, fields }
        })),
    redrive: Effect.fnUntraced(function*(id) {
      const [row] = yield* context.send("redrive", readEntries, "XRANGE", deadLetters, id, id)
      if (row === undefined) return false
      const letter = toLetter(row)
      const stream = streamOf(letter)
      // The packed fields have no reader: the text of the announcement stands beside them
      const text = letter.isPacked ? textOf(letter.fields) : undefined
      const checkpoint = stream === undefined ? deadLetters : keys.checkpoint(stream)
      return yield* redrive([input, deadLetters, announced, checkpoint], [id, stream ?? "", text ?? ""])
    }),
    deadMessages: Effect.fnUntraced(function*(stream, after, count) {
      yield* context.admit("look at dead messages", stream)
      const rows = yield* list(keys.deadMessages(stream), after, count)
      return rows.map((row) => {
        const { before, fields, id, reason } = toLetter(row)
        return { id, message: before, reason, fields }
      })
    }),
    // No script: it could not add a message of thousands of fields
    replayMessage: Effect.fnUntraced(function*(stream, id) {
      yield* context.admit("replay", stream)
      const key = keys.deadMessages(stream)
      const [letter] = yield* context.send("replay", readEntries, "XRANGE", key, id, id)
      if (letter === undefined) return false
      yield* context.send("replay", readAdded, "XADD", stream, "*", ...toLetter(letter).fields.flat())
      yield* context.send("replay", readDeleted, "XDEL", key, id)
      return true
    })
  }
}
