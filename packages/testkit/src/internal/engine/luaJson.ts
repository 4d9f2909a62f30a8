/**
 * `cjson` as Redis ships it: what is an array, how numbers and strings print, and which texts are refused.
 */
import type { LuaModule } from "./luaModule.ts"
import { T, TYPE_NAMES } from "./luaModule.ts"
import { formatG } from "./numbers.ts"

export class JsonError {
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const refuse = (message: string): never => {
  throw new JsonError(message)
}

const MAX_DEPTH = 1000

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
      /["\\/\x00-\x1f\x7f]/g,
      (char) => SHORT[char] ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`
    )
  }"`

const number = (value: number): string =>
  Number.isFinite(value) ? formatG(value, 14) : refuse("Cannot serialise number: must not be NaN or Inf")

export const encodeJson = (m: LuaModule, L: number, at: number, read: (at: number) => string): string => {
  const encode = (index: number, depth: number): string => {
    switch (m._lua_type(L, index)) {
      case T.string:
        return quote(read(index))
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
    if (depth > MAX_DEPTH || m._lua_checkstack(L, 6) === 0) {
      return refuse(`Cannot serialise table: excessive depth (${depth})`)
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
      else if (type === T.string) text += `${quote(read(key))}:`
      else return refuse("Cannot serialise table: table key must be a number or string")
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
    if (most > 10 && most > items * 2) return refuse("Cannot serialise table: excessively sparse array")
    return most
  }
  if (m._lua_gettop(L) !== 1) return refuse("bad argument #1 to 'encode' (expected 1 argument)")
  return encode(at, 0)
}

const NUMBER =
  /[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)/iy

/** Decodes onto the Lua stack. */
export const decodeJson = (m: LuaModule, L: number, text: string, push: (text: string) => void): void => {
  let at = 0
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++
  }
  const tokenName = (): string => {
    if (at >= text.length) return "T_END"
    const names: Readonly<Record<string, string>> = {
      "{": "T_OBJ_BEGIN",
      "}": "T_OBJ_END",
      "[": "T_ARR_BEGIN",
      "]": "T_ARR_END",
      ":": "T_COLON",
      ",": "T_COMMA"
    }
    const char = text[at]!
    const name = names[char]
    if (name !== undefined) return name
    if (char === "\"") {
      string()
      return "T_STRING"
    }
    if (text.startsWith("true", at) || text.startsWith("false", at)) return "T_BOOLEAN"
    if (text.startsWith("null", at)) return "T_NULL"
    NUMBER.lastIndex = at
    return NUMBER.test(text) ? "T_NUMBER" : "invalid token"
  }
  const unexpected = (wanted: string): never => {
    const start = at
    const name = tokenName()
    return refuse(`Expected ${wanted} but found ${name} at character ${start + 1}`)
  }
  const string = (): string => {
    const start = at
    at++
    let out = ""
    for (;;) {
      if (at >= text.length) {
        return refuse(`Expected value but found unexpected end of string at character ${start + 1}`)
      }
      const char = text[at]!
      if (char === "\"") {
        at++
        return out
      }
      if (char !== "\\") {
        if (char < " ") return refuse(`Expected value but found invalid token at character ${start + 1}`)
        out += char
        at++
        continue
      }
      const next = text[at + 1]
      const plain: Readonly<Record<string, string>> = {
        "\"": "\"",
        "\\": "\\",
        "/": "/",
        b: "\b",
        f: "\f",
        n: "\n",
        r: "\r",
        t: "\t"
      }
      if (next === "u") {
        let code = hex(at + 2)
        at += 6
        if (code >= 0xd800 && code < 0xdc00 && text.startsWith("\\u", at)) {
          const low = hex(at + 2)
          code = ((code & 0x3ff) << 10) + (low & 0x3ff) + 0x10000
          at += 6
        }
        out += utf8(code)
      } else if (next !== undefined && plain[next] !== undefined) {
        out += plain[next]
        at += 2
      } else return refuse(`Expected value but found invalid escape code at character ${at + 1}`)
    }
  }
  const hex = (from: number): number => {
    const digits = text.slice(from, from + 4)
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) {
      return refuse(`Expected value but found invalid unicode escape code at character ${from - 1}`)
    }
    return parseInt(digits, 16)
  }
  const value = (depth: number): void => {
    skip()
    const char = text[at]
    if (depth > MAX_DEPTH || m._lua_checkstack(L, 6) === 0) {
      return refuse(`Found too many nested data structures (${depth})`)
    }
    if (char === "\"") return push(string())
    if (char === "{") return object(depth + 1)
    if (char === "[") return array(depth + 1)
    if (text.startsWith("true", at)) {
      at += 4
      return m._lua_pushboolean(L, 1)
    }
    if (text.startsWith("false", at)) {
      at += 5
      return m._lua_pushboolean(L, 0)
    }
    if (text.startsWith("null", at)) {
      at += 4
      return m._lua_pushlightuserdata(L, 0)
    }
    NUMBER.lastIndex = at
    const found = NUMBER.exec(text)
    if (found === null) return unexpected("value")
    at += found[0].length
    const lower = found[0].toLowerCase()
    m._lua_pushnumber(
      L,
      lower.includes("n")
        ? lower.includes("nan") ? NaN : lower.startsWith("-") ? -Infinity : Infinity
        : lower.startsWith("-0x")
        ? -Number(lower.slice(1))
        : Number(found[0])
    )
  }
  const object = (depth: number): void => {
    at++
    m._lua_createtable(L, 0, 0)
    skip()
    if (text[at] === "}") {
      at++
      return
    }
    for (;;) {
      skip()
      if (text[at] !== "\"") return unexpected("object key string")
      push(string())
      skip()
      if (text[at] !== ":") return unexpected("colon")
      at++
      value(depth)
      m._lua_rawset(L, -3)
      skip()
      if (text[at] === "}") {
        at++
        return
      }
      if (text[at] !== ",") return unexpected("comma or object end")
      at++
    }
  }
  const array = (depth: number): void => {
    at++
    m._lua_createtable(L, 0, 0)
    skip()
    if (text[at] === "]") {
      at++
      return
    }
    for (let i = 1;; i++) {
      value(depth)
      m._lua_rawseti(L, -2, i)
      skip()
      if (text[at] === "]") {
        at++
        return
      }
      if (text[at] !== ",") return unexpected("comma or array end")
      at++
    }
  }
  value(0)
  skip()
  if (at < text.length) unexpected("the end")
}

const utf8 = (code: number): string =>
  code < 0x80
    ? String.fromCharCode(code)
    : code < 0x800
    ? String.fromCharCode(0xc0 | (code >> 6), 0x80 | (code & 63))
    : code < 0x10000
    ? String.fromCharCode(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63))
    : String.fromCharCode(
      0xf0 | (code >> 18),
      0x80 | ((code >> 12) & 63),
      0x80 | ((code >> 6) & 63),
      0x80 | (code & 63)
    )
