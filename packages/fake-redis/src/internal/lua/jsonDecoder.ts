/** `cjson.decode` as Redis ships it, with the same error messages. */
import { refuse } from "./jsonError.ts"
import type { JsonSettings } from "./jsonSettings.ts"
import type { LuaStack } from "./stack.ts"

const NUMBER =
  /[-+]?(?:0[xX][0-9a-fA-F]+|[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|inf(?:inity)?|nan)/iy

const TOKENS: Readonly<Record<string, string>> = {
  "{": "T_OBJ_BEGIN",
  "}": "T_OBJ_END",
  "[": "T_ARR_BEGIN",
  "]": "T_ARR_END",
  ":": "T_COLON",
  ",": "T_COMMA"
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\"": "\"",
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t"
}

/** Parses JSON, and pushes the result onto the Lua stack. */
export const decodeJson = (stack: LuaStack, L: number, text: string, settings: JsonSettings): void => {
  const { m } = stack
  let at = 0
  const skip = () => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++
  }
  const tokenName = (): string => {
    if (at >= text.length) return "T_END"
    const char = text[at]!
    const name = TOKENS[char]
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
      if (next === "u") {
        let code = hex(at + 2)
        at += 6
        if (code >= 0xd800 && code < 0xdc00 && text.startsWith("\\u", at)) {
          const low = hex(at + 2)
          code = ((code & 0x3ff) << 10) + (low & 0x3ff) + 0x10000
          at += 6
        }
        out += utf8(code)
      } else if (next !== undefined && ESCAPES[next] !== undefined) {
        out += ESCAPES[next]
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
    if (char === "\"") return stack.push(L, string())
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
    const lower = found[0].toLowerCase()
    if (settings.decodesInvalid === "off" && /[nx]/.test(lower)) {
      return refuse(`Expected value but found invalid number at character ${at + 1}`)
    }
    at += found[0].length
    m._lua_pushnumber(
      L,
      lower.includes("n")
        ? lower.includes("nan") ? NaN : lower.startsWith("-") ? -Infinity : Infinity
        : lower.startsWith("-0x")
        ? -Number(lower.slice(1))
        : Number(found[0])
    )
  }
  const descend = (depth: number) => {
    at++
    if (depth > settings.decodeDepth || m._lua_checkstack(L, 6) === 0) {
      refuse(`Found too many nested data structures (${depth}) at character ${at}`)
    }
  }
  const object = (depth: number): void => {
    descend(depth)
    m._lua_createtable(L, 0, 0)
    skip()
    if (text[at] === "}") {
      at++
      return
    }
    for (;;) {
      skip()
      if (text[at] !== "\"") return unexpected("object key string")
      stack.push(L, string())
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
    descend(depth)
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
