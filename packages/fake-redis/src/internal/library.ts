/** A library that FUNCTION LOAD has stored: its source, and the functions that it registers. */
import type { LuaFunction } from "./lua/script.ts"

export interface Library {
  readonly name: string
  readonly code: string
  readonly functions: ReadonlyArray<LuaFunction>
}
