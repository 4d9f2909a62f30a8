/** Schema codecs for stream-ownership values, announcements, replies and signals. */
import { EntryId, StreamName } from "@effect-simba/core/streams/StreamName"
import { ConsumerName, Epoch } from "@effect-simba/core/streams/StreamStore"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Count, separator, text, Token } from "../../internal/client/codecs.ts"
import { separated, Session } from "./codecs.ts"

/**
 * A checkpoint: `<message>`, or `<message>@@<entry>` if the data stream ended there under that entry, or
 * `<message>@@<entry>@@<offset>`, where the entry may be empty.
 */
export const Checkpoint = text(
  Schema.Struct({
    id: EntryId,
    endedUnder: Schema.Union([Schema.Literal(""), EntryId]),
    offset: Schema.Union([Schema.Literal(""), Count])
  }),
  (input) => {
    const [id, endedUnder = "", offset = ""] = input.split(separator) as [string, string?, string?]
    return { id, endedUnder, offset }
  },
  ({ endedUnder, id, offset }) =>
    [id, ...endedUnder + offset === "" ? [] : [endedUnder], ...offset === "" ? [] : [offset]].join(separator)
)

const Info = Schema.Record(Schema.String, Schema.Unknown)

/** Normalizes the case of field names, because redis-stream-client-go ignores case. */
const spelled = (announcement: typeof Info.Type): { readonly DataStreamName: string } => {
  const names = new Map(["DataStreamName", "Info"].map((name) => [name.toLowerCase(), name]))
  return Object.fromEntries(
    Object.entries(announcement).map(([name, value]) => [names.get(name.toLowerCase()) ?? name, value])
  ) as { readonly DataStreamName: string }
}

/**
 * An announcement's text: `{"DataStreamName": ..., "Info": {...}}`. A missing or null `Info` counts as empty. The
 * case of field names does not matter.
 */
export const Announcement = Schema.fromJsonString(Info).pipe(
  Schema.decodeTo(
    Schema.Struct({ DataStreamName: StreamName, Info: Schema.optionalKey(Schema.NullOr(Info)) }),
    SchemaTransformation.transform({ decode: spelled, encode: (announcement): typeof Info.Type => announcement })
  ),
  Schema.decodeTo(
    Schema.Struct({ stream: Schema.toType(StreamName), info: Info }),
    SchemaTransformation.transform({
      decode: ({ DataStreamName, Info }) => ({ stream: DataStreamName, info: Info ?? {} }),
      encode: ({ info, stream }) => ({ DataStreamName: stream, Info: info })
    })
  )
)

/** Splits a list into pairs. `Array.chunksOf` would copy the remaining list for each pair. */
const pairsOf = <A>(flat: ReadonlyArray<A>): ReadonlyArray<readonly [A, A]> => {
  const pairs: Array<readonly [A, A]> = []
  for (let i = 0; i < flat.length; i += 2) pairs.push([flat[i]!, flat[i + 1]!])
  return pairs
}

/** An entry's fields as returned by Redis: alternating names and values. */
export const Fields = Schema.Array(Schema.String).pipe(Schema.decodeTo(
  Schema.Array(Schema.Tuple([Schema.String, Schema.String])),
  SchemaTransformation.transform({
    // The tuple rejects a name without a value
    decode: (flat) => pairsOf(flat),
    encode: (pairs) => pairs.flat()
  })
))

export type Fields = typeof Fields.Type

/** A stream's entries, each as `[id, fields]`. */
export const Entries = Schema.Array(Schema.Tuple([EntryId, Fields]))

const Pairs = Schema.Array(Schema.Tuple([Schema.String, Entries]))

/** Normalizes RESP2 and RESP3 replies to pairs. Leaves other values for the schema to reject. */
const toPairs = (reply: unknown): typeof Pairs.Encoded | null => {
  if (Array.isArray(reply) && typeof reply[0] === "string" && reply.length % 2 === 0) {
    return pairsOf(reply)
  }
  if (reply instanceof Map) return [...reply]
  return (typeof reply === "object" && reply !== null && !Array.isArray(reply) ? Object.entries(reply) : reply) as
    | typeof Pairs.Encoded
    | null
}

/**
 * The replies to XREAD and XREADGROUP: `[key, entries]` for each stream with entries, or null if there are none. Newer
 * protocols return a map instead. Clients expose the map as a flat list or as an object.
 */
export const ReadReply = Schema.Unknown.pipe(Schema.decodeTo(
  Schema.NullOr(Pairs),
  SchemaTransformation.transform({ decode: toPairs, encode: (reply): unknown => reply })
))

/**
 * A message on the signal channel. `released@@<entry>@@<stream>`: any consumer may now take the data stream.
 * `given@@<session>`: a data stream was handed over to that member.
 */
export const SignalMessage = Schema.Union([
  separated({ _tag: Schema.Literal("released").transform("Released"), entry: EntryId, stream: StreamName }),
  separated({ _tag: Schema.Literal("given").transform("HandedOver"), session: Session })
])

/** A hand-over that may not have been confirmed. */
export const HandOver = separated({
  session: Session,
  epoch: Epoch,
  token: Token,
  entry: EntryId,
  consumer: ConsumerName,
  stream: StreamName
})
