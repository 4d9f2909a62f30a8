/** BITFIELD and BITFIELD_RO: read and write integers of any width within a string. */
import type { Command, Handler } from "../command.ts"
import { define } from "../command.ts"
import type { Context } from "../context.ts"
import { bigInteger, parseInteger } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { fail, syntaxError } from "../reply.ts"

interface Field {
  readonly signed: boolean
  readonly bits: number
  readonly offset: number
}

interface Operation {
  readonly kind: "get" | "set" | "incrby"
  readonly field: Field
  readonly operand: bigint
  readonly overflow: "wrap" | "sat" | "fail"
}

const largestOffset = 2 ** 32

const typeOf = (text: string): { readonly signed: boolean; readonly bits: number } => {
  const bits = parseInteger(text.slice(1)) ?? 0
  const signed = text[0] === "i"
  if ((!signed && text[0] !== "u") || bits < 1 || bits > (signed ? 64 : 63)) {
    return fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
  }
  return { signed, bits }
}

const offsetOf = (text: string, bits: number): number => {
  const isCounted = text.startsWith("#")
  const number = parseInteger(isCounted ? text.slice(1) : text)
  const offset = number === undefined ? -1 : isCounted ? number * bits : number
  return offset < 0 || offset + bits > largestOffset
    ? fail("ERR bit offset is not an integer or out of range")
    : offset
}

const parse = (args: ReadonlyArray<string>, readOnly: boolean): ReadonlyArray<Operation> => {
  const operations: Array<Operation> = []
  let overflow: Operation["overflow"] = "wrap"
  for (let at = 2; at < args.length; at++) {
    const left = args.length - at - 1
    const kind = args[at]!.toLowerCase()
    if (kind === "overflow" && left >= 1) {
      const mode = args[++at]!.toLowerCase()
      if (mode !== "wrap" && mode !== "sat" && mode !== "fail") return fail("ERR Invalid OVERFLOW type specified")
      overflow = mode
      continue
    }
    if (!(kind === "get" && left >= 2) && !((kind === "set" || kind === "incrby") && left >= 3)) return syntaxError()
    const type = typeOf(args[++at]!)
    const field = { ...type, offset: offsetOf(args[++at]!, type.bits) }
    operations.push({ kind, field, overflow, operand: kind === "get" ? 0n : bigInteger(args[++at]!) })
  }
  return readOnly && operations.some(({ kind }) => kind !== "get")
    ? fail("ERR BITFIELD_RO only supports the GET subcommand")
    : operations
}

const read = (bytes: Uint8Array, { bits, offset, signed }: Field): bigint => {
  let value = 0n
  for (let at = offset; at < offset + bits; at++) {
    value = value << 1n | BigInt((bytes[at >> 3] ?? 0) >> (7 - at % 8) & 1)
  }
  return signed ? BigInt.asIntN(bits, value) : value
}

const write = (bytes: Uint8Array, { bits, offset }: Field, value: bigint): void => {
  for (let index = 0; index < bits; index++) {
    const at = offset + index
    const mask = 1 << (7 - at % 8)
    const isSet = (value >> BigInt(bits - 1 - index) & 1n) === 1n
    bytes[Math.floor(at / 8)] = isSet ? bytes[Math.floor(at / 8)]! | mask : bytes[Math.floor(at / 8)]! & ~mask
  }
}

/**
 * Fits a value into the field, by wrapping or saturating. Returns `undefined` if it does not fit and OVERFLOW is FAIL.
 */
const fitted = ({ bits, signed }: Field, value: bigint, overflow: Operation["overflow"]): bigint | undefined => {
  const wrapped = signed ? BigInt.asIntN(bits, value) : BigInt.asUintN(bits, value)
  if (wrapped === value || overflow === "wrap") return wrapped
  if (overflow === "fail") return undefined
  const maximum = (1n << BigInt(signed ? bits - 1 : bits)) - 1n
  return value > maximum ? maximum : signed ? -maximum - 1n : 0n
}

const next = ({ field, kind, operand, overflow }: Operation, old: bigint): bigint | undefined => {
  if (kind === "incrby") return fitted(field, old + operand, overflow)
  // SET on an unsigned field reads a negative number as an unsigned 64-bit integer
  return fitted(field, field.signed ? operand : BigInt.asUintN(64, operand), overflow)
}

const bitfield = (readOnly: boolean): Handler => (context, args): Value => {
  const operations = parse(args, readOnly)
  const key = args[1]!
  const writes = operations.filter(({ kind }) => kind !== "get")
  const entry = writes.length === 0 ? context.db.readAs(key, "string") : context.db.writeAs(key, "string")
  const size = Math.max(
    entry?.value.length ?? 0,
    ...writes.map(({ field }) => Math.floor((field.offset + field.bits - 1) / 8) + 1)
  )
  const bytes = new Uint8Array(size)
  for (let at = 0; at < (entry?.value.length ?? 0); at++) bytes[at] = entry!.value.charCodeAt(at)
  const isGrown = size > (entry?.value.length ?? 0)
  let changes = 0
  const replies = operations.map((operation): Value => {
    const old = read(bytes, operation.field)
    if (operation.kind === "get") return old
    const value = next(operation, old)
    if (value === undefined) return null
    write(bytes, operation.field, value)
    if (isGrown || value !== old) changes++
    return operation.kind === "set" ? old : value
  })
  if (writes.length > 0) save(context, key, bytes, changes)
  return replies
}

const save = (context: Context, key: string, bytes: Uint8Array, changes: number): void => {
  let text = ""
  for (const byte of bytes) text += String.fromCharCode(byte)
  const entry = context.db.writeAs(key, "string")
  if (entry === undefined) context.db.put(key, "string", text)
  else entry.value = text
  if (changes > 0) context.changed(key, "$", "setbit")
}

export const bitfieldCommands: ReadonlyArray<Command> = [
  define("bitfield", bitfield(false)),
  define("bitfield_ro", bitfield(true))
]
