/** The texts that contenders and Redis exchange, as Schema codecs in both directions. */
import * as Schema from "effect/Schema"
import { separator, text } from "../client/codecs.ts"
import { millisPattern, OwnerId, ownerIdProblem } from "./ownership.ts"

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

const decodeContenderMessage = (input: string): ContenderMessage | string => {
  if (input.startsWith("released@@")) {
    const owner = input.slice("released@@".length)
    return ownerIdProblem(owner) ?? { _tag: "Released", owner }
  }
  if (!input.startsWith("look@@")) return "expected released@@<owner> or look@@<milliseconds>"
  const millis = input.slice("look@@".length)
  return millisPattern.test(millis)
    ? { _tag: "Look", millis: Number(millis) }
    : "expected a whole number of milliseconds after look@@"
}

const encodeContenderMessage = (message: ContenderMessage): string =>
  message._tag === "Released" ? `released${separator}${message.owner}` : `look${separator}${message.millis}`

const ContenderMessageFields = Schema.TaggedUnion({ Released: { owner: OwnerId }, Look: { millis: Millis } })

/**
 * A contender's own channel: `released@@<previous owner>` hands the mutex over, `look@@<milliseconds>` asks to look again
 * after that time. Contenders of other implementations use this channel.
 */
export const ContenderMessage = text(ContenderMessageFields, decodeContenderMessage, encodeContenderMessage)

export type ContenderMessage = typeof ContenderMessageFields.Type

/**
 * The channel of a layer: `<contender id>@@` and a contender message for that waiter, or `forced@@<contender id>` for a
 * lease that was released by force.
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
    if (end === -1) return "expected forced@@<contender id>, or <contender id>@@ and a message"
    const id = input.slice(0, end)
    const message = decodeContenderMessage(input.slice(end + separator.length))
    return typeof message === "string" ? message : ownerIdProblem(id) ?? { ...message, id }
  },
  (message) =>
    message._tag === "Forced"
      ? `forced${separator}${message.id}`
      : `${message.id}${separator}${encodeContenderMessage(message)}`
)

export type InboxMessage = typeof InboxMessage.Type
