/** What travels between contenders and Redis, as Schema codecs in both directions. */
import { type Ownership, Ticket } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { Count, separator, text, Token } from "../client/codecs.ts"
import {
  decodeContender,
  decodeOwnership,
  encodeContender,
  encodeOwnership,
  millisPattern,
  ownerIdProblem
} from "./text.ts"

/** An owner's id as others may have written it: any text that cannot be mistaken for a separator. */
export const OwnerId = Schema.String.check(
  Schema.makeFilter((id: string) => ownerIdProblem(id)),
  // Said again for generators of examples, which do not look into filters
  Schema.isMinLength(1)
)

const WireOwnership = Schema.TaggedUnion({
  Free: {},
  Held: {
    owner: OwnerId,
    remaining: Schema.optionalKey(Schema.Duration.check(
      Schema.makeFilter((duration: Duration.Duration) =>
        millisPattern.test(String(Duration.toMillis(duration))) || "not a whole number of milliseconds"
      )
    ))
  }
})

/**
 * Who owns a mutex: `<owner id>@@<remaining milliseconds>`, with `-1` where it is held without end, and `@@` alone
 * where nobody does. It is the result of Simba's scripts too.
 */
export const OwnershipText: Schema.Codec<Ownership, string> = text(WireOwnership, decodeOwnership, encodeOwnership)

/** The mutex channel: `acquired@@<owner id>`. */
export const MutexMessage = text(
  Schema.TaggedUnion({ Acquired: { owner: OwnerId } }),
  (input) => {
    if (!input.startsWith("acquired@@")) return "expected acquired@@<owner>"
    const owner = input.slice("acquired@@".length)
    return ownerIdProblem(owner) ?? { _tag: "Acquired" as const, owner }
  },
  (message) => `acquired${separator}${message.owner}`
)

export type MutexMessage = typeof MutexMessage.Type

const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999_999_999_999_999 }))

/**
 * A contender's channel: `released@@<old owner id>` (it is your turn), and for ours `look@@<milliseconds>` (look again
 * after so long). Ours are told the same on the channel of their layer, and read their own for what others say.
 */
export const ContenderMessage = text(
  Schema.TaggedUnion({ Released: { owner: OwnerId }, Look: { millis: Millis } }),
  decodeContender,
  encodeContender
)

export type ContenderMessage = typeof ContenderMessage.Type

/** An absent field is the empty text: a Lua array ends at its first nil. */
const orNothing = <T, E extends string>(codec: Schema.Codec<T, E>) => Schema.Union([Schema.Literal(""), codec])

/**
 * The reply to an acquire: the token of a grant; or ownership, ticket, position among ours, and `1` where contenders of
 * another implementation take part.
 */
export const AcquireReply = Schema.Union([
  Token,
  Schema.Tuple([
    OwnershipText,
    orNothing(Schema.toType(Ticket)),
    Count,
    Schema.Literals(["0", "1"])
  ])
])

/**
 * The reply to a release: ownership, and if an attempt was queued with it the ticket of that, and its token if it was
 * granted.
 */
export const ReleaseReply = Schema.Union([
  OwnershipText,
  Schema.Tuple([
    OwnershipText,
    Schema.toType(Ticket),
    orNothing(Token)
  ])
])

/**
 * The reply of the guard script: for each lease that was not renewed its index, counted from 1, and either the
 * ownership it found or the error it met.
 */
export const GuardReply = Schema.Array(
  Schema.Union([
    Schema.Tuple([Schema.Int, Schema.Literal("owner"), OwnershipText]),
    Schema.Tuple([Schema.Int, Schema.Literal("error"), Schema.String])
  ])
)

/** The reply of the inspect script. */
export const InspectReply = Schema.Tuple([
  OwnershipText,
  orNothing(Token),
  Count,
  Schema.Array(Schema.Tuple([Schema.String, Count]))
])

/** The reply of the tick script: whether the caller is the first, and the milliseconds until the next period. */
export const TickReply = Schema.Tuple([Schema.Literals(["0", "1"]), Count])

/**
 * The channel of a layer: `<wire id>@@released@@<owner>` and `<wire id>@@look@@<milliseconds>` are for the waiter with
 * that id, and say what they say on its own channel; `forced@@<wire id>`: the lease of that id was taken away by force.
 */
export const InboxMessage = text(
  Schema.TaggedUnion({
    Forced: { id: OwnerId },
    Released: { id: OwnerId, owner: OwnerId },
    Look: { id: OwnerId, millis: Millis }
  }),
  (input) => {
    if (input.startsWith("forced@@")) {
      const id = input.slice("forced@@".length)
      return ownerIdProblem(id) ?? { _tag: "Forced" as const, id }
    }
    const end = input.indexOf(separator)
    if (end === -1) return "expected forced@@<wire id>, or <wire id>@@ and a message for it"
    const id = input.slice(0, end)
    const message = decodeContender(input.slice(end + separator.length))
    return typeof message === "string" ? message : ownerIdProblem(id) ?? { ...message, id }
  },
  (message) =>
    message._tag === "Forced"
      ? `forced${separator}${message.id}`
      : `${message.id}${separator}${encodeContender(message)}`
)

export type InboxMessage = typeof InboxMessage.Type
