/** The codecs named in the stream-ownership scripts' header comments, and codecs for command replies. */
import { EntryId } from "@effect-simba/core/streams/StreamName"
import { ConsumerName } from "@effect-simba/core/streams/StreamStore"
import * as Schema from "effect/Schema"
import { Count } from "../../internal/client/codecs.ts"
import { Natural, separated, Session } from "./codecs.ts"

export { EntryId }
export { Count, Flag, Token } from "../../internal/client/codecs.ts"
export { Natural } from "./codecs.ts"
export { Entries, HandOver } from "./messages.ts"

/** A fleet member, its capacity, and the number of data streams that it owns. */
export const Member = separated({ consumer: ConsumerName, session: Session, capacity: Count, owned: Count })

/** Milliseconds until a key expires, or `-1` if it never expires. */
export const TimeLeft = Schema.String.check(Schema.isPattern(/^-1$|^\d+$/))

/** A script's reply for an item that failed. The other items in the call were processed. */
export const Failed = Schema.Tuple([Schema.Literal("error"), Schema.String])

export type Failed = typeof Failed.Type

export const isFailed = Schema.is(Failed)

/** A script's replies for many items. */
export const eachOf = <A, E>(reply: Schema.Codec<A, E>) => Schema.Array(Schema.Union([reply, Failed]))

/**
 * An item in the reply to `XPENDING`: the entry's id, its consumer, its idle time in milliseconds, and its delivery
 * count.
 */
export const PendingReply = Schema.Array(
  // Consumers from other implementations may have any name
  Schema.Tuple([EntryId, Schema.String, Natural, Natural])
)
