/** `cmsgpack.pack`: encodes Lua values as MessagePack. */
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

/** The maximum nesting. Deeper tables are encoded as nil, as in Redis. */
const DEEPEST = 16

const view = new DataView(new ArrayBuffer(8))

const bytes = (length: number): string => {
  let text = ""
  for (let at = 0; at < length; at++) text += String.fromCharCode(view.getUint8(at))
  return text
}

const char = String.fromCharCode

const big = (value: number, size: 1 | 2 | 4): string => {
  view.setUint32(0, value)
  return bytes(4).slice(4 - size)
}

const integer = (value: number): string => {
  if (value >= 0) {
    if (value <= 127) return char(value)
    if (value <= 0xff) return char(0xcc) + big(value, 1)
    if (value <= 0xffff) return char(0xcd) + big(value, 2)
    if (value <= 0xffffffff) return char(0xce) + big(value, 4)
  } else {
    if (value >= -32) return char(256 + value)
    if (value >= -128) return char(0xd0) + big(value, 1)
    if (value >= -32768) return char(0xd1) + big(value, 2)
    if (value >= -2147483648) return char(0xd2) + big(value, 4)
  }
  view.setBigInt64(0, BigInt(value))
  return char(value >= 0 ? 0xcf : 0xd3) + bytes(8)
}

const number = (value: number): string => {
  if (Number.isInteger(value) && value >= -(2 ** 63) && value < 2 ** 63) return integer(value)
  if (Math.fround(value) === value) {
    view.setFloat32(0, value)
    return char(0xca) + bytes(4)
  }
  view.setFloat64(0, value)
  return char(0xcb) + bytes(8)
}

const text = (value: string): string => {
  const size = value.length
  if (size < 32) return char(0xa0 | size) + value
  if (size <= 0xff) return char(0xd9) + big(size, 1) + value
  return (size <= 0xffff ? char(0xda) + big(size, 2) : char(0xdb) + big(size, 4)) + value
}

const sized = (small: number, wide: number, count: number): string => {
  if (count <= 15) return char(small | count)
  return count <= 0xffff ? char(wide) + big(count, 2) : char(wide + 1) + big(count, 4)
}

/** Whether the keys of the table at `at` are exactly 1 to n, and the number of its fields. */
const measure = (stack: LuaStack, L: number, at: number): readonly [list: boolean, count: number] => {
  const { m } = stack
  let count = 0
  let largest = 0
  let isList = true
  m._lua_pushnil(L)
  while (m._lua_next(L, at) !== 0) {
    m._lua_settop(L, -2)
    count++
    const key = m._lua_type(L, -1) === T.number ? m._lua_tonumber(L, -1) : 0
    if (key <= 0 || !Number.isInteger(key)) isList = false
    else largest = Math.max(largest, key)
  }
  return [isList && largest === count, count]
}

const table = (stack: LuaStack, L: number, at: number, depth: number): string => {
  const { m } = stack
  m._lua_checkstack(L, 8)
  const [isList, count] = measure(stack, L, at)
  const top = m._lua_gettop(L)
  let out = isList ? sized(0x90, 0xdc, count) : sized(0x80, 0xde, count)
  if (isList) {
    for (let index = 1; index <= count; index++) {
      m._lua_rawgeti(L, at, index)
      out += value(stack, L, top + 1, depth)
      m._lua_settop(L, top)
    }
    return out
  }
  m._lua_pushnil(L)
  while (m._lua_next(L, at) !== 0) {
    // Reading a number as a string would convert the key in place, which would break `lua_next`
    out += value(stack, L, top + 1, depth) + value(stack, L, top + 2, depth)
    m._lua_settop(L, top + 1)
  }
  return out
}

const value = (stack: LuaStack, L: number, at: number, depth: number): string => {
  const { m } = stack
  switch (m._lua_type(L, at)) {
    case T.string:
      return text(stack.read(L, at))
    case T.boolean:
      return char(m._lua_toboolean(L, at) !== 0 ? 0xc3 : 0xc2)
    case T.number:
      return number(m._lua_tonumber(L, at))
    case T.table:
      return depth === DEEPEST ? char(0xc0) : table(stack, L, at, depth + 1)
    default:
      return char(0xc0)
  }
}

export const pack = (stack: LuaStack, L: number): number => {
  const { m } = stack
  const count = m._lua_gettop(L)
  if (count === 0) return stack.fail(L, "bad argument #0 to 'pack' (MessagePack pack needs input.)")
  let out = ""
  for (let at = 1; at <= count; at++) out += value(stack, L, at, 0)
  m._lua_settop(L, 0)
  stack.push(L, out)
  return 1
}
