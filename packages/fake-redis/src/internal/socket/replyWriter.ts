/** Encodes replies and pushes in RESP2 and RESP3. Each character of a string is one byte. */
import type { Value } from "../reply.ts"
import {
  BigNumber,
  Confirmations,
  Dictionary,
  Double,
  Fail,
  inResp2,
  Interleaved,
  isList,
  Members,
  NullList,
  Status,
  Verbatim
} from "../reply.ts"
import type { BinaryPush } from "../session.ts"

export type Protocol = 2 | 3

const bulk = (text: string): string => `$${text.length}\r\n${text}\r\n`

const list = (items: ReadonlyArray<Value>, protocol: Protocol): string => {
  let text = ""
  for (const item of items) text += writeReply(item, protocol)
  return text
}

const counted = (mark: string, items: ReadonlyArray<Value>, protocol: Protocol): string =>
  `${mark}${items.length}\r\n${list(items, protocol)}`

const pushed = (items: ReadonlyArray<Value>, protocol: Protocol): string =>
  counted(protocol === 3 ? ">" : "*", items, protocol)

const withoutLineEnds = (text: string): string => /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, " ") : text

export const writeReply = (value: Value, protocol: Protocol): string => {
  if (typeof value === "string") return bulk(value)
  if (typeof value === "number" || typeof value === "bigint") return `:${integer(value)}\r\n`
  if (value === null) return protocol === 3 ? "_\r\n" : "$-1\r\n"
  if (value instanceof Status) return `+${withoutLineEnds(value.ok)}\r\n`
  if (value instanceof Fail) return `-${withoutLineEnds(value.message)}\r\n`
  if (isList(value)) return counted("*", value, protocol)
  if (typeof value === "boolean") {
    if (protocol === 3) return value ? "#t\r\n" : "#f\r\n"
    return value ? ":1\r\n" : ":0\r\n"
  }
  if (value instanceof NullList) return protocol === 3 ? "_\r\n" : "*-1\r\n"
  if (value instanceof Interleaved) {
    return value.pushes.map((push) => writePush(push, protocol)).join("") + writeReply(value.value, protocol)
  }
  if (value instanceof Confirmations) return value.items.map((item) => pushed(item, protocol)).join("")
  if (protocol === 2) return writeReply(inResp2(value), protocol)
  if (value instanceof Double) return `,${value.text}\r\n`
  if (value instanceof Verbatim) return `=${value.text.length + 4}\r\n${value.format}:${value.text}\r\n`
  if (value instanceof BigNumber) return `(${value.digits}\r\n`
  if (value instanceof Members) return counted("~", value.items, protocol)
  return value instanceof Dictionary ? `%${value.items.length / 2}\r\n${list(value.items, protocol)}` : ""
}

/** Prints all digits of a whole number. Beyond 2^53, `String` rounds them or prints an exponent. */
const integer = (value: number | bigint): string =>
  typeof value === "number" && Math.abs(value) > 2 ** 53 ? BigInt(value).toString() : String(value)

export const writePush = (push: BinaryPush, protocol: Protocol): string => {
  switch (push._tag) {
    case "message":
    case "smessage":
      return pushed([push._tag, push.channel, push.message], protocol)
    case "pmessage":
      return pushed(["pmessage", push.pattern, push.channel, push.message], protocol)
    case "tracking-redir-broken":
      return pushed([push._tag, push.target], protocol)
    case "monitor":
      return `+${push.line}\r\n`
    case "invalidate":
      return protocol === 3
        ? pushed(["invalidate", push.keys ?? null], protocol)
        : pushed(["message", "__redis__:invalidate", push.keys ?? new NullList()], protocol)
  }
}
