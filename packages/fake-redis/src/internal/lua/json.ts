/**
 * `cjson.encode` and `cjson.decode` as C functions for Lua. Errors are raised outside `try`, because the VM unwinds
 * with a JavaScript exception that must not be caught.
 */
import { decodeJson } from "./jsonDecoder.ts"
import { encodeJson } from "./jsonEncoder.ts"
import { JsonError } from "./jsonError.ts"
import type { JsonSettings } from "./jsonSettings.ts"
import type { LuaStack } from "./stack.ts"
import { T, TYPE_NAMES } from "./wasmModule.ts"

const failed = (stack: LuaStack, L: number, error: unknown): number =>
  stack.fail(L, error instanceof JsonError ? error.message : String(error))

export const encode = (stack: LuaStack, L: number, settings: JsonSettings): number => {
  let text: string
  try {
    text = encodeJson(stack, L, settings)
  } catch (error) {
    return failed(stack, L, error)
  }
  stack.m._lua_settop(L, 0)
  stack.push(L, text)
  return 1
}

export const decode = (stack: LuaStack, L: number, settings: JsonSettings): number => {
  const type = stack.m._lua_type(L, 1)
  const problem = stack.m._lua_gettop(L) !== 1
    ? "expected 1 argument"
    : type !== T.string && type !== T.number
    ? `string expected, got ${TYPE_NAMES[type]}`
    : undefined
  if (problem !== undefined) return stack.fail(L, `bad argument #1 to 'decode' (${problem})`)
  try {
    decodeJson(stack, L, stack.read(L, 1), settings)
  } catch (error) {
    return failed(stack, L, error)
  }
  return 1
}
