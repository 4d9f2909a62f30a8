/** The host side of the Lua prelude: the functions that its libraries call. */
import { sha1 } from "../sha1.ts"
import { bitwise, errorText, formatInteger, Lrand48, toHex } from "./libraries.ts"
import type { Run } from "./script.ts"
import type { LuaStack } from "./stack.ts"
import { T } from "./wasmModule.ts"

/**
 * Registers a function of the library that is being loaded. Returns the number of its callback, or an error message.
 */
type Register = (name: string, flags: ReadonlyArray<string>, description: string | undefined) => number | string

/** Handles one call from Lua. The first argument names the function. */
export const hostFunction = (stack: LuaStack, L: number, run: Run, register: Register): number => {
  const { m } = stack
  const number = (at: number) => m._lua_tonumber(L, at)
  switch (stack.read(L, 1)) {
    case "int":
      stack.push(L, formatInteger(stack.read(L, 2), stack.read(L, 3), number(4)))
      return 1
    case "sha1":
      stack.push(L, sha1(stack.read(L, 2)))
      return 1
    case "errtext":
      stack.push(L, errorText(stack.read(L, 2)))
      return 1
    case "bit":
      m._lua_pushnumber(L, bitwise(stack.read(L, 2), number(3), number(4)))
      return 1
    case "tohex":
      stack.push(L, toHex(number(2), number(3)))
      return 1
    case "setresp":
      run.resp = number(2) === 3 ? 3 : 2
      return 0
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
    case "seed":
      run.lrand = new Lrand48(number(2))
      return 0
    default: {
      const drawn = run.lrand?.next() ?? run.host.random()
      const count = m._lua_gettop(L) - 1
      if (count === 0) m._lua_pushnumber(L, drawn)
      else {
        const low = count === 1 ? 1 : Math.floor(number(2))
        const high = Math.floor(number(count === 1 ? 2 : 3))
        if (low > high) return stack.fail(L, `bad argument #${count} to 'random' (interval is empty)`, 2)
        m._lua_pushnumber(L, Math.floor(drawn * (high - low + 1)) + low)
      }
      return 1
    }
  }
}
