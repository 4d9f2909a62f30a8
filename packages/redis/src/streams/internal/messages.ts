/** What travels between consumers and Redis for stream ownership, as Schema codecs in both directions. */
import { ConsumerName, EntryId, Epoch, StreamName } from "@effect-simba/core/streams/StreamName"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { separator, Token } from "../../internal/client/codecs.ts"
import { separated, Session, text } from "./codecs.ts"

/** A checkpoint: `<message>`, or `<message>@@<entry>` where the data stream ended there under that entry. */
export const Checkpoint = text(
  Schema.Struct({ id: EntryId, endedUnder: Schema.optionalKey(EntryId) }),
  "<message> or <message>@@<entry>",
  (input) => {
    const [id, endedUnder] = input.split(separator) as [string, string?]
    return endedUnder === undefined ? { id } : { id, endedUnder }
  },
  ({ endedUnder, id }) => endedUnder === undefined ? id : `${id}${separator}${endedUnder}`
)

/** The field of an entry that has the announcement. The others are kept, and ignored. */
const announcementField = "lbs-input"

const Info = Schema.Record(Schema.String, Schema.Unknown)

/** Names in other letters are the same to redis-stream-client-go. */
const spelled = (announcement: unknown): { readonly DataStreamName: string } => {
  const names = new Map(["DataStreamName", "Info"].map((name) => [name.toLowerCase(), name]))
  const isObject = typeof announcement === "object" && announcement !== null && !Array.isArray(announcement)
  return (isObject
    ? Object.fromEntries(
      Object.entries(announcement).map(([name, value]) => [names.get(name.toLowerCase()) ?? name, value])
    )
    : announcement) as { readonly DataStreamName: string }
}

/**
 * The text of an announcement: `{"DataStreamName": ..., "Info": {...}}`. An `Info` that is missing or null is empty; names
 * are read in whatever letters.
 */
export const Announcement = Schema.fromJsonString(Schema.Unknown).pipe(
  Schema.decodeTo(
    Schema.Struct({ DataStreamName: StreamName, Info: Schema.optionalKey(Schema.NullOr(Info)) }),
    SchemaTransformation.transform({ decode: spelled, encode: (announcement): unknown => announcement })
  ),
  Schema.decodeTo(
    Schema.Struct({ stream: Schema.toType(StreamName), info: Info }),
    SchemaTransformation.transform({
      decode: ({ DataStreamName, Info }) => ({ stream: DataStreamName, info: Info ?? {} }),
      encode: ({ info, stream }) => ({ DataStreamName: stream, Info: info })
    })
  )
)

export type Announcement = typeof Announcement.Type

/** Fields of an entry as Redis answers them: names and values in turns. */
export const Fields = Schema.Array(Schema.String).pipe(Schema.decodeTo(
  Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  SchemaTransformation.transformEffect({
    decode: (flat: ReadonlyArray<string>, options) => {
      if (flat.length % 2 !== 0) {
        return Effect.fail(
          new SchemaIssue.InvalidValue({ message: "expected names and values in turns" }, flat, options)
        )
      }
      const pairs: Array<readonly [string, string]> = []
      for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i]!, flat[i + 1]!])
      return Effect.succeed(pairs)
    },
    encode: (pairs: ReadonlyArray<readonly [string, string]>) => Effect.succeed(pairs.flat())
  })
))

export type Fields = typeof Fields.Type

/** The text of the announcement among the fields of an entry. */
export const announcementOf = (fields: Fields): string | undefined =>
  fields.find(([name]) => name === announcementField)?.[1]

/** Entries of a stream: `[id, fields]` each. */
export const Entries = Schema.Array(Schema.Tuple([EntryId, Fields]))

const Pairs = Schema.Array(Schema.Tuple([Schema.String, Entries]))

/** As pairs, whatever it was on the way. What is none of these is left for the schema to refuse. */
const toPairs = (reply: unknown): typeof Pairs.Encoded | null => {
  if (Array.isArray(reply) && typeof reply[0] === "string" && reply.length % 2 === 0) {
    return Array.from({ length: reply.length / 2 }, (_, i) => [reply[2 * i], reply[2 * i + 1]] as const)
  }
  if (reply instanceof Map) return [...reply]
  return (typeof reply === "object" && reply !== null && !Array.isArray(reply) ? Object.entries(reply) : reply) as
    | typeof Pairs.Encoded
    | null
}

/**
 * What XREAD and XREADGROUP answer: `[key, entries]` for each stream that has something, or null if none has. Newer
 * protocols answer a map instead, which clients hand out as they like: flat, or as an object.
 */
export const ReadReply = Schema.Unknown.pipe(Schema.decodeTo(
  Schema.NullOr(Pairs),
  SchemaTransformation.transform({ decode: toPairs, encode: (reply): unknown => reply })
))

/**
 * The channel of signals: `released@@<entry>@@<stream>` (anybody may take it now), and `given@@<session>` (a data stream
 * was handed over to that member).
 */
export const SignalMessage = Schema.Union([
  separated({ _tag: Schema.Literal("released").transform("Released"), entry: EntryId, stream: StreamName }),
  separated({ _tag: Schema.Literal("given").transform("Given"), session: Session })
])

/** A hand-over that may be unconfirmed. */
export const HandOver = separated({
  session: Session,
  epoch: Epoch,
  token: Token,
  entry: EntryId,
  consumer: ConsumerName,
  stream: StreamName
})
