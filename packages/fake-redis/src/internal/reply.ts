/**
 * The values that commands return. Strings are binary, with one character per byte, so that lengths, ranges and order
 * are the same as in Redis. In-process sessions convert them from and to UTF-8. An error is a plain object, because it
 * does not need a stack trace.
 */
import type { BinaryPush, Push, Reply } from "./session.ts"
import { ReplyError } from "./session.ts"

export class Status {
  readonly ok: string
  constructor(ok: string) {
    this.ok = ok
  }
}

export class Fail {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

/** A floating-point reply, formatted as Redis prints it. */
export class Double {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** A map, as alternating keys and values. */
export class Dictionary {
  readonly items: ReadonlyArray<Value>
  constructor(items: ReadonlyArray<Value>) {
    this.items = items
  }
}

export class Members {
  readonly items: ReadonlyArray<Value>
  constructor(items: ReadonlyArray<Value>) {
    this.items = items
  }
}

/** A verbatim string: text with a three-letter format. */
export class Verbatim {
  readonly text: string
  readonly format: string
  constructor(text: string, format = "txt") {
    this.text = text
    this.format = format
  }
}

export class BigNumber {
  readonly digits: string
  constructor(digits: string) {
    this.digits = digits
  }
}

/** A nil that RESP2 encodes as a nil list. */
export class NullList {}

/** The replies to one SUBSCRIBE or UNSUBSCRIBE: one message per channel. */
export class Confirmations {
  readonly items: ReadonlyArray<readonly [kind: string, channel: string | null, count: number]>
  constructor(items: ReadonlyArray<readonly [kind: string, channel: string | null, count: number]>) {
    this.items = items
  }
}

/** A reply inside EXEC's reply, preceded by the messages that the command sent to its own client. */
export class Interleaved {
  readonly pushes: ReadonlyArray<BinaryPush>
  readonly value: Value
  constructor(pushes: ReadonlyArray<BinaryPush>, value: Value) {
    this.pushes = pushes
    this.value = value
  }
}

export type Value =
  | string
  | Interleaved
  | number
  | bigint
  | boolean
  | null
  | Status
  | Fail
  | Double
  | Dictionary
  | Members
  | Verbatim
  | BigNumber
  | NullList
  | Confirmations
  | ReadonlyArray<Value>

export type Typed = Double | Dictionary | Members | Verbatim | BigNumber

/** The form that a type of RESP3 has in RESP2. */
export const inResp2 = (value: Typed): Value => {
  if (value instanceof BigNumber) return value.digits
  return value instanceof Double || value instanceof Verbatim ? value.text : value.items
}

export const isList = (value: Value): value is ReadonlyArray<Value> => Array.isArray(value)

export const OK = new Status("OK")
export const QUEUED = new Status("QUEUED")

export const fail = (message: string): never => {
  throw new Fail(message)
}

export const syntaxError = (): never => fail("ERR syntax error")
export const WRONGTYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
export const NOT_INTEGER = "ERR value is not an integer or out of range"
export const NOT_FLOAT = "ERR value is not a valid float"

const BEYOND_ASCII = /[^\0-\x7f]/

export const toBytes = (text: string): string => {
  if (!BEYOND_ASCII.test(text)) return text
  let out = ""
  for (const char of text) {
    let code = char.codePointAt(0)!
    if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd
    if (code < 0x80) out += String.fromCharCode(code)
    else if (code < 0x800) out += String.fromCharCode(0xc0 | (code >> 6), 0x80 | (code & 63))
    else if (code < 0x10000) {
      out += String.fromCharCode(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
    } else {
      out += String.fromCharCode(
        0xf0 | (code >> 18),
        0x80 | ((code >> 12) & 63),
        0x80 | ((code >> 6) & 63),
        0x80 | (code & 63)
      )
    }
  }
  return out
}

export const fromBytes = (bytes: string): string => {
  if (!BEYOND_ASCII.test(bytes)) return bytes
  let out = ""
  let i = 0
  while (i < bytes.length) {
    const lead = bytes.charCodeAt(i++)
    if (lead < 0x80) {
      out += String.fromCharCode(lead)
      continue
    }
    const size = lead >= 0xc2 && lead < 0xe0 ? 1 : lead >= 0xe0 && lead < 0xf0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0
    let code = size === 1 ? lead & 31 : size === 2 ? lead & 15 : lead & 7
    let taken = 0
    while (taken < size) {
      const next = i < bytes.length ? bytes.charCodeAt(i) : 0
      // The second byte reveals overlong forms, surrogates and code points above U+10FFFF.
      const low = taken > 0 ? 0x80 : lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80
      const high = taken > 0 ? 0xbf : lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf
      if (next < low || next > high) break
      code = (code << 6) | (next & 63)
      i++
      taken++
    }
    out += size > 0 && taken === size ? String.fromCodePoint(code) : "\ufffd"
  }
  return out
}

export const toReply = (value: Value): Reply => {
  if (typeof value === "string") return fromBytes(value)
  if (typeof value === "number" || value === null) return value
  if (typeof value === "bigint") return Number(value)
  if (value instanceof Status) return fromBytes(value.ok)
  if (value instanceof Fail) return new ReplyError(fromBytes(value.message))
  if (isList(value)) return value.map(toReply)
  if (typeof value === "boolean") return value ? 1 : 0
  if (value instanceof Confirmations) return value.items[value.items.length - 1]![2]
  if (value instanceof Interleaved) return toReply(value.value)
  return value instanceof NullList ? null : toReply(inResp2(value))
}

/** Converts a push for an in-process session, which receives only published messages. */
export const toPush = (push: BinaryPush): Push | undefined => {
  if (!("channel" in push)) return undefined
  const text = { channel: fromBytes(push.channel), message: fromBytes(push.message) }
  return push._tag === "pmessage"
    ? { _tag: "pmessage", pattern: fromBytes(push.pattern), ...text }
    : { _tag: "message", ...text }
}
