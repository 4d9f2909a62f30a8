/**
 * Implements `cjson.decode` as Redis ships it. Accepts the same texts, including some that are not JSON, such as `0x10`
 * and strings with control characters, and has the same error messages. `json.ts` makes it a Lua function.
 */
import { refuse } from "./jsonError.ts"
import type { JsonSettings } from "./jsonSettings.ts"
import type { LuaStack } from "./stack.ts"

/** The numbers that C's `strtod` accepts. The groups are the digits and the exponent of a hexadecimal number. */
const NUMBER = new RegExp(
  [
    "[-+]?(?:0x([0-9a-f]+\\.?[0-9a-f]*|\\.[0-9a-f]+)(?:p([-+]?[0-9]+))?",
    "(?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:e[-+]?[0-9]+)?",
    "inf(?:inity)?",
    "nan(?:\\([0-9a-z_]*\\))?)"
  ].join("|"),
  "iy"
)

/** The start of a number that is not JSON. `cjson` accepts such numbers unless `decode_invalid_numbers` is off. */
const INVALID_NUMBER = /\+|-?(?:0[x0-9]|inf|nan)/iy

const TOKENS: Readonly<Record<string, string>> = {
  "{": "T_OBJ_BEGIN",
  "}": "T_OBJ_END",
  "[": "T_ARR_BEGIN",
  "]": "T_ARR_END",
  ":": "T_COLON",
  ",": "T_COMMA",
  "\0": "T_END"
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

/** Parses JSON, and pushes the result onto the Lua stack. The text, one character per byte, ends at the first NUL. */
export const decodeJson = (stack: LuaStack, L: number, text: string, settings: JsonSettings): void => {
  const { m } = stack
  let at = 0
  let depth = 0
  // The current token: its name in error messages, its index and its value
  let token = ""
  let start = 0
  let value: string | number | boolean = ""

  const unexpected = (wanted: string): never =>
    refuse(`Expected ${wanted} but found ${token} at character ${start + 1}`)

  /** Makes an error the current token. The caller then rejects this token and reports which token it expected. */
  const wrong = (problem: string) => {
    token = problem
    start = at
  }

  const advance = (name: string, content: string | number | boolean, end: number) => {
    token = name
    value = content
    at = end
  }

  const next = (): void => {
    while (at < text.length && " \t\n\r".includes(text[at]!)) at++
    start = at
    const char = text[at] ?? "\0"
    const name = TOKENS[char]
    INVALID_NUMBER.lastIndex = at
    if (name !== undefined) advance(name, "", name === "T_END" ? at : at + 1)
    else if (char === "\"") string()
    else if (char === "-" || (char >= "0" && char <= "9")) {
      if (settings.decodesInvalid === "off" && INVALID_NUMBER.test(text)) wrong("invalid number")
      else number()
    } else if (text.startsWith("true", at)) advance("T_BOOLEAN", true, at + 4)
    else if (text.startsWith("false", at)) advance("T_BOOLEAN", false, at + 5)
    else if (text.startsWith("null", at)) advance("T_NULL", "", at + 4)
    else if (settings.decodesInvalid === "on" && INVALID_NUMBER.test(text)) number()
    else wrong("invalid token")
  }

  const number = () => {
    NUMBER.lastIndex = at
    const found = NUMBER.exec(text)
    if (found === null) wrong("invalid number")
    else advance("T_NUMBER", toNumber(found[0].toLowerCase(), found[1], found[2]), at + found[0].length)
  }

  const string = () => {
    at++
    let out = ""
    for (;;) {
      const char = text[at] ?? "\0"
      if (char === "\"") return advance("T_STRING", out, at + 1)
      if (char === "\0") return wrong("unexpected end of string")
      if (char !== "\\") {
        out += char
        at++
        continue
      }
      const letter = text[at + 1] ?? ""
      if (letter === "u") {
        const code = codePoint(text, at)
        if (code === undefined) return wrong("invalid unicode escape code")
        out += utf8(code)
        at += code < 0x10000 ? 6 : 12
      } else if (ESCAPES[letter] !== undefined) {
        out += ESCAPES[letter]
        at += 2
      } else return wrong("invalid escape code")
    }
  }

  /** Pushes the value that begins with the current token. */
  const push = (): void => {
    switch (token) {
      case "T_STRING":
        return stack.push(L, value as string)
      case "T_NUMBER":
        return m._lua_pushnumber(L, value as number)
      case "T_BOOLEAN":
        return m._lua_pushboolean(L, value === true ? 1 : 0)
      case "T_NULL":
        return m._lua_pushlightuserdata(L, 0)
      case "T_OBJ_BEGIN":
        return object()
      case "T_ARR_BEGIN":
        return array()
      default:
        return unexpected("value")
    }
  }

  /** Pushes a table, and adds `item` after `item` to it until the token `end`. */
  const table = (end: string, wanted: string, slots: number, item: (index: number) => void): void => {
    depth++
    if (depth > settings.decodeDepth || m._lua_checkstack(L, slots) === 0) {
      refuse(`Found too many nested data structures (${depth}) at character ${at}`)
    }
    m._lua_createtable(L, 0, 0)
    next()
    for (let i = 1; i > 1 || token !== end; i++) {
      item(i)
      next()
      if (token === end) break
      if (token !== "T_COMMA") unexpected(wanted)
      next()
    }
    depth--
  }

  const object = () =>
    table("T_OBJ_END", "comma or object end", 3, () => {
      if (token !== "T_STRING") unexpected("object key string")
      stack.push(L, value as string)
      next()
      if (token !== "T_COLON") unexpected("colon")
      next()
      push()
      m._lua_rawset(L, -3)
    })

  const array = () =>
    table("T_ARR_END", "comma or array end", 2, (index) => {
      push()
      m._lua_rawseti(L, -2, index)
    })

  if (text.length > 1 && text.slice(0, 2).includes("\0")) refuse("JSON parser does not support UTF-16 or UTF-32")
  next()
  push()
  next()
  if (token !== "T_END") unexpected("the end")
}

/** Converts a number as `strtod` does. `digits` and `exponent` are set if it is hexadecimal. */
const toNumber = (text: string, digits: string | undefined, exponent: string | undefined): number => {
  const sign = text.startsWith("-") ? -1 : 1
  if (text.includes("nan")) return NaN
  if (text.includes("inf")) return sign * Infinity
  if (digits === undefined) return Number(text)
  const [whole = "", fraction = ""] = digits.split(".")
  return sign * Number(`0x${whole}${fraction}`) * 2 ** (Number(exponent ?? 0) - 4 * fraction.length)
}

const hex = (text: string, from: number): number => {
  const digits = text.slice(from, from + 4)
  return /^[0-9a-fA-F]{4}$/.test(digits) ? parseInt(digits, 16) : -1
}

/** Returns the code point of the `\u` sequence, or surrogate pair, at `at`. Returns undefined if it is invalid. */
const codePoint = (text: string, at: number): number | undefined => {
  const code = hex(text, at + 2)
  if (code < 0) return undefined
  if (code < 0xd800 || code > 0xdfff) return code
  const low = text.startsWith("\\u", at + 6) ? hex(text, at + 8) : -1
  if (code > 0xdbff || low < 0xdc00 || low > 0xdfff) return undefined
  return ((code & 0x3ff) << 10) + (low & 0x3ff) + 0x10000
}

/** Encodes a code point in UTF-8, one character per byte. */
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
