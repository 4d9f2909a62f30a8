/** Bit commands on strings: read, set, count and combine bits. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { integer, parseInteger } from "../numbers.ts"
import { fail, syntaxError } from "../reply.ts"

const bytesOf = (context: Context, key: string): string => context.db.readAs(key, "string")?.value ?? ""

const BAD_OFFSET = "ERR bit offset is not an integer or out of range"

const offset = (text: string): number => {
  const value = parseInteger(text)
  return value === undefined || value < 0 || value >= 2 ** 32 ? fail(BAD_OFFSET) : value
}

const bit = (text: string): 0 | 1 =>
  text === "0" ? 0 : text === "1" ? 1 : fail("ERR bit is not an integer or out of range")

const bitAt = (bytes: string, at: number): number => {
  const byte = bytes.charCodeAt(at >> 3)
  return Number.isNaN(byte) ? 0 : (byte >> (7 - at % 8)) & 1
}

const getbit: Handler = (context, args) => {
  const at = offset(args[2]!)
  return bitAt(bytesOf(context, args[1]!), at)
}

const setbit: Handler = (context, args) => {
  const key = args[1]!
  const at = offset(args[2]!)
  const on = bit(args[3]!)
  const entry = context.db.writeAs(key, "string")
  const bytes = (entry?.value ?? "").padEnd(Math.floor(at / 8) + 1, "\0")
  const where = Math.floor(at / 8)
  const mask = 1 << (7 - at % 8)
  const old = bytes.charCodeAt(where)
  const value = bytes.slice(0, where) + String.fromCharCode(on === 1 ? old | mask : old & ~mask) +
    bytes.slice(where + 1)
  const isChanged = value !== entry?.value
  if (entry === undefined) context.db.put(key, "string", value)
  else entry.value = value
  if (isChanged) context.changed(key, "$", "setbit")
  return (old & mask) === 0 ? 0 : 1
}

const isBits = (text: string | undefined): boolean => {
  const unit = text?.toLowerCase()
  return unit === "bit" || (unit === undefined || unit === "byte" ? false : syntaxError())
}

/** Converts a byte or bit range to a bit range. Negative bounds count from the end. */
const bitRange = (bytes: string, from: number, to: number, bits: boolean): readonly [number, number] => {
  const size = bits ? bytes.length * 8 : bytes.length
  const start = from < 0 ? Math.max(0, size + from) : from
  const end = Math.min(to < 0 ? Math.max(0, size + to) : to, size - 1)
  return bits ? [start, end + 1] : [start * 8, (end + 1) * 8]
}

const bitcount: Handler = (context, args) => {
  const bytes = context.db.readAs(args[1]!, "string")?.value
  if (bytes === undefined) return 0
  if (args.length === 3 || args.length > 5) return syntaxError()
  const first = args.length > 2 ? integer(args[2]!) : 0
  const last = args.length > 2 ? integer(args[3]!) : -1
  if (first < 0 && last < 0 && first > last) return 0
  const [from, to] = bitRange(bytes, first, last, isBits(args[4]))
  let count = 0
  for (let at = from; at < to; at++) count += bitAt(bytes, at)
  return count
}

const bitpos: Handler = (context, args) => {
  const wanted = integer(args[2]!)
  if (wanted !== 0 && wanted !== 1) return fail("ERR The bit argument must be 1 or 0.")
  const bytes = context.db.readAs(args[1]!, "string")?.value
  if (bytes === undefined) return wanted === 1 ? -1 : 0
  if (args.length > 6) return syntaxError()
  const first = args.length > 3 ? integer(args[3]!) : 0
  const bits = isBits(args[5])
  const last = args.length > 4 ? integer(args[4]!) : -1
  const [from, to] = bitRange(bytes, first, last, bits)
  for (let at = from; at < to; at++) if (bitAt(bytes, at) === wanted) return at
  // Without an explicit end, the search continues into the zeros after the string
  return wanted === 0 && args[4] === undefined && from < to ? bytes.length * 8 : -1
}

const bitop: Handler = (context, args) => {
  const how = args[1]!.toLowerCase()
  if (!["and", "or", "xor", "not"].includes(how)) return syntaxError()
  if (how === "not" && args.length !== 4) return fail("ERR BITOP NOT must be called with a single source key.")
  const sources = args.slice(3).map((key) => bytesOf(context, key))
  const length = Math.max(...sources.map((source) => source.length))
  let result = ""
  for (let at = 0; at < length; at++) {
    const bytes = sources.map((source) => at < source.length ? source.charCodeAt(at) : 0)
    const byte = how === "not"
      ? ~bytes[0]!
      : bytes.reduce((a, b) => how === "and" ? a & b : how === "or" ? a | b : a ^ b)
    result += String.fromCharCode(byte & 255)
  }
  const key = args[2]!
  if (length > 0) {
    context.db.put(key, "string", result)
    context.changed(key, "$", "set")
  } else if (context.db.peek(key) !== undefined) {
    context.db.remove(key)
    context.changed(key, "g", "del")
  }
  return length
}

export const bitmapCommands: ReadonlyArray<Command> = [
  define("getbit", getbit),
  define("setbit", setbit),
  define("bitcount", bitcount),
  define("bitpos", bitpos),
  define("bitop", bitop)
]
