/** Functions that were loaded together, with their source. */
import type { LuaFunction } from "./lua/script.ts"

export interface Library {
  readonly name: string
  readonly code: string
  readonly functions: ReadonlyArray<LuaFunction>
}
