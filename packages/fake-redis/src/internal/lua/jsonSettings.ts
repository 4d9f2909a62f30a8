/**
 * The `cjson` settings, and the functions that get and set them. Here they last for one script run. In Redis, they last
 * until the next SCRIPT FLUSH or restart.
 */
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

type Invalid = "off" | "on" | "null"

export interface JsonSettings {
  encodeDepth: number
  decodeDepth: number
  precision: number
  /**
   * Whether an excessively sparse array is encoded as an object instead of being rejected, and when an array is
   * excessively sparse.
   */
  sparseConverts: boolean
  sparseRatio: number
  sparseSafe: number
  encodesInvalid: Invalid
  decodesInvalid: Invalid
}

export const jsonSettings = (): JsonSettings => ({
  encodeDepth: 1000,
  decodeDepth: 1000,
  precision: 14,
  sparseConverts: false,
  sparseRatio: 2,
  sparseSafe: 10,
  encodesInvalid: "off",
  decodesInvalid: "on"
})

const INT_MAX = 2147483647

export const settingNames = [
  "encode_max_depth",
  "decode_max_depth",
  "encode_number_precision",
  "encode_sparse_array",
  "encode_invalid_numbers",
  "decode_invalid_numbers"
] as const

/** A setter in `cjson`, such as `encode_max_depth`. Sets the values that are passed, and returns the current values. */
export const configureJson = (
  stack: LuaStack,
  L: number,
  name: typeof settingNames[number],
  settings: JsonSettings
): number => {
  const { m } = stack
  const isPassed = (at: number) => at <= m._lua_gettop(L) && m._lua_type(L, at) !== T.nil
  const refused = (at: number, reason: string) => stack.fail(L, `bad argument #${at} to '${name}' (${reason})`)

  const integer = (
    at: number,
    key: "encodeDepth" | "decodeDepth" | "precision" | "sparseRatio" | "sparseSafe",
    minimum: number,
    maximum: number
  ): number | undefined => {
    if (!isPassed(at)) return undefined
    const value = m._lua_tonumber(L, at)
    if (!Number.isInteger(value) || value < minimum || value > maximum) {
      return refused(at, `expected integer between ${minimum} and ${maximum}`)
    }
    settings[key] = value
    return undefined
  }
  const single = (key: "encodeDepth" | "decodeDepth" | "precision", maximum: number): number => {
    const problem = integer(1, key, 1, maximum)
    if (problem !== undefined) return problem
    m._lua_pushnumber(L, settings[key])
    return 1
  }
  const invalid = (key: "encodesInvalid" | "decodesInvalid", values: ReadonlyArray<string>): number => {
    if (isPassed(1)) {
      const value = m._lua_type(L, 1) === T.boolean ? (m._lua_toboolean(L, 1) !== 0 ? "on" : "off") : stack.read(L, 1)
      if (!values.includes(value)) return refused(1, `invalid option '${value}'`)
      settings[key] = value as Invalid
    }
    if (settings[key] === "null") stack.push(L, "null")
    else m._lua_pushboolean(L, settings[key] === "on" ? 1 : 0)
    return 1
  }

  switch (name) {
    case "encode_max_depth":
      return single("encodeDepth", INT_MAX)
    case "decode_max_depth":
      return single("decodeDepth", INT_MAX)
    case "encode_number_precision":
      return single("precision", 14)
    case "encode_invalid_numbers":
      return invalid("encodesInvalid", ["off", "on", "null"])
    case "decode_invalid_numbers":
      return invalid("decodesInvalid", ["off", "on"])
    case "encode_sparse_array": {
      if (isPassed(1)) settings.sparseConverts = m._lua_toboolean(L, 1) !== 0
      const problem = integer(2, "sparseRatio", 0, INT_MAX) ?? integer(3, "sparseSafe", 0, INT_MAX)
      if (problem !== undefined) return problem
      m._lua_pushboolean(L, settings.sparseConverts ? 1 : 0)
      m._lua_pushnumber(L, settings.sparseRatio)
      m._lua_pushnumber(L, settings.sparseSafe)
      return 3
    }
  }
}
