/**
 * Access to a Lua state's stack through the raw C API: strings as bytes, fields, lists, functions, errors and chunks.
 * `L` is the main state, or the coroutine that called the host.
 */
import type { LuaModule } from "./wasmModule.ts"
import { T } from "./wasmModule.ts"

const SCRATCH = 65536

export class LuaStack {
  readonly m: LuaModule
  private readonly scratch: number
  private readonly lengthAt: number

  constructor(m: LuaModule) {
    this.m = m
    this.scratch = m._malloc(SCRATCH)
    this.lengthAt = m._malloc(8)
  }

  push(L: number, text: string): void {
    const { m } = this
    const length = text.length
    const at = length <= SCRATCH ? this.scratch : m._malloc(length)
    const heap = m.HEAPU8
    for (let i = 0; i < length; i++) heap[at + i] = text.charCodeAt(i)
    m._lua_pushlstring(L, at, length)
    if (at !== this.scratch) m._free(at)
  }

  /** Reads a string or a number. A number is converted to a string in place. */
  read(L: number, at: number): string {
    const { m } = this
    const pointer = m._lua_tolstring(L, at, this.lengthAt)
    if (pointer === 0) return ""
    const length = m.HEAP32[this.lengthAt >> 2]!
    const heap = m.HEAPU8
    if (length <= 48) {
      let text = ""
      for (let i = 0; i < length; i++) text += String.fromCharCode(heap[pointer + i]!)
      return text
    }
    let text = ""
    for (let from = 0; from < length; from += 8192) {
      text += String.fromCharCode(...heap.subarray(pointer + from, pointer + Math.min(length, from + 8192)))
    }
    return text
  }

  pushList(L: number, items: ReadonlyArray<string>): void {
    const { m } = this
    m._lua_createtable(L, items.length, 0)
    for (let i = 0; i < items.length; i++) {
      this.push(L, items[i]!)
      m._lua_rawseti(L, -2, i + 1)
    }
  }

  /** Reads a field of the table at `at` as a string. */
  field(L: number, at: number, name: string): string | undefined {
    const { m } = this
    this.push(L, name)
    m._lua_rawget(L, at)
    const type = m._lua_type(L, -1)
    const text = type === T.string || type === T.number ? this.read(L, -1) : undefined
    m._lua_settop(L, -2)
    return text
  }

  /** Sets a field of the table below the top value. */
  setField(L: number, name: string): void {
    const { m } = this
    this.push(L, name)
    m._lua_insert(L, -2)
    m._lua_rawset(L, -3)
  }

  pushFunction(L: number, run: (L: number) => number): void {
    this.m._lua_pushcclosure(L, this.m.addFunction(run, "ii"), 0)
  }

  /** Compiles a chunk and pushes it. Returns the error message if it does not compile. */
  loadChunk(L: number, source: string, name: string): string | undefined {
    const { m } = this
    const code = m._malloc(source.length + 1)
    for (let i = 0; i < source.length; i++) m.HEAPU8[code + i] = source.charCodeAt(i)
    for (let i = 0; i < name.length; i++) m.HEAPU8[this.scratch + i] = name.charCodeAt(i)
    m.HEAPU8[this.scratch + name.length] = 0
    const status = m._luaL_loadbuffer(L, code, source.length, this.scratch)
    m._free(code)
    if (status === 0) return undefined
    const message = this.read(L, -1)
    m._lua_settop(L, -2)
    return message
  }

  /** Raises an error with the caller's position at this level. C functions return this function's result. */
  fail(L: number, message: string, level = 1): number {
    const { m } = this
    m._luaL_where(L, level)
    this.push(L, message)
    m._lua_concat(L, 2)
    return m._lua_error(L)
  }
}
