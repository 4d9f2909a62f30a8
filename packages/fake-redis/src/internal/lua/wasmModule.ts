/** The parts of wasmoon-lua5.1's emscripten module that are used here, and the constants of Lua's C API. */
export interface LuaModule {
  readonly HEAPU8: Uint8Array
  readonly HEAP32: Int32Array
  readonly addFunction: (run: (a: number, b: number) => number, signature: string) => number
  readonly _malloc: (size: number) => number
  readonly _free: (pointer: number) => void
  readonly _luaL_checkany: (L: number, at: number) => void
  readonly _luaL_checklstring: (L: number, at: number, length: number) => number
  readonly _luaL_checknumber: (L: number, at: number) => number
  readonly _luaL_newstate: () => number
  readonly _luaL_openlibs: (L: number) => void
  readonly _luaL_loadbuffer: (L: number, code: number, size: number, name: number) => number
  readonly _luaL_unref: (L: number, table: number, ref: number) => void
  readonly _luaL_optinteger: (L: number, at: number, fallback: number) => number
  readonly _luaL_ref: (L: number, table: number) => number
  readonly _luaL_where: (L: number, level: number) => void
  readonly _lua_checkstack: (L: number, size: number) => number
  readonly _lua_concat: (L: number, count: number) => void
  readonly _lua_createtable: (L: number, list: number, record: number) => void
  readonly _lua_error: (L: number) => number
  readonly _lua_gettop: (L: number) => number
  readonly _lua_insert: (L: number, at: number) => void
  readonly _lua_isnumber: (L: number, at: number) => number
  readonly _lua_newthread: (L: number) => number
  readonly _lua_resume: (L: number, args: number) => number
  readonly _lua_yield: (L: number, results: number) => number
  readonly _lua_xmove: (from: number, to: number, count: number) => void
  readonly _lua_next: (L: number, at: number) => number
  readonly _lua_pcall: (L: number, args: number, results: number, handler: number) => number
  readonly _lua_pushboolean: (L: number, value: number) => void
  readonly _lua_pushcclosure: (L: number, run: number, upvalues: number) => void
  readonly _lua_pushlightuserdata: (L: number, pointer: number) => void
  readonly _lua_pushlstring: (L: number, pointer: number, size: number) => void
  readonly _lua_pushnil: (L: number) => void
  readonly _lua_pushnumber: (L: number, value: number) => void
  readonly _lua_rawget: (L: number, at: number) => void
  readonly _lua_rawgeti: (L: number, at: number, index: number) => void
  readonly _lua_rawset: (L: number, at: number) => void
  readonly _lua_rawseti: (L: number, at: number, index: number) => void
  readonly _lua_replace: (L: number, at: number) => void
  readonly _lua_sethook: (L: number, hook: number, mask: number, count: number) => number
  readonly _lua_settop: (L: number, top: number) => void
  readonly _lua_toboolean: (L: number, at: number) => number
  readonly _lua_tolstring: (L: number, at: number, length: number) => number
  readonly _lua_tonumber: (L: number, at: number) => number
  readonly _lua_touserdata: (L: number, at: number) => number
  readonly _lua_type: (L: number, at: number) => number
}

export const REGISTRY = -10000
export const GLOBALS = -10002

export const T = {
  nil: 0,
  boolean: 1,
  lightuserdata: 2,
  number: 3,
  string: 4,
  table: 5,
  function: 6,
  userdata: 7,
  thread: 8
} as const

export const TYPE_NAMES: ReadonlyArray<string> = [
  "nil",
  "boolean",
  "userdata",
  "number",
  "string",
  "table",
  "function",
  "userdata",
  "thread"
]
