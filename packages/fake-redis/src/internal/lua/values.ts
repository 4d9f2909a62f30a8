/**
 * Converts replies to Lua values and back, by Redis's rules. Nil is `false`, a status or an error is a table with one
 * field, a list ends at its first nil, and numbers lose their fractions.
 */
import { formatDouble, parseDouble } from "../numbers.ts"
import type { Typed, Value } from "../reply.ts"
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
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

/** Pushes a reply. `resp3` keeps RESP3's types, and represents null as nil instead of `false`. */
export const pushValue = (stack: LuaStack, L: number, value: Value, resp3: boolean): void => {
  const { m } = stack
  if (typeof value === "string") stack.push(L, value)
  else if (typeof value === "number") m._lua_pushnumber(L, value)
  else if (typeof value === "bigint") m._lua_pushnumber(L, Number(value))
  else if (typeof value === "boolean") m._lua_pushboolean(L, value ? 1 : 0)
  else if (value === null || value instanceof NullList) {
    if (resp3) m._lua_pushnil(L)
    else m._lua_pushboolean(L, 0)
  } else if (value instanceof Status || value instanceof Fail) {
    m._lua_createtable(L, 0, 1)
    stack.push(L, value instanceof Status ? "ok" : "err")
    stack.push(L, value instanceof Status ? value.ok : value.message)
    m._lua_rawset(L, -3)
    if (value instanceof Fail) {
      stack.push(L, "ignore_error_stats_update")
      m._lua_pushboolean(L, 1)
      m._lua_rawset(L, -3)
    }
  } else if (isList(value)) {
    m._lua_checkstack(L, 8)
    m._lua_createtable(L, value.length, 0)
    value.forEach((item, index) => {
      pushValue(stack, L, item, resp3)
      m._lua_rawseti(L, -2, index + 1)
    })
  } else if (!(value instanceof Interleaved || value instanceof Confirmations)) {
    if (resp3) pushTyped(stack, L, value)
    else pushValue(stack, L, inResp2(value), false)
  }
}

/** Pushes a table with one field, which is named after the type. */
const pushTyped = (stack: LuaStack, L: number, value: Typed): void => {
  const { m } = stack
  m._lua_checkstack(L, 12)
  m._lua_createtable(L, 0, 1)
  if (value instanceof Double) {
    m._lua_pushnumber(L, parseDouble(value.text) ?? NaN)
    return stack.setField(L, "double")
  }
  if (value instanceof BigNumber) {
    stack.push(L, value.digits)
    return stack.setField(L, "big_number")
  }
  if (value instanceof Verbatim) {
    m._lua_createtable(L, 0, 2)
    stack.push(L, value.text)
    stack.setField(L, "string")
    stack.push(L, value.format)
    stack.setField(L, "format")
    return stack.setField(L, "verbatim_string")
  }
  m._lua_createtable(L, 0, value.items.length)
  const step = value instanceof Dictionary ? 2 : 1
  for (let at = 0; at < value.items.length; at += step) {
    pushValue(stack, L, value.items[at]!, true)
    if (step === 2) pushValue(stack, L, value.items[at + 1]!, true)
    else m._lua_pushboolean(L, 1)
    m._lua_rawset(L, -3)
  }
  stack.setField(L, step === 2 ? "map" : "set")
}

const truncate = (value: number): Value => {
  if (Number.isNaN(value) || Math.abs(value) >= 2 ** 63) return -9223372036854775808n
  const whole = Math.trunc(value)
  return Object.is(whole, -0) ? 0 : whole
}

export const toValue = (stack: LuaStack, L: number, at: number, depth: number, resp: 2 | 3): Value => {
  const { m } = stack
  switch (m._lua_type(L, at)) {
    case T.string:
      return stack.read(L, at)
    case T.boolean:
      if (resp === 3) return m._lua_toboolean(L, at) !== 0
      return m._lua_toboolean(L, at) !== 0 ? 1 : null
    case T.number:
      return truncate(m._lua_tonumber(L, at))
    case T.table:
      break
    default:
      return null
  }
  if (depth > 200 || m._lua_checkstack(L, 10) === 0) return new Fail("ERR reached lua stack limit")
  const typed = typedReply(stack, L, at, depth, resp)
  if (typed !== undefined) return typed
  const list: Array<Value> = []
  for (let i = 1;; i++) {
    m._lua_rawgeti(L, at, i)
    if (m._lua_type(L, -1) === T.nil) {
      m._lua_settop(L, -2)
      return list
    }
    list.push(toValue(stack, L, m._lua_gettop(L), depth + 1, resp))
    m._lua_settop(L, -2)
  }
}

const typedReply = (stack: LuaStack, L: number, at: number, depth: number, resp: 2 | 3): Value | undefined => {
  const { m } = stack
  const get = (name: string): number => {
    stack.push(L, name)
    m._lua_rawget(L, at)
    return m._lua_type(L, -1)
  }
  const top = m._lua_gettop(L)
  const done = <A>(value: A): A => {
    m._lua_settop(L, top)
    return value
  }
  if (get("err") === T.string) {
    return done(new Fail(stack.read(L, -1).replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " ")))
  }
  if (get("ok") === T.string) return done(new Status(stack.read(L, -1).replace(/[\r\n]/g, " ")))
  if (get("double") === T.number) return done(new Double(formatDouble(m._lua_tonumber(L, -1))))
  if (get("map") === T.table) return done(new Dictionary(entries(stack, L, depth, true, resp)))
  if (get("set") === T.table) return done(new Members(entries(stack, L, depth, false, resp)))
  if (get("big_number") === T.string) return done(new BigNumber(stack.read(L, -1).replace(/[\r\n]/g, " ")))
  if (get("verbatim_string") === T.table) {
    const table = m._lua_gettop(L)
    const text = stack.field(L, table, "string")
    const format = stack.field(L, table, "format")
    if (text !== undefined && format !== undefined) {
      return done(new Verbatim(text, format.slice(0, 3).padEnd(3).replace(/[\r\n]/g, " ")))
    }
  }
  return done(undefined)
}

const entries = (stack: LuaStack, L: number, depth: number, pairs: boolean, resp: 2 | 3): Array<Value> => {
  const { m } = stack
  const table = m._lua_gettop(L)
  const list: Array<Value> = []
  m._lua_pushnil(L)
  while (m._lua_next(L, table) !== 0) {
    const top = m._lua_gettop(L)
    list.push(toValue(stack, L, top - 1, depth + 1, resp))
    if (pairs) list.push(toValue(stack, L, top, depth + 1, resp))
    m._lua_settop(L, top - 1)
  }
  return list
}
