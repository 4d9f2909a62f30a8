/** A library of functions, with its source. */
import type { LuaFunction } from "./lua/script.ts"

export interface Library {
  readonly name: string
  readonly code: string
  readonly functions: ReadonlyArray<LuaFunction>
}
