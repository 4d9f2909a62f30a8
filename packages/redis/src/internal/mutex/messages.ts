/** The messages that contenders and Redis exchange, as Schema codecs in both directions. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import * as Schema from "effect/Schema"
import { Count, countPattern, separator, text, Token } from "../client/codecs.ts"
import { millisPattern, OwnerId } from "./ownership.ts"

/** The mutex channel: `acquired@@<owner id>`. */
export const MutexMessage = text(
  Schema.TaggedUnion({ Acquired: { owner: OwnerId } }),
  (input) => {
    if (!input.startsWith("acquired@@")) return "expected acquired@@<owner>"
    return { _tag: "Acquired" as const, owner: input.slice("acquired@@".length) }
  },
  (message) => `acquired${separator}${message.owner}`
)

export type MutexMessage = typeof MutexMessage.Type

const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 999_999_999_999_999 }))

/** The grant in a message: its token, the server's time of it in microseconds, and how long it lasts. */
const Grant = Schema.Struct({
  token: Schema.toType(Token),
  micros: Schema.toType(Count),
  millis: Schema.toType(Count)
})

const decodeContenderMessage = (input: string): ContenderMessage | string => {
  if (input.startsWith("released@@")) {
    return { _tag: "Released", owner: input.slice("released@@".length) }
  }
  if (!input.startsWith("look@@")) return "expected released@@<owner> or look@@<milliseconds>"
  const millis = input.slice("look@@".length)
  return millisPattern.test(millis)
    ? { _tag: "PollAfter", millis: Number(millis) }
    : "expected a whole number of milliseconds after look@@"
}

const encodeContenderMessage = (message: ContenderMessage): string =>
  message._tag === "Released" ? `released${separator}${message.owner}` : `look${separator}${message.millis}`

const ContenderMessageFields = Schema.TaggedUnion({ Released: { owner: OwnerId }, PollAfter: { millis: Millis } })

/**
 * A contender's own channel: `released@@<previous owner>` hands the mutex over, `look@@<milliseconds>` asks the waiter
 * to poll after that time. Contenders of other implementations use this channel.
 */
export const ContenderMessage = text(ContenderMessageFields, decodeContenderMessage, encodeContenderMessage)

export type ContenderMessage = typeof ContenderMessageFields.Type

const InboxMessageFields = Schema.TaggedUnion({
  Forced: { id: OwnerId },
  Released: { id: OwnerId, owner: OwnerId, grant: Schema.optionalKey(Grant) },
  PollAfter: { id: OwnerId, millis: Millis }
})

/** Not a number if there is no text: `Grant` refuses it. */
const countOf = (text = "") => (countPattern.test(text) ? Number(text) : NaN) as FencingToken

const decodeReleased = (id: string, input: string): typeof InboxMessageFields.Encoded | string => {
  const [, owner = "", token, ...rest] = input.split(separator)
  if (token === undefined) return { _tag: "Released", id, owner }
  return rest.length === 2
    ? {
      _tag: "Released",
      id,
      owner,
      grant: { token: countOf(token), micros: countOf(rest[0]), millis: countOf(rest[1]) }
    }
    : "expected released@@<owner>@@<token>@@<microseconds>@@<milliseconds>"
}

const encodeInboxMessage = (message: typeof InboxMessageFields.Encoded): string => {
  if (message._tag === "Forced") return `forced${separator}${message.id}`
  const text = `${message.id}${separator}${encodeContenderMessage(message)}`
  if (message._tag === "PollAfter" || message.grant === undefined) return text
  const { micros, millis, token } = message.grant
  return [text, token, micros, millis].join(separator)
}

/**
 * The channel of a layer: `<lease id>@@` and a contender message for that waiter, with its grant if there is one, or
 * `forced@@<lease id>` for a lease that was released by force.
 */
export const InboxMessage = text(
  InboxMessageFields,
  (input) => {
    if (input.startsWith("forced@@")) {
      return { _tag: "Forced" as const, id: input.slice("forced@@".length) }
    }
    const end = input.indexOf(separator)
    if (end === -1) return "expected forced@@<lease id>, or <lease id>@@ and a message"
    const id = input.slice(0, end)
    const rest = input.slice(end + separator.length)
    if (rest.startsWith("released@@")) return decodeReleased(id, rest)
    const message = decodeContenderMessage(rest)
    return typeof message === "string" ? message : { ...message, id }
  },
  encodeInboxMessage
)

export type InboxMessage = typeof InboxMessage.Type
