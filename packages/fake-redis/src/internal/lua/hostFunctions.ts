/** The host side of the Lua prelude: the functions that Lua calls on the host. */
import { errorText } from "./libraries.ts"
import type { Run } from "./script.ts"
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

/**
 * Registers a function in the library that is being loaded. Returns the number of its callback, or an error message.
 */
type Register = (name: string, flags: ReadonlyArray<string>, description: string | undefined) => number | string

/** Handles one call from Lua. The first argument names the function. */
export const hostFunction = (stack: LuaStack, L: number, run: Run, register: Register): number => {
  const { m } = stack
  switch (stack.read(L, 1)) {
    case "errtext":
      stack.push(L, errorText(stack.read(L, 2)))
      return 1
    case "enter":
      run.protections++
      return 0
    case "leave":
      run.protections--
      return 0
    case "register": {
      const flags = stack.read(L, 3).split(" ").filter((flag) => flag !== "")
      const description = m._lua_type(L, 4) === T.string ? stack.read(L, 4) : undefined
      const id = register(stack.read(L, 2), flags, description)
      m._lua_pushnumber(L, typeof id === "number" ? id : 0)
      if (typeof id === "number") return 1
      stack.push(L, id)
      return 2
    }
  }
  return 0
}
