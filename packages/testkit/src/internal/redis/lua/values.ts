/**
 * Replies as Lua values and back, by the rules of Redis: nil is `false`, a status or an error is a table with one
 * field, a list ends at its first nil, and a number loses its fraction.
 */
import { formatDouble } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail, Status } from "../reply.ts"
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

export const pushValue = (stack: LuaStack, L: number, value: Value): void => {
  const { m } = stack
  if (typeof value === "string") stack.push(L, value)
  else if (typeof value === "number") m._lua_pushnumber(L, value)
  else if (typeof value === "bigint") m._lua_pushnumber(L, Number(value))
  else if (value === null) m._lua_pushboolean(L, 0)
  else if (value instanceof Status || value instanceof Fail) {
    m._lua_createtable(L, 0, 1)
    stack.push(L, value instanceof Status ? "ok" : "err")
    stack.push(L, value instanceof Status ? value.ok : value.message)
    m._lua_rawset(L, -3)
    if (value instanceof Fail) {
      stack.push(L, "ignore_error_stats_update")
      m._lua_pushboolean(L, 1)
      m._lua_rawset(L, -3)
    }
  } else {
    m._lua_checkstack(L, 8)
    m._lua_createtable(L, value.length, 0)
    value.forEach((item, index) => {
      pushValue(stack, L, item)
      m._lua_rawseti(L, -2, index + 1)
    })
  }
}

const truncate = (value: number): Value => {
  if (Number.isNaN(value) || Math.abs(value) >= 2 ** 63) return -9223372036854775808n
  const whole = Math.trunc(value)
  return Object.is(whole, -0) ? 0 : whole
}

export const toValue = (stack: LuaStack, L: number, at: number, depth: number): Value => {
  const { m } = stack
  switch (m._lua_type(L, at)) {
    case T.string:
      return stack.read(L, at)
    case T.boolean:
      return m._lua_toboolean(L, at) !== 0 ? 1 : null
    case T.number:
      return truncate(m._lua_tonumber(L, at))
    case T.table:
      break
    default:
      return null
  }
  if (depth > 200 || m._lua_checkstack(L, 10) === 0) return new Fail("ERR reached lua stack limit")
  const typed = typedReply(stack, L, at, depth)
  if (typed !== undefined) return typed
  const list: Array<Value> = []
  for (let i = 1;; i++) {
    m._lua_rawgeti(L, at, i)
    if (m._lua_type(L, -1) === T.nil) {
      m._lua_settop(L, -2)
      return list
    }
    list.push(toValue(stack, L, m._lua_gettop(L), depth + 1))
    m._lua_settop(L, -2)
  }
}

const typedReply = (stack: LuaStack, L: number, at: number, depth: number): Value | undefined => {
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
  if (get("double") === T.number) return done(formatDouble(m._lua_tonumber(L, -1)))
  if (get("map") === T.table) return done(entries(stack, L, depth, true))
  if (get("set") === T.table) return done(entries(stack, L, depth, false))
  if (get("big_number") === T.string) return done(stack.read(L, -1))
  return done(undefined)
}

const entries = (stack: LuaStack, L: number, depth: number, pairs: boolean): Value => {
  const { m } = stack
  const table = m._lua_gettop(L)
  const list: Array<Value> = []
  m._lua_pushnil(L)
  while (m._lua_next(L, table) !== 0) {
    const top = m._lua_gettop(L)
    list.push(toValue(stack, L, top - 1, depth + 1))
    if (pairs) list.push(toValue(stack, L, top, depth + 1))
    m._lua_settop(L, top - 1)
  }
  return list
}
