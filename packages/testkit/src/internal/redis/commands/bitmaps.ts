/**
 * Bits of strings: reading, setting, counting, combining.
 */
import type { Command, Context, Handler } from "../command.ts"
import { define } from "../command.ts"
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
  if (entry === undefined) context.db.put(key, "string", value)
  else entry.value = value
  context.changed(key, "$", "setbit")
  return (old & mask) === 0 ? 0 : 1
}

const isBits = (text: string | undefined): boolean => {
  const unit = text?.toLowerCase()
  return unit === "bit" || (unit === undefined || unit === "byte" ? false : syntaxError())
}

/** A range of bits from a range of bytes or bits. */
const bitRange = (bytes: string, from: string, to: string, bits: boolean): readonly [number, number] => {
  const size = bits ? bytes.length * 8 : bytes.length
  let start = integer(from)
  let end = integer(to)
  if (start < 0 && end < 0 && start > end) return [0, 0]
  if (start < 0) start = Math.max(0, size + start)
  if (end < 0) end = Math.max(0, size + end)
  end = Math.min(end, size - 1)
  return bits ? [start, end + 1] : [start * 8, (end + 1) * 8]
}

const bitcount: Handler = (context, args) => {
  const bytes = bytesOf(context, args[1]!)
  if (bytes === "") return 0
  if (args.length === 3 || args.length > 5) return syntaxError()
  const bits = args.length > 2 && isBits(args[4])
  const [from, to] = args.length > 2 ? bitRange(bytes, args[2]!, args[3]!, bits) : [0, bytes.length * 8]
  let count = 0
  for (let at = from; at < to; at++) count += bitAt(bytes, at)
  return count
}

const bitpos: Handler = (context, args) => {
  const wanted = args[2] === "0" ? 0 : args[2] === "1" ? 1 : fail("ERR The bit argument must be 1 or 0.")
  if (args.length > 6) return syntaxError()
  const bits = isBits(args[5])
  const entry = context.db.readAs(args[1]!, "string")
  if (entry === undefined) return wanted === 1 ? -1 : 0
  const bytes = entry.value
  const [from, to] = bitRange(bytes, args[3] ?? "0", args[4] ?? "-1", bits)
  for (let at = from; at < to; at++) if (bitAt(bytes, at) === wanted) return at
  // The string goes on with zeros for one who named no end
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
  define("getbit", 3, "", getbit),
  define("setbit", 4, "w", setbit),
  define("bitcount", -2, "", bitcount),
  define("bitpos", -3, "", bitpos),
  define("bitop", -4, "w", bitop)
]
