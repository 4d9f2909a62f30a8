/** The codecs that the heads of the mutex scripts name, and the replies of operations with their readers. */
import type { MutexState } from "@effect-simba/core/MutexState"
import { type AcquireResult, type Released, Ticket } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Count, Flag, Token } from "../client/codecs.ts"
import { reader } from "../client/decode.ts"
import { OwnershipText } from "./ownership.ts"

export { Count, Flag, OwnershipText }

export const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** An absent field is the empty string: a Lua array ends at its first nil. */
const orEmpty = <T, E extends string>(codec: Schema.Codec<T, E>) => Schema.Union([Schema.Literal(""), codec])

/**
 * The token of a grant; or ownership, ticket, position among waiters of effect-simba, and whether contenders of another
 * implementation take part. If it queues, also the server's time in microseconds, and the last token. The usual reply
 * comes first, because a failed match is slow.
 */
export const AcquireReply = Schema.Union([
  Token,
  Schema.Tuple([OwnershipText, Schema.toType(Ticket), Count, Flag, Count, Count]),
  Schema.Tuple([OwnershipText, orEmpty(Schema.toType(Ticket)), Count, Flag])
])

/**
 * The ownership; and the ticket of an attempt that was queued with the release, with its token if it was granted,
 * otherwise with the number ahead of it, the server's time in microseconds, and the last token.
 */
export const ReleaseReply = Schema.Union([
  OwnershipText,
  Schema.Tuple([OwnershipText, Schema.toType(Ticket), Count, Count, Count]),
  Schema.Tuple([OwnershipText, Schema.toType(Ticket), Token])
])

export const InspectReply = Schema.Tuple([
  OwnershipText,
  orEmpty(Token),
  Count,
  Schema.Array(Schema.Tuple([Schema.String, Count]))
])

const decodeAcquire = reader("the reply to an acquire", AcquireReply)
const decodeRelease = reader("the reply to a release", ReleaseReply)
const decodeInspect = reader("the reply to an inspection", InspectReply)

export const readAcquire = (reply: unknown) =>
  Exit.map(decodeAcquire(reply), (decoded): AcquireResult => {
    if (typeof decoded === "number") return { _tag: "Granted", token: decoded }
    const [ownership, ticket, position, foreign, micros, token] = decoded
    return {
      _tag: "Refused",
      ownership,
      ticket: ticket === "" ? undefined : ticket,
      position,
      foreign,
      stamp: micros === undefined || token === undefined ? undefined : { micros, token }
    }
  })

export const readRelease = (reply: unknown) =>
  Exit.map(decodeRelease(reply), (decoded): Released => {
    if ("_tag" in decoded) return { ownership: decoded, requeued: undefined }
    if (decoded.length === 3) {
      const [ownership, ticket, token] = decoded
      return { ownership, requeued: { ticket, token } }
    }
    const [ownership, ticket, position, micros, token] = decoded
    return { ownership, requeued: { ticket, token: undefined, position, stamp: { micros, token } } }
  })

export const readInspect = (reply: unknown) =>
  Exit.map(decodeInspect(reply), ([ownership, token, waiting, waiters]): MutexState => ({
    ownership,
    token: token === "" ? undefined : token,
    waiting,
    waiters: waiters.map(([id, waited]) => ({ id, waited: Duration.millis(waited) }))
  }))
