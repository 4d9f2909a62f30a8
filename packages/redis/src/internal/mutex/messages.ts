/** Codecs and readers for the messages that scripts and Simba contenders publish. Used by `store` and `waiterInbox`. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { Grant } from "@effect-simba/core/MutexStore"
import * as Schema from "effect/Schema"
import { separator, text } from "../client/codecs.ts"
import { plainReader } from "../client/decode.ts"
import { millisPattern, OwnerId, ownerProblem } from "./ownership.ts"

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

/** The counter; `look`'s delay; the token, its lead over the server's clock (µs) and the grant's duration (ms). */
const inboxPattern = RegExp(
  "^(\\d{1,16})@@(?:look@@(0|[1-9]\\d{0,14})|granted@@([1-9]\\d{0,15})@@(0|[1-9]\\d{0,15})@@(0|[1-9]\\d{0,15}))$"
)

const decodeInboxMessage = (input: unknown): InboxMessage | string => {
  if (typeof input !== "string") return "expected a string"
  if (input.startsWith("forced@@")) {
    const id = input.slice("forced@@".length)
    return ownerProblem(id) ?? { _tag: "Forced", id }
  }
  const fields = inboxPattern.exec(input) ?? []
  const counter = fields[1]!
  if (fields[2] !== undefined) return { _tag: "PollAfter", counter, millis: Number(fields[2]) }
  const token = Number(fields[3])
  const micros = token - Number(fields[4])
  const millis = Number(fields[5])
  return Number.isSafeInteger(token) && micros >= 0 && Number.isSafeInteger(millis)
    ? { _tag: "Granted", counter, grant: { token: token as FencingToken, micros, millis } }
    : "expected <counter>@@granted@@<token>@@<microseconds>@@<milliseconds>, <counter>@@look@@<milliseconds>, or " +
      "forced@@<lease id>"
}

/**
 * Reads a message on a layer's channel: `<counter>@@granted@@<token>@@<ahead>@@<millis>`, `<counter>@@look@@<millis>`,
 * or `forced@@<lease id>`.
 */
export const readInboxMessage = plainReader("a message on a layer's channel", decodeInboxMessage)
