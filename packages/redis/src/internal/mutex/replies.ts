/** The codecs named in the mutex scripts' header comments, and readers for the replies to operations. */
import type { MutexState } from "@effect-simba/core/MutexState"
import type { AcquireResult, Released, Stamp, Ticket } from "@effect-simba/core/MutexStore"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { Count, Flag, Token, tokenOf } from "../client/codecs.ts"
import { plainReader, reader } from "../client/decode.ts"
import { decodeOwnership, OwnershipText } from "./ownership.ts"

export { Count, Flag, OwnershipText }

export const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A missing field is encoded as the empty string, because a Lua array ends at its first nil. */
const orEmpty = <T, E extends string>(codec: Schema.Codec<T, E>) => Schema.Union([Schema.Literal(""), codec])

const isNatural = (value: unknown): value is number => Number.isSafeInteger(value) && value as number >= 0

/** Converts a ticket from a reply, in microseconds, to text in seconds. */
const ticketOf = (micros: number) => `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, "0")}` as Ticket

/**
 * Decodes the ages of the ticket and the last token, in microseconds. A token's age may be negative, because tokens
 * can be ahead of the clock.
 */
const decodeStamp = (ticket: number, age: unknown, sinceLast: unknown): Stamp | undefined => {
  if (!Number.isSafeInteger(age) || !Number.isSafeInteger(sinceLast)) return undefined
  const micros = ticket + (age as number)
  const token = micros - (sinceLast as number)
  return isNatural(micros) && isNatural(token) ? { micros, token } : undefined
}

const badRefusal = "expected { ownership, ticket, position, foreign }, and two ages in mode wait"

/**
 * Decodes the reply to an acquire. A grant is a token. A refusal contains the ownership, the ticket or 0, the position
 * among the waiters, and whether contenders from another implementation take part. If the caller was queued, the
 * refusal also contains the ages of the ticket and the last token.
 */
const decodeAcquire = (input: unknown): AcquireResult | string => {
  if (!Array.isArray(input)) {
    const token = tokenOf(input)
    return token === undefined ? "expected a token or a list" : { _tag: "Granted", token }
  }
  const [text, micros, position, foreign, age, sinceLast] = input as ReadonlyArray<unknown>
  if (typeof text !== "string" || !isNatural(micros) || !isNatural(position)) return badRefusal
  if (foreign !== 0 && foreign !== 1) return badRefusal
  const ownership = decodeOwnership(text)
  if (typeof ownership === "string") return ownership
  const refused = { _tag: "Refused", ownership, position, foreign: foreign === 1 } as const
  if (input.length === 4 && micros === 0) return { ...refused, ticket: undefined }
  const stamp = decodeStamp(micros, age, sinceLast)
  return input.length === 6 && micros > 0 && stamp !== undefined
    ? { ...refused, ticket: ticketOf(micros), stamp }
    : badRefusal
}

const badRelease = "expected 1, { ownership, ticket, token } or { ownership, ticket, position, two ages }"

/**
 * Decodes the reply to a release, which is usually 1. If the release queued an attempt, the reply contains the
 * ownership and the attempt's ticket. If the attempt was granted the mutex, its token follows. Otherwise, the number of
 * waiters ahead and the ages of the ticket and the last token follow.
 */
const decodeRelease = (input: unknown): Released | string => {
  if (input === 1) return { requeued: undefined }
  if (!Array.isArray(input)) return badRelease
  const [text, micros, third, age, sinceLast] = input as ReadonlyArray<unknown>
  if (typeof text !== "string" || !isNatural(micros) || micros === 0) return badRelease
  const ownership = decodeOwnership(text)
  if (typeof ownership === "string") return ownership
  const place = { ownership, ticket: ticketOf(micros) }
  const token = tokenOf(third)
  if (token !== undefined) return input.length === 3 ? { requeued: { ...place, token } } : badRelease
  const stamp = decodeStamp(micros, age, sinceLast)
  return input.length === 5 && isNatural(third) && stamp !== undefined
    ? { requeued: { ...place, token: undefined, position: third, stamp } }
    : badRelease
}

export const InspectReply = Schema.Tuple([
  OwnershipText,
  orEmpty(Token),
  Count,
  Schema.Array(Schema.Tuple([Schema.String, Count]))
])

const decodeInspect = reader("the reply to an inspection", InspectReply)

export const readAcquire = plainReader("the reply to an acquire", decodeAcquire)

export const readRelease = plainReader("the reply to a release", decodeRelease)

export const readInspect = (reply: unknown) =>
  Exit.map(decodeInspect(reply), ([ownership, token, waiting, waiters]): MutexState => ({
    ownership,
    token: token === "" ? undefined : token,
    waiting,
    waiters: waiters.map(([id, waited]) => ({ id, waited: Duration.millis(waited) }))
  }))
