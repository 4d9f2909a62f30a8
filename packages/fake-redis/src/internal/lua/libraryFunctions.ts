/**
 * Functions in Lua's libraries that the host implements. They check their arguments as Redis does. Their errors contain
 * the caller's position, even if the caller only returns the result of the call.
 */
import { Fail } from "../reply.ts"
import { sha1 } from "../sha1.ts"
import { bitwise, formatInteger, Lrand48, parseDigits, toHex } from "./libraries.ts"
import type { Run } from "./script.ts"
import type { LuaStack } from "./stack.ts"
import { pushValue } from "./values.ts"
import { REGISTRY } from "./wasmModule.ts"

type LibraryFunction = (stack: LuaStack, L: number, run: Run) => number

/** Raises an error in the form that the `redis` library uses: a table that contains the text. */
const raise = (stack: LuaStack, L: number, text: string): number => {
  pushValue(stack, L, new Fail(`ERR ${text}`), false)
  return stack.m._lua_error(L)
}

const bit = (name: string, arity: 1 | 2): LibraryFunction => ({ m }, L) => {
  const value = m._luaL_checknumber(L, 1)
  m._lua_pushnumber(L, bitwise(name, value, arity === 1 ? 0 : m._luaL_checknumber(L, 2)))
  return 1
}

const bitOfAll = (name: string): LibraryFunction => ({ m }, L) => {
  let value = bitwise("tobit", m._luaL_checknumber(L, 1), 0)
  for (let at = 2; at <= m._lua_gettop(L); at++) value = bitwise(name, value, m._luaL_checknumber(L, at))
  m._lua_pushnumber(L, value)
  return 1
}

export const bitFunctions: Readonly<Record<string, LibraryFunction>> = {
  ...Object.fromEntries(["tobit", "bnot", "bswap"].map((name) => [name, bit(name, 1)])),
  ...Object.fromEntries(["lshift", "rshift", "arshift", "rol", "ror"].map((name) => [name, bit(name, 2)])),
  ...Object.fromEntries(["band", "bor", "bxor"].map((name) => [name, bitOfAll(name)])),
  tohex: (stack, L) => {
    const { m } = stack
    const value = m._luaL_checknumber(L, 1)
    stack.push(L, toHex(value, m._lua_gettop(L) < 2 ? 8 : m._luaL_checknumber(L, 2)))
    return 1
  }
}

const random: LibraryFunction = (stack, L, run) => {
  const { m } = stack
  const count = m._lua_gettop(L)
  const drawn = run.lrand?.next() ?? run.host.random()
  if (count > 2) return stack.fail(L, "wrong number of arguments")
  if (count === 0) m._lua_pushnumber(L, drawn)
  else {
    const low = count === 1 ? 1 : m._luaL_checknumber(L, 1) | 0
    const high = m._luaL_checknumber(L, count) | 0
    if (low > high) return stack.fail(L, `bad argument #${count} to 'random' (interval is empty)`)
    m._lua_pushnumber(L, Math.floor(drawn * (high - low + 1)) + low)
  }
  return 1
}

/** `tonumber`, because WebAssembly's 32-bit `long` is too small for long numbers in other bases. */
const tonumber: LibraryFunction = (stack, L) => {
  const { m } = stack
  const base = m._luaL_optinteger(L, 2, 10)
  let value: number | undefined
  if (base === 10) {
    m._luaL_checkany(L, 1)
    if (m._lua_isnumber(L, 1) !== 0) value = m._lua_tonumber(L, 1)
  } else {
    m._luaL_checklstring(L, 1, 0)
    if (base < 2 || base > 36) return stack.fail(L, "bad argument #2 to 'tonumber' (base out of range)")
    value = parseDigits(stack.read(L, 1), base)
  }
  if (value === undefined) m._lua_pushnil(L)
  else m._lua_pushnumber(L, value)
  return 1
}

/** Formats the integers in `string.format` that do not fit in WebAssembly's 32-bit `long`. */
const formatWide = (stack: LuaStack, L: number, count: number): void => {
  const { m } = stack
  m._luaL_checklstring(L, 1, 0)
  let at = 1
  const format = stack.read(L, 1).replace(
    /%([-+ #0]*[0-9]{0,2}(?:\.[0-9]{0,2})?)([A-Za-z%])/g,
    (spec, flags: string, kind) => {
      if (kind === "%") return spec
      at++
      if (at > count || !"diuoxX".includes(kind) || m._lua_isnumber(L, at) === 0 || flags.length > 6) return spec
      stack.push(L, formatInteger(flags, kind, m._lua_tonumber(L, at)))
      m._lua_replace(L, at)
      return "%s"
    }
  )
  stack.push(L, format)
  m._lua_replace(L, 1)
}

/** `string.format`. `ref` refers to the VM's own function. */
const format = (ref: number): LibraryFunction => (stack, L) => {
  const { m } = stack
  const count = m._lua_gettop(L)
  for (let at = 2; at <= count; at++) {
    const value = m._lua_tonumber(L, at)
    if (!(value >= 0 && value < 2147483648)) {
      formatWide(stack, L, count)
      break
    }
  }
  m._lua_rawgeti(L, REGISTRY, ref)
  m._lua_insert(L, 1)
  return m._lua_pcall(L, count, 1, 0) === 0 ? 1 : stack.fail(L, stack.read(L, -1).replace("'?'", "'format'"))
}

/** The functions in the table that the prelude receives. `ref` refers to the VM's `string.format`. */
export const libraryFunctions = (ref: number): Readonly<Record<string, LibraryFunction>> => ({
  tonumber,
  random,
  randomseed: ({ m }, L, run) => {
    run.lrand = new Lrand48(m._luaL_checknumber(L, 1))
    return 0
  },
  format: format(ref),
  sha1hex: (stack, L) => {
    if (stack.m._lua_gettop(L) !== 1) return raise(stack, L, "wrong number of arguments")
    stack.push(L, sha1(stack.read(L, 1)))
    return 1
  },
  log: (stack, L) => {
    const { m } = stack
    if (m._lua_gettop(L) < 2) return raise(stack, L, "redis.log() requires two arguments or more.")
    if (m._lua_isnumber(L, 1) === 0) return raise(stack, L, "First argument must be a number (log level).")
    const level = m._lua_tonumber(L, 1)
    return level < 0 || level > 3 ? raise(stack, L, "Invalid debug level.") : 0
  },
  setresp: (stack, L, run) => {
    const { m } = stack
    if (m._lua_gettop(L) !== 1) return raise(stack, L, "redis.setresp() requires one argument.")
    const version = Math.floor(m._lua_tonumber(L, 1))
    if (version !== 2 && version !== 3) return raise(stack, L, "RESP version must be 2 or 3.")
    run.resp = version
    return 0
  },
  acl_check_cmd: (stack, L, run) => {
    const call = Array.from({ length: stack.m._lua_gettop(L) }, (_, at) => stack.read(L, at + 1))
    if (call.length === 0) return raise(stack, L, "Please specify at least one argument for this redis lib call")
    const may = run.host.mayRun(call)
    if (may === undefined) return raise(stack, L, "Invalid command passed to redis.acl_check_cmd()")
    stack.m._lua_pushboolean(L, may ? 1 : 0)
    return 1
  },
  set_repl: (stack, L) => {
    const { m } = stack
    if (m._lua_gettop(L) !== 1) return raise(stack, L, "redis.set_repl() requires two arguments.")
    return (m._lua_tonumber(L, 1) & ~3) === 0
      ? 0
      : raise(stack, L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
  }
})
