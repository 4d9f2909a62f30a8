/** What the scripts of stream ownership answer. */
import { ConsumerName, EntryId } from "@effect-simba/core/streams/StreamName"
import * as Schema from "effect/Schema"
import { Count, Token } from "../../internal/client/codecs.ts"
import { Flag, Natural, separated, Session } from "./codecs.ts"

/** A member of the fleet, with its capacity, and how many data streams it owns. */
export const MemberReply = separated({ consumer: ConsumerName, session: Session, capacity: Count, owned: Count })

/** Scripts reply so for one item that failed; the others of the call are done. */
export const Failed = Schema.Tuple([Schema.Literal("error"), Schema.String])

export type Failed = typeof Failed.Type

export const isFailed = Schema.is(Failed)

/** The replies of a script for many items. */
export const eachOf = <A, E>(reply: Schema.Codec<A, E>) => Schema.Array(Schema.Union([reply, Failed]))

/** The reply of the extents script for one data stream; empty if there is none. */
export const ExtentReply = Schema.Union([
  Schema.Tuple([]),
  Schema.Tuple([
    Count,
    EntryId,
    Schema.Union([Schema.Literal(""), EntryId]),
    Schema.Union([Schema.Literal(""), Count]),
    Schema.Union([Schema.Literal(""), EntryId])
  ])
])

/** The reply of the lags script for one data stream. */
export const LagReply = Schema.Tuple([
  Count,
  Schema.Literals(["", "1"]),
  Schema.Union([Schema.Literal(""), Count]),
  Schema.Union([Schema.Literal(""), EntryId])
])

/** The replies of the take script, one for each data stream. */
export const TakeReply = Schema.Array(Schema.Union([
  Schema.Tuple([Schema.Literal("Taken"), Token, Count]),
  Schema.Tuple([Schema.Literal("Occupied"), Schema.String, Schema.String.check(Schema.isPattern(/^-1$|^\d+$/))]),
  Schema.Tuple([Schema.Literals(["Recent", "Unread", "Gone"])]),
  Schema.Tuple([Schema.Literal("DeadLettered"), Count]),
  Failed
]))

/** The reply of the renew script: for each lease that was not renewed its index, counted from 1, and why. */
export const RenewReply = Schema.Array(
  Schema.Tuple([Schema.Int, Schema.Literals(["TakenOver", "Vanished"])])
)

/** The reply of `XPENDING`: id, consumer, idle time in milliseconds, and deliveries of each entry. */
export const PendingReply = Schema.Array(
  // Consumers of other implementations may be called anything
  Schema.Tuple([EntryId, Schema.String, Natural, Natural])
)

/** The replies of the announce script: the entry of each, and `1` if it is new. */
export const AnnounceReply = Schema.Array(Schema.Tuple([EntryId, Flag]))

/** The reply of the inspect script. */
export const InspectReply = Schema.Tuple([
  Natural,
  Natural,
  Natural,
  Natural,
  Schema.Array(Schema.Tuple([Schema.String, Natural, Natural])),
  Schema.Array(MemberReply)
])
