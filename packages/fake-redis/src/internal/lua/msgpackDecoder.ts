/** `cmsgpack.unpack`: decodes MessagePack to Lua values. */
import type { LuaStack } from "./stack.ts"
import { T, TYPE_NAMES } from "./wasmModule.ts"

export class MsgpackError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const view = new DataView(new ArrayBuffer(8))

class Reader {
  readonly text: string
  at: number
  private readonly stack: LuaStack
  private readonly L: number

  constructor(stack: LuaStack, L: number, text: string, at: number) {
    this.stack = stack
    this.L = L
    this.text = text
    this.at = at
  }

  private take(size: number): string {
    if (this.at + size > this.text.length) throw new MsgpackError("Missing bytes in input.")
    this.at += size
    return this.text.slice(this.at - size, this.at)
  }

  private load(size: number): DataView {
    const text = this.take(size)
    for (let i = 0; i < size; i++) view.setUint8(i, text.charCodeAt(i))
    return view
  }

  private size(bytes: 1 | 2 | 4): number {
    const data = this.load(bytes)
    return bytes === 1 ? data.getUint8(0) : bytes === 2 ? data.getUint16(0) : data.getUint32(0)
  }

  private list(count: number): void {
    const { L, stack: { m } } = this
    m._lua_createtable(L, 0, 0)
    for (let index = 1; index <= count; index++) {
      this.value()
      m._lua_rawseti(L, -2, index)
    }
  }

  private map(count: number): void {
    const { L, stack: { m } } = this
    m._lua_createtable(L, 0, 0)
    for (let index = 0; index < count; index++) {
      this.value()
      const key = m._lua_type(L, -1)
      if (key === T.nil) throw new MsgpackError("table index is nil")
      this.value()
      m._lua_rawset(L, -3)
    }
  }

  private text_(size: number): void {
    this.stack.push(this.L, this.take(size))
  }

  private number(value: number): void {
    this.stack.m._lua_pushnumber(this.L, value)
  }

  /** Decodes the next value, and pushes it. */
  value(): void {
    const { L, stack: { m } } = this
    if (m._lua_checkstack(L, 8) === 0) throw new MsgpackError("too many values")
    const lead = this.take(1).charCodeAt(0)
    if (lead < 0x80) return this.number(lead)
    if (lead < 0x90) return this.map(lead & 15)
    if (lead < 0xa0) return this.list(lead & 15)
    if (lead < 0xc0) return this.text_(lead & 31)
    if (lead >= 0xe0) return this.number(lead - 256)
    switch (lead) {
      case 0xc0:
        return m._lua_pushnil(L)
      case 0xc2:
      case 0xc3:
        return m._lua_pushboolean(L, lead & 1)
      case 0xca:
        return this.number(this.load(4).getFloat32(0))
      case 0xcb:
        return this.number(this.load(8).getFloat64(0))
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.number(this.size(1 << (lead - 0xcc) as 1 | 2 | 4))
      case 0xcf:
        return this.number(Number(this.load(8).getBigInt64(0)))
      case 0xd0:
        return this.number(this.load(1).getInt8(0))
      case 0xd1:
        return this.number(this.load(2).getInt16(0))
      case 0xd2:
        return this.number(this.load(4).getInt32(0))
      case 0xd3:
        return this.number(Number(this.load(8).getBigInt64(0)))
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.text_(this.size(1 << (lead - 0xd9) as 1 | 2 | 4))
      case 0xdc:
        return this.list(this.size(2))
      case 0xdd:
        return this.list(this.size(4))
      case 0xde:
        return this.map(this.size(2))
      case 0xdf:
        return this.map(this.size(4))
      default:
        throw new MsgpackError("Bad data format in input.")
    }
  }
}

/**
 * Pushes up to `limit` values, or all if it is 0, starting at an offset. If requested, the first pushed value is the
 * new offset, or -1 at the end.
 */
const unpackFrom = (stack: LuaStack, L: number, at: number, limit: number, withOffset: boolean): number => {
  const { m } = stack
  let problem: string
  try {
    const reader = new Reader(stack, L, stack.read(L, 1), at)
    m._lua_settop(L, 0)
    if (withOffset) m._lua_pushnumber(L, 0)
    let count = 0
    while (reader.at < reader.text.length && (limit === 0 || count < limit)) {
      reader.value()
      count++
    }
    if (withOffset) {
      m._lua_pushnumber(L, reader.at === reader.text.length ? -1 : reader.at)
      m._lua_replace(L, 1)
    }
    return m._lua_gettop(L)
  } catch (error) {
    problem = error instanceof MsgpackError ? error.message : String(error)
  }
  return stack.fail(L, problem)
}

const isText = (stack: LuaStack, L: number): boolean => {
  const type = stack.m._lua_type(L, 1)
  return type === T.string || type === T.number
}

const noText = (stack: LuaStack, L: number, name: string): number =>
  stack.fail(
    L,
    `bad argument #1 to '${name}' (string expected, got ${TYPE_NAMES[stack.m._lua_type(L, 1)] ?? "no value"})`
  )

export const unpack = (stack: LuaStack, L: number): number =>
  isText(stack, L) ? unpackFrom(stack, L, 0, 0, false) : noText(stack, L, "unpack")

const offsetAt = (stack: LuaStack, L: number, index: number): number => {
  const { m } = stack
  return m._lua_gettop(L) >= index ? Math.trunc(m._lua_tonumber(L, index)) : 0
}

const bounded = (stack: LuaStack, L: number, name: string, limit: number, offset: number): number => {
  if (!isText(stack, L)) return noText(stack, L, name)
  const { length } = stack.read(L, 1)
  if (offset < 0 || limit < 0) {
    return stack.fail(L, `Invalid request to unpack with offset of ${offset} and limit of ${length}.`)
  }
  if (offset > length) return stack.fail(L, `Start offset ${offset} greater than input length ${length}.`)
  return unpackFrom(stack, L, offset, limit, limit > 0)
}

export const unpackOne = (stack: LuaStack, L: number): number =>
  bounded(stack, L, "unpack_one", 1, offsetAt(stack, L, 2))

export const unpackLimit = (stack: LuaStack, L: number): number =>
  bounded(stack, L, "unpack_limit", offsetAt(stack, L, 2), offsetAt(stack, L, 3))
