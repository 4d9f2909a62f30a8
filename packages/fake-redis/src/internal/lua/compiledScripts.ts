/** A VM's compiled scripts, by source. */
import type { LuaStack } from "./stack.ts"
import { REGISTRY } from "./wasmModule.ts"

/** The maximum number of scripts that stay compiled. */
const MOST = 1000

export class CompiledScripts {
  private readonly stack: LuaStack
  private readonly L: number
  private readonly refs = new Map<string, number>()

  constructor(stack: LuaStack, L: number) {
    this.stack = stack
    this.L = L
  }

  /**
   * Returns a reference to the compiled script, or the compiler's message. If there are too many scripts, forgets all
   * others, which are compiled again on their next run.
   */
  refOf(source: string): number | string {
    const { L, refs, stack } = this
    const known = refs.get(source)
    if (known !== undefined) return known
    const error = stack.loadChunk(L, source, "@user_script")
    if (error !== undefined) return error
    if (refs.size === MOST) {
      for (const ref of refs.values()) stack.m._luaL_unref(L, REGISTRY, ref)
      refs.clear()
    }
    const ref = stack.m._luaL_ref(L, REGISTRY)
    refs.set(source, ref)
    return ref
  }
}
