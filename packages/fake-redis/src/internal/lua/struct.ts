/**
 * The `struct` library: packs numbers and strings as C structures, according to a format. Sizes match a 64-bit
 * server.
 */
import type { LuaStack } from "./stack.ts"
import { T, TYPE_NAMES } from "./wasmModule.ts"

class StructError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

interface Item {
  readonly kind: string
  readonly size: number
  readonly padding: number
  readonly little: boolean
}

const largest = 32

const fixed: Readonly<Record<string, number>> = { b: 1, B: 1, h: 2, H: 2, l: 8, L: 8, T: 8, f: 4, d: 8, x: 1 }

/**
 * Parses a format into items, each with the padding before it. The size of "s" is 0, and "c0" takes its length from the
 * previous value.
 */
const parse = function*(name: string, format: string): Generator<Item, void, number> {
  let little = true
  let alignment = 1
  let total = 0
  for (let at = 0; at < format.length;) {
    const kind = format[at++]!
    const count = (fallback: number): number => {
      const digits = /^[0-9]+/.exec(format.slice(at))?.[0]
      if (digits === undefined) return fallback
      at += digits.length
      return Number(digits)
    }
    if (kind === " ") continue
    if (kind === "<" || kind === ">") {
      little = kind === "<"
      continue
    }
    if (kind === "!") {
      alignment = count(8)
      if (alignment === 0 || (alignment & (alignment - 1)) !== 0) {
        throw new StructError(`alignment ${alignment} is not a power of 2`)
      }
      continue
    }
    let size: number
    if (kind === "i" || kind === "I") {
      size = count(4)
      if (size > largest) throw new StructError(`integral size ${size} is larger than limit of ${largest}`)
    } else if (kind === "c") size = count(1)
    else if (kind === "s") size = 0
    else size = fixed[kind] ?? -1
    if (size < 0) throw new StructError(`bad argument #1 to '${name}' (invalid format option '${kind}')`)
    const unit = Math.min(size, alignment)
    const padding = unit < 2 || kind === "c" ? 0 : (unit - total % unit) % unit
    total += padding + (yield { kind, size, padding, little })
  }
}

const isSigned = (kind: string): boolean => kind === "b" || kind === "h" || kind === "l" || kind === "i"

const packInteger = (value: number, size: number, little: boolean): string => {
  const whole = Number.isFinite(value) ? BigInt.asUintN(8 * size, BigInt(Math.trunc(value))) : 0n
  const bytes = Array.from({ length: size }, (_, at) => String.fromCharCode(Number((whole >> BigInt(8 * at)) & 255n)))
  return (little ? bytes : bytes.reverse()).join("")
}

const unpackInteger = (text: string, signed: boolean, little: boolean): number => {
  let whole = 0n
  for (let at = 0; at < text.length; at++) {
    whole = (whole << 8n) | BigInt(text.charCodeAt(little ? text.length - 1 - at : at))
  }
  return Number(signed ? BigInt.asIntN(8 * text.length, whole) : whole)
}

const floats = new DataView(new ArrayBuffer(8))

const packFloat = (value: number, size: number, little: boolean): string => {
  if (size === 4) floats.setFloat32(0, value, little)
  else floats.setFloat64(0, value, little)
  let text = ""
  for (let at = 0; at < size; at++) text += String.fromCharCode(floats.getUint8(at))
  return text
}

const unpackFloat = (text: string, little: boolean): number => {
  for (let at = 0; at < text.length; at++) floats.setUint8(at, text.charCodeAt(at))
  return text.length === 4 ? floats.getFloat32(0, little) : floats.getFloat64(0, little)
}

const isFloat = (kind: string): boolean => kind === "f" || kind === "d"

