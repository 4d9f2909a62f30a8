/**
 * Lists and redrives a service's dead letters and a data stream's dead messages, and adds dead messages. Part of
 * `store`.
 */
import { BackendError } from "@effect-simba/core/SimbaError"
import { EntryId } from "@effect-simba/core/streams/StreamName"
import type { Service } from "@effect-simba/core/streams/StreamStore"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { reader } from "../../internal/client/decode.ts"
import { textOf } from "./announcementEntry.ts"
import * as keys from "./keys.ts"
import * as StreamWire from "./messages.ts"
import * as scripts from "./scripts.generated.ts"
import type { ServiceContext } from "./service.ts"

const readEntries = reader("dead letters", StreamWire.Entries)
const readAdded = reader("a message id", EntryId)
const decodeFields = Schema.decodeUnknownOption(Schema.fromJsonString(StreamWire.Fields))

type Row = (typeof StreamWire.Entries.Type)[number]

/**
 * Decodes fields that are packed into the `simba-fields` field. If its text cannot be decoded, it is an ordinary field.
 */
const unpack = (fields: StreamWire.Fields): Option.Option<StreamWire.Fields> => {
  const [first] = fields
  return fields.length === 1 && first?.[0] === "simba-fields" ? decodeFields(first[1]) : Option.none()
}

/** Converts an entry to a letter. The last three fields are the reason, the id and the token. */
const toLetter = ([id, fields]: Row) => {
  const kept = fields.slice(0, -3)
  const unpacked = unpack(kept)
  return {
    id,
    before: (fields.at(-2)?.[1] ?? "") as EntryId,
    reason: fields.at(-3)?.[1] ?? "",
    fields: Option.getOrElse(unpacked, () => kept),
    isPacked: Option.isSome(unpacked)
  }
}

/**
 * The error for a message that another caller is redriving. That caller may have added the message already, or may have
 * failed before doing so.
 */
const beingRedriven = Effect.suspend(() =>
  Effect.fail(
    new BackendError({
      operation: "redrive",
      isRetryable: true,
      cause: new Error("another caller has begun to redrive this message; try again after a minute")
    })
  )
)

export const make = (
  context: ServiceContext
): Pick<Service, "deadLetterMessage" | "deadLetters" | "deadMessages" | "redrive" | "redriveMessage"> => {
  const { announced, deadLetters, group, input, parse } = context
  const streamOf = ({ fields, id }: ReturnType<typeof toLetter>) => {
    const content = parse(id, fields)
    return content._tag === "Announced" ? content.stream : undefined
  }
  const redrive = context.run("redrive", scripts.redriveDeadLetter)

  const deadLetter = context.run("dead-letter a message", scripts.deadLetterMessage)
  const redriveOne = context.run("redrive", scripts.redriveMessage)

  const list = (key: string, after: EntryId | undefined, count: number) =>
    context.send(
      "list dead letters",
      readEntries,
      "XRANGE",
      key,
      after === undefined ? "-" : `(${after}`,
      "+",
      "COUNT",
      String(Math.max(1, count))
    )

  return {
    deadLetterMessage: (ownership, message, reason) =>
      deadLetter({
        streamLease: keys.streamLease(ownership.stream),
        stream: ownership.stream,
        deadMessages: keys.deadMessages(ownership.stream),
        deadIds: keys.deadIds(ownership.stream),
        leaseValue: keys.streamValue(ownership),
        id: message.id,
        reason,
        token: ownership.token,
        fields: message.fields.flat()
      }),
    deadLetters: (after, count) =>
      Effect.map(list(deadLetters, after, count), (entries) =>
        entries.map((entry) => {
          const letter = toLetter(entry)
          const { before, fields, id, reason } = letter
          return { id, entry: before, stream: streamOf(letter), reason, fields }
        })),
    redrive: Effect.fnUntraced(function*(id) {
      const [entry] = yield* context.send("redrive", readEntries, "XRANGE", deadLetters, id, id)
      if (entry === undefined) return false
      const letter = toLetter(entry)
      const stream = streamOf(letter)
      // The script cannot unpack fields, so pass the announcement's text separately
      const text = letter.isPacked ? textOf(letter.fields) : undefined
      const checkpoint = stream === undefined ? deadLetters : keys.checkpoint(stream)
      return yield* redrive({
        input,
        deadLetters,
        announced,
        checkpoint,
        messages: stream ?? deadLetters,
        group,
        letter: id,
        stream: stream ?? "",
        text: text ?? ""
      })
    }),
    deadMessages: Effect.fnUntraced(function*(stream, after, count) {
      yield* context.admit("list dead messages", stream)
      const entries = yield* list(keys.deadMessages(stream), after, count)
      return entries.map((entry) => {
        const { before, fields, id, reason } = toLetter(entry)
        return { id, message: before, reason, fields }
      })
    }),
    redriveMessage: Effect.fnUntraced(function*(stream, id) {
      yield* context.admit("redrive", stream)
      const key = keys.deadMessages(stream)
      const letter = { stream, deadMessages: key, deadIds: keys.deadIds(stream), letter: id }
      const reply = yield* redriveOne({ ...letter, added: "" })
      if (reply === "claimed") return yield* beingRedriven
      if (reply !== "packed") return reply === "1"
      const [entry] = yield* context.send("redrive", readEntries, "XRANGE", key, id, id)
      if (entry === undefined) return false
      yield* context.send("redrive", readAdded, "XADD", stream, "*", ...toLetter(entry).fields.flat())
      yield* redriveOne({ ...letter, added: "1" })
      return true
    })
  }
}
