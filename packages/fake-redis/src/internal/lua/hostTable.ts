/** The table of host functions from which the prelude builds the libraries. */
import { decode, encode } from "./json.ts"
import { configureJson, settingNames } from "./jsonSettings.ts"
import { bitFunctions, libraryFunctions } from "./libraryFunctions.ts"
import { unpack, unpackLimit, unpackOne } from "./msgpackDecoder.ts"
import { pack } from "./msgpackEncoder.ts"
import type { Run } from "./script.ts"
import type { LuaStack } from "./stack.ts"
import { structPack, structSize, structUnpack } from "./struct.ts"
import { GLOBALS, REGISTRY } from "./wasmModule.ts"

const values = { encode, decode, pack, unpack, unpackOne, unpackLimit, structPack, structUnpack, structSize }

/** A reference to the VM's own `string.format`. */
const refOfFormat = (stack: LuaStack, L: number): number => {
  const { m } = stack
  stack.push(L, "string")
  m._lua_rawget(L, GLOBALS)
  stack.push(L, "format")
  m._lua_rawget(L, -2)
  const ref = m._luaL_ref(L, REGISTRY)
  m._lua_settop(L, -2)
  return ref
}

/** Pushes the table. `current` returns the calling script's run. */
export const pushHostTable = (stack: LuaStack, L: number, current: () => Run): void => {
  const { m } = stack
  const format = refOfFormat(stack, L)
  const fill = (functions: Readonly<Record<string, (stack: LuaStack, L: number, run: Run) => number>>) => {
    m._lua_createtable(L, 0, 16)
    for (const [name, run] of Object.entries(functions)) {
      stack.pushFunction(L, (state) => run(stack, state, current()))
      stack.setField(L, name)
    }
  }
  fill(libraryFunctions(format))
  for (const [name, run] of Object.entries(values)) {
    stack.pushFunction(L, (state) => run(stack, state, current().json))
    stack.setField(L, name)
  }
  for (const name of settingNames) {
    stack.pushFunction(L, (state) => configureJson(stack, state, name, current().json))
    stack.setField(L, name)
  }
  fill(bitFunctions)
  stack.setField(L, "bit")
  m._lua_pushlightuserdata(L, 0)
  stack.setField(L, "null")
}