const packed = (stack: LuaStack, L: number): string => {
  const { m } = stack
  let argument = 2
  let out = ""
  const refuse = (expected: string, at: number): never => {
    const found = TYPE_NAMES[Math.max(T.nil, m._lua_type(L, at))]!
    throw new StructError(`bad argument #${at} to 'pack' (${expected} expected, got ${found})`)
  }
  const items = parse("pack", stack.read(L, 1))
  for (let next = items.next(0); next.done !== true;) {
    const { kind, little, padding, size } = next.value
    out += "\0".repeat(padding)
    const before = out.length
    if (kind === "x") out += "\0"
    else if (kind === "s" || kind === "c") {
      if (m._lua_type(L, argument) !== T.string && m._lua_type(L, argument) !== T.number) refuse("string", argument)
      const text = stack.read(L, argument++)
      const length = kind === "s" || size === 0 ? text.length : size
      if (text.length < length) throw new StructError(`bad argument #${argument} to 'pack' (string too short)`)
      out += text.slice(0, length) + (kind === "s" ? "\0" : "")
    } else {
      if (m._lua_isnumber(L, argument) === 0) refuse("number", argument)
      const value = m._lua_tonumber(L, argument++)
      out += isFloat(kind) ? packFloat(value, size, little) : packInteger(value, size, little)
    }
    next = items.next(out.length - before)
  }
  return out
}

const unpacked = (stack: LuaStack, L: number): ReadonlyArray<string | number> => {
  const { m } = stack
  const data = stack.read(L, 2)
  let at = m._lua_gettop(L) > 2 ? Math.trunc(m._lua_tonumber(L, 3)) - 1 : 0
  if (at === -1) throw new StructError("bad argument #3 to 'unpack' (offset must be 1 or greater)")
  if (at < 0) throw new StructError("bad argument #2 to 'unpack' (data string too short)")
  const values: Array<string | number> = []
  const items = parse("unpack", stack.read(L, 1))
  for (let next = items.next(0); next.done !== true;) {
    const { kind, little, padding } = next.value
    let { size } = next.value
    at += padding
    if (kind === "c" && size === 0) {
      const length = values.pop()
      if (typeof length !== "number") throw new StructError("format 'c0' needs a previous size")
      size = length
    }
    if (kind === "s") {
      const end = data.indexOf("\0", at)
      if (end < 0) throw new StructError("unfinished string in data")
      values.push(data.slice(at, end))
      size = end - at + 1
    } else {
      if (at + size > data.length) throw new StructError("bad argument #2 to 'unpack' (data string too short)")
      const text = data.slice(at, at + size)
      if (kind === "c") values.push(text)
      else if (kind !== "x") {
        values.push(isFloat(kind) ? unpackFloat(text, little) : unpackInteger(text, isSigned(kind), little))
      }
    }
    at += size
    next = items.next(size)
  }
  return [...values, at + 1]
}

const sizeOf = (stack: LuaStack, L: number): number => {
  let total = 0
  const items = parse("size", stack.read(L, 1))
  for (let next = items.next(0); next.done !== true;) {
    const { kind, padding, size } = next.value
    if (kind === "s" || (kind === "c" && size === 0)) {
      throw new StructError(`bad argument #1 to 'size' (option '${kind === "s" ? "s" : "c0"}' has no fixed size)`)
    }
    total += padding + size
    next = items.next(size)
  }
  return total
}

const guarded =
  (read: (stack: LuaStack, L: number) => ReadonlyArray<string | number>) => (stack: LuaStack, L: number) => {
    let values: ReadonlyArray<string | number>
    try {
      values = read(stack, L)
    } catch (error) {
      return stack.fail(L, error instanceof StructError ? error.message : String(error))
    }
    const { m } = stack
    m._lua_settop(L, 0)
    m._lua_checkstack(L, values.length + 4)
    for (const value of values) {
      if (typeof value === "number") m._lua_pushnumber(L, value)
      else stack.push(L, value)
    }
    return values.length
  }

export const structPack = guarded((stack, L) => [packed(stack, L)])
export const structUnpack = guarded(unpacked)
export const structSize = guarded((stack, L) => [sizeOf(stack, L)])
