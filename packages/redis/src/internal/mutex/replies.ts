/** What the script of acquires and releases answers: the usual replies by hand, all others through their codecs. */
import type { FencingToken } from "@effect-simba/core/FencingToken"
import type { AcquireResult, Released, Ticket } from "@effect-simba/core/MutexStore"
import type { ProtocolError } from "@effect-simba/core/SimbaError"
import * as Exit from "effect/Exit"
import { reading } from "../client/decode.ts"
import * as RedisWire from "./messages.ts"
import { decodeOwnership } from "./text.ts"

const decodeAcquire = reading("the reply to an acquire", RedisWire.AcquireReply)
const decodeRelease = reading("the reply to a release", RedisWire.ReleaseReply)

const tokenPattern = /^[1-9]\d{0,15}$/
const ticketPattern = /^\d+\.\d{6}$/
const positionPattern = /^(?:0|[1-9]\d{0,14})$/

const isText = (value: unknown): value is string => typeof value === "string"

const granted = (reply: string): AcquireResult | undefined => {
  const token = tokenPattern.test(reply) ? Number(reply) : 0
  return token > 0 && Number.isSafeInteger(token) ? { _tag: "Granted", token: token as FencingToken } : undefined
}

const refused = (reply: ReadonlyArray<unknown>): AcquireResult | undefined => {
  const [owner, ticket, position, foreign] = reply
  if (
    reply.length !== 4 || !isText(owner) || !isText(ticket) || !isText(position) || !ticketPattern.test(ticket) ||
    !positionPattern.test(position) || (foreign !== "0" && foreign !== "1")
  ) return undefined
  const ownership = decodeOwnership(owner)
  return isText(ownership) ? undefined : {
    _tag: "Refused",
    ownership,
    ticket: ticket as Ticket,
    position: Number(position),
    foreign: foreign === "1"
  }
}

const toAcquireResult = (reply: typeof RedisWire.AcquireReply.Type): AcquireResult => {
  if (typeof reply === "number") return { _tag: "Granted", token: reply }
  const [ownership, ticket, position, foreign] = reply
  return {
    _tag: "Refused",
    ownership,
    ticket: ticket === "" ? undefined : ticket,
    position,
    foreign: foreign === "1"
  }
}

export const readAcquire = (reply: unknown): Exit.Exit<AcquireResult, ProtocolError> => {
  const usual = isText(reply) ? granted(reply) : Array.isArray(reply) ? refused(reply) : undefined
  return usual === undefined ? Exit.map(decodeAcquire(reply), toAcquireResult) : Exit.succeed(usual)
}

const toReleased = (reply: typeof RedisWire.ReleaseReply.Type): Released => {
  if (!Array.isArray(reply)) return { ownership: reply as Released["ownership"], requeued: undefined }
  const [ownership, ticket, token] = reply as Extract<typeof reply, ReadonlyArray<unknown>>
  return { ownership, requeued: { ticket, token: token === "" ? undefined : token } }
}

export const readRelease = (reply: unknown): Exit.Exit<Released, ProtocolError> => {
  const usual = isText(reply) ? decodeOwnership(reply) : ""
  return isText(usual)
    ? Exit.map(decodeRelease(reply), toReleased)
    : Exit.succeed({ ownership: usual, requeued: undefined })
}
