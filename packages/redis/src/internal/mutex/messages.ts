/** Codecs for the messages that scripts and Simba contenders publish. Used by `store` and `waiterInbox`. */
import type { Grant } from "@effect-simba/core/MutexStore"
import * as Schema from "effect/Schema"
import { countPattern, readBy, separator, text, tokenOf } from "../client/codecs.ts"
import { millisPattern, OwnerId, ownerProblem } from "./ownership.ts"

const counterPattern = /^\d{1,16}$/

/** A message on a mutex's channel: `acquired@@<owner id>`. */
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
 * A message on a contender's own channel. `released@@<previous owner>` hands the mutex over. `look@@<milliseconds>`
 * asks the waiter to poll after that time. It is used only if contenders from other implementations take part.
 */
export const ContenderMessage = text(ContenderMessageFields, decodeContenderMessage, encodeContenderMessage)

export type ContenderMessage = typeof ContenderMessageFields.Type

/**
 * A message on a layer's channel, addressed to the waiter with this counter, or about a lease that was forcibly
 * released.
 *
 * - `Granted`: the mutex was granted to the waiter.
 * - `PollAfter`: the waiter should poll after `millis`.
 */
export type InboxMessage =
  | { readonly _tag: "Forced"; readonly id: string }
  | { readonly _tag: "Granted"; readonly counter: string; readonly grant: Grant }
  | { readonly _tag: "PollAfter"; readonly counter: string; readonly millis: number }

const count = (text = "") => countPattern.test(text) ? Number(text) : NaN

/** The token, its lead over the server's clock (µs) and the grant's duration (ms). */
const decodeGrant = (text: string | undefined, ahead: string | undefined, period: string | undefined) => {
  const token = tokenOf(text)
  const [distance, millis] = [count(ahead), count(period)]
  return token !== undefined && distance <= token && Number.isSafeInteger(millis)
    ? { token, micros: token - distance, millis }
    : undefined
}

const decodeInboxMessage = (input: string): InboxMessage | string => {
  if (input.startsWith("forced@@")) {
    const id = input.slice("forced@@".length)
    return ownerProblem(id) ?? { _tag: "Forced", id }
  }
  const [counter = "", kind, ...rest] = input.split(separator)
  if (!counterPattern.test(counter)) return "expected forced@@<lease id>, or <counter>@@ and a message"
  if (kind === "granted" && rest.length === 3) {
    const grant = decodeGrant(rest[0], rest[1], rest[2])
    if (grant !== undefined) return { _tag: "Granted", counter, grant }
  }
  if (kind === "look" && rest.length === 1 && millisPattern.test(rest[0]!)) {
    return { _tag: "PollAfter", counter, millis: Number(rest[0]) }
  }
  return "expected granted@@<token>@@<microseconds>@@<milliseconds>, or look@@<milliseconds>"
}

/**
 * A message on a layer's channel: `<counter>@@granted@@<token>@@<ahead>@@<millis>`, `<counter>@@look@@<millis>`, or
 * `forced@@<lease id>`.
 */
export const InboxMessage = readBy(Schema.String, decodeInboxMessage)
