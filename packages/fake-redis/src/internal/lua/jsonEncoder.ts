/**
 * Implements `cjson.encode` as Redis ships it: which tables are arrays, how numbers and strings are printed, and which
 * values it refuses.
 */
import { formatG } from "../numbers.ts"
import { refuse } from "./jsonError.ts"
import type { JsonSettings } from "./jsonSettings.ts"
import type { LuaStack } from "./stack.ts"
import { T, TYPE_NAMES } from "./wasmModule.ts"

const SHORT: Readonly<Record<string, string>> = {
  "\"": "\\\"",
  "\\": "\\\\",
  "/": "\\/",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t"
}

const quote = (text: string): string =>
  `"${
    text.replace(
      // oxlint-disable-next-line no-control-regex -- control characters are what JSON escapes
      /["\\/\x00-\x1f\x7f]/g,
      (char) => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
    )
  }"`

/** Encodes a C function's only argument. */
export const encodeJson = (stack: LuaStack, L: number, settings: JsonSettings): string => {
  const { m } = stack
  const { encodesInvalid, precision } = settings
  const number = (value: number): string => {
    if (!Number.isFinite(value)) {
      if (encodesInvalid === "off") return refuse("Cannot serialise number: must not be NaN or Inf")
      if (encodesInvalid === "null") return "null"
    }
    if (precision !== 14) return formatG(value, precision)
    // Lua also prints 14 digits. Unlike JavaScript, it rounds a tie to the even digit
    m._lua_pushnumber(L, value)
    const text = stack.read(L, -1)
    m._lua_settop(L, -2)
    return text
  }
  const encode = (index: number, depth: number): string => {
    switch (m._lua_type(L, index)) {
      case T.string:
        return quote(stack.read(L, index))
      case T.number:
        return number(m._lua_tonumber(L, index))
      case T.boolean:
        return m._lua_toboolean(L, index) !== 0 ? "true" : "false"
      case T.nil:
        return "null"
      case T.lightuserdata:
        if (m._lua_touserdata(L, index) === 0) return "null"
        return refuse("Cannot serialise userdata: type not supported")
      case T.table:
        return table(index, depth + 1)
      default:
        return refuse(`Cannot serialise ${TYPE_NAMES[m._lua_type(L, index)] ?? "no value"}: type not supported`)
    }
  }
  const table = (index: number, depth: number): string => {
    if (depth > settings.encodeDepth || m._lua_checkstack(L, 6) === 0) {
      return refuse(`Cannot serialise, excessive nesting (${depth})`)
    }
    const length = arrayLength(index)
    if (length > 0) {
      let text = "["
      for (let i = 1; i <= length; i++) {
        m._lua_rawgeti(L, index, i)
        text += (i > 1 ? "," : "") + encode(m._lua_gettop(L), depth)
        m._lua_settop(L, -2)
      }
      return `${text}]`
    }
    let text = ""
    m._lua_pushnil(L)
    while (m._lua_next(L, index) !== 0) {
      const value = m._lua_gettop(L)
      const key = value - 1
      const type = m._lua_type(L, key)
      if (text !== "") text += ","
      if (type === T.number) text += `"${number(m._lua_tonumber(L, key))}":`
      else if (type === T.string) text += `${quote(stack.read(L, key))}:`
      else return refuse(`Cannot serialise ${TYPE_NAMES[type]!}: table key must be a number or string`)
      text += encode(value, depth)
      m._lua_settop(L, key)
    }
    return `{${text}}`
  }
  const arrayLength = (index: number): number => {
    let most = 0
    let items = 0
    m._lua_pushnil(L)
    while (m._lua_next(L, index) !== 0) {
      const top = m._lua_gettop(L)
      const key = m._lua_type(L, top - 1) === T.number ? m._lua_tonumber(L, top - 1) : 0
      if (!Number.isInteger(key) || key < 1) {
        m._lua_settop(L, top - 2)
        return -1
      }
      most = Math.max(most, key)
      items++
      m._lua_settop(L, top - 1)
    }
    const { sparseConverts, sparseRatio, sparseSafe } = settings
    if (sparseRatio > 0 && most > sparseSafe && most > items * sparseRatio) {
      return sparseConverts ? -1 : refuse("Cannot serialise table: excessively sparse array")
    }
    return most
  }
  if (m._lua_gettop(L) !== 1) return refuse("bad argument #1 to 'encode' (expected 1 argument)")
  return encode(1, 0)
}
