/**
 * The Lua VM that runs the scripts: PUC Lua 5.1 in wasm, through its C API. Strings cross as bytes. An error inside the
 * host becomes a Lua error by `lua_error`, which unwinds as Lua itself does; no JavaScript exception crosses the VM.
 */
import { bitwise, errorText, formatInteger, Lrand48, toHex } from "./luaHost.ts"
import { decodeJson, encodeJson, JsonError } from "./luaJson.ts"
import type { LuaModule } from "./luaModule.ts"
import { GLOBALS, REGISTRY, T } from "./luaModule.ts"
import { PRELUDE } from "./luaPrelude.ts"
import { formatDouble } from "./numbers.ts"
import type { Value } from "./reply.ts"
import { Fail, Status } from "./reply.ts"
import { sha1 } from "./sha1.ts"

export interface ScriptHost {
  readonly call: (args: ReadonlyArray<string>) => Value
  readonly random: () => number
}

export interface LuaScript {
  readonly readOnly?: boolean
  /** Keys, arguments and the reply are binary strings; `sha` appears in the texts of errors. */
  readonly run: (keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, host: ScriptHost, sha: string) => Value
}

export interface LuaVm {
  /** The script, or the compiler's message. */
  readonly compile: (source: string) => LuaScript | string
}

/** A script is stopped after so many VM instructions: some seconds of looping. */
const INSTRUCTIONS = 200_000_000
const HOOK_EVERY = 1_000_000
const SCRATCH = 65536

export const loadLua = async (): Promise<LuaVm> => {
  const wasmoon = await import("wasmoon-lua5.1") as unknown as {
    readonly LuaApi?: { readonly initialize: () => Promise<{ readonly module: LuaModule }> }
    readonly default?: { readonly LuaApi: { readonly initialize: () => Promise<{ readonly module: LuaModule }> } }
  }
  const api = await (wasmoon.LuaApi ?? wasmoon.default!.LuaApi).initialize()
  return makeVm(api.module)
}

class Vm implements LuaVm {
  private readonly m: LuaModule
  private readonly L: number
  private readonly scratch: number
  private readonly lengthAt: number
  private readonly compiled = new Map<string, LuaScript>()
  private readonly handlerRef: number
  private readonly globalsRef: number
  private host: ScriptHost = { call: () => null, random: () => 0 }
  private lrand: Lrand48 | undefined
  private hooks = 0

  constructor(m: LuaModule) {
    this.m = m
    this.L = m._luaL_newstate()
    this.scratch = m._malloc(SCRATCH)
    this.lengthAt = m._malloc(8)
    const { L } = this
    m._luaL_openlibs(L)
    const load = this.loadChunk(PRELUDE, "@prelude")
    if (load !== undefined) throw new Error(load)
    m._lua_createtable(L, 0, 3)
    this.pushFunction((state) => this.encode(state))
    this.setField("encode")
    this.pushFunction((state) => this.decode(state))
    this.setField("decode")
    m._lua_pushlightuserdata(L, 0)
    this.setField("null")
    this.pushFunction((state) => this.redisCall(state, true))
    this.pushFunction((state) => this.redisCall(state, false))
    this.pushFunction((state) => this.misc(state))
    if (m._lua_pcall(L, 4, 3, 0) !== 0) throw new Error(this.read(L, -1))
    // The proxy becomes the environment of every chunk that is loaded from now on.
    m._lua_replace(L, GLOBALS)
    this.globalsRef = m._luaL_ref(L, REGISTRY)
    this.handlerRef = m._luaL_ref(L, REGISTRY)
    const hook = m.addFunction((state: number) => {
      if (++this.hooks * HOOK_EVERY < INSTRUCTIONS) return 0
      this.push(state, "Script killed by the engine: it ran for too long")
      return m._lua_error(state)
    }, "vii")
    m._lua_sethook(L, hook, 8, HOOK_EVERY)
  }

  compile(source: string): LuaScript | string {
    const known = this.compiled.get(source)
    if (known !== undefined) return known
    const { L, m } = this
    const error = this.loadChunk(source, "@user_script")
    if (error !== undefined) return error
    const ref = m._luaL_ref(L, REGISTRY)
    const script: LuaScript = { run: (keys, argv, host, sha) => this.run(ref, keys, argv, host, sha) }
    this.compiled.set(source, script)
    return script
  }

  private run(
    ref: number,
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost,
    sha: string
  ): Value {
    const { L, m } = this
    this.host = host
    this.lrand = undefined
    this.hooks = 0
    m._lua_settop(L, 0)
    m._lua_rawgeti(L, REGISTRY, this.globalsRef)
    this.push(L, "KEYS")
    this.pushList(keys)
    m._lua_rawset(L, 1)
    this.push(L, "ARGV")
    this.pushList(argv)
    m._lua_rawset(L, 1)
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    m._lua_rawgeti(L, REGISTRY, ref)
    const status = m._lua_pcall(L, 0, 1, 2)
    const value = status === 0 ? this.toValue(L, m._lua_gettop(L), 0) : this.scriptError(L, sha)
    m._lua_settop(L, 0)
    return value
  }

  private scriptError(L: number, sha: string): Fail {
    const { m } = this
    if (m._lua_type(L, -1) !== T.table) {
      return new Fail(`ERR Error running script ${sha}, ${this.read(L, -1).slice(0, 100)}`)
    }
    const at = m._lua_gettop(L)
    const text = this.field(L, at, "err") ?? "ERR unknown error"
    const source = this.field(L, at, "source")
    const line = this.field(L, at, "line")
    const suffix = source !== undefined && line !== undefined ? ` script: ${sha}, on ${source}:${line}.` : ""
    return new Fail(text.replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " ") + suffix)
  }

  /** A field of the table at `at`, as text. */
  private field(L: number, at: number, name: string): string | undefined {
    const { m } = this
    this.push(L, name)
    m._lua_rawget(L, at)
    const type = m._lua_type(L, -1)
    const text = type === T.string || type === T.number ? this.read(L, -1) : undefined
    m._lua_settop(L, -2)
    return text
  }

  private toValue(L: number, at: number, depth: number): Value {
    const { m } = this
    switch (m._lua_type(L, at)) {
      case T.string:
        return this.read(L, at)
      case T.boolean:
        return m._lua_toboolean(L, at) !== 0 ? 1 : null
      case T.number:
        return truncate(m._lua_tonumber(L, at))
      case T.table:
        break
      default:
        return null
    }
    if (depth > 200 || m._lua_checkstack(L, 10) === 0) return new Fail("ERR reached lua stack limit")
    const typed = this.typedReply(L, at, depth)
    if (typed !== undefined) return typed
    const list: Array<Value> = []
    for (let i = 1;; i++) {
      m._lua_rawgeti(L, at, i)
      if (m._lua_type(L, -1) === T.nil) {
        m._lua_settop(L, -2)
        return list
      }
      list.push(this.toValue(L, m._lua_gettop(L), depth + 1))
      m._lua_settop(L, -2)
    }
  }

  private typedReply(L: number, at: number, depth: number): Value | undefined {
    const { m } = this
    const get = (name: string): number => {
      this.push(L, name)
      m._lua_rawget(L, at)
      return m._lua_type(L, -1)
    }
    const top = m._lua_gettop(L)
    const done = <A>(value: A): A => {
      m._lua_settop(L, top)
      return value
    }
    if (get("err") === T.string) {
      return done(new Fail(this.read(L, -1).replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " ")))
    }
    if (get("ok") === T.string) return done(new Status(this.read(L, -1).replace(/[\r\n]/g, " ")))
    if (get("double") === T.number) return done(formatDouble(m._lua_tonumber(L, -1)))
    if (get("map") === T.table) return done(this.entries(L, depth, true))
    if (get("set") === T.table) return done(this.entries(L, depth, false))
    if (get("big_number") === T.string) return done(this.read(L, -1))
    return done(undefined)
  }

  private entries(L: number, depth: number, pairs: boolean): Value {
    const { m } = this
    const table = m._lua_gettop(L)
    const list: Array<Value> = []
    m._lua_pushnil(L)
    while (m._lua_next(L, table) !== 0) {
      const top = m._lua_gettop(L)
      list.push(this.toValue(L, top - 1, depth + 1))
      if (pairs) list.push(this.toValue(L, top, depth + 1))
      m._lua_settop(L, top - 1)
    }
    return list
  }

  private redisCall(L: number, raise: boolean): number {
    const { m } = this
    const count = m._lua_gettop(L)
    let value: Value
    if (count === 0) value = new Fail("ERR Please specify at least one argument for this redis lib call")
    else {
      const args: Array<string> = []
      for (let i = 1; i <= count; i++) {
        const type = m._lua_type(L, i)
        if (type === T.string) args.push(this.read(L, i))
        else if (type === T.number) args.push(formatDouble(m._lua_tonumber(L, i)))
        else break
      }
      if (args.length < count) value = new Fail("ERR Lua redis lib command arguments must be strings or integers")
      else value = this.guarded(() => this.host.call(args))
    }
    m._lua_settop(L, 0)
    this.pushValue(L, value)
    return raise && value instanceof Fail ? m._lua_error(L) : 1
  }

  private guarded(run: () => Value): Value {
    try {
      return run()
    } catch (error) {
      return error instanceof Fail ? error : new Fail(`ERR engine failure: ${String(error)}`)
    }
  }

  private encode(L: number): number {
    let text: string
    try {
      text = encodeJson(this.m, L, 1, (at) => this.read(L, at))
    } catch (error) {
      return this.fail(L, error instanceof JsonError ? error.message : String(error))
    }
    this.m._lua_settop(L, 0)
    this.push(L, text)
    return 1
  }

  private decode(L: number): number {
    const { m } = this
    const type = m._lua_type(L, 1)
    if (type !== T.string && type !== T.number) {
      return this.fail(L, "bad argument #1 to 'decode' (string expected, got no value)")
    }
    try {
      decodeJson(m, L, this.read(L, 1), (text) => this.push(L, text))
    } catch (error) {
      return this.fail(L, error instanceof JsonError ? error.message : String(error))
    }
    return 1
  }

  private misc(L: number): number {
    const { m } = this
    const number = (at: number) => m._lua_tonumber(L, at)
    switch (this.read(L, 1)) {
      case "int":
        this.push(L, formatInteger(this.read(L, 2), this.read(L, 3), number(4)))
        return 1
      case "sha1":
        this.push(L, sha1(this.read(L, 2)))
        return 1
      case "errtext":
        this.push(L, errorText(this.read(L, 2)))
        return 1
      case "bit":
        m._lua_pushnumber(L, bitwise(this.read(L, 2), number(3), number(4)))
        return 1
      case "tohex":
        this.push(L, toHex(number(2), number(3)))
        return 1
      case "seed":
        this.lrand = new Lrand48(number(2))
        return 0
      default: {
        const drawn = this.lrand?.next() ?? this.host.random()
        const count = m._lua_gettop(L) - 1
        if (count === 0) m._lua_pushnumber(L, drawn)
        else {
          const low = count === 1 ? 1 : Math.floor(number(2))
          const high = Math.floor(number(count === 1 ? 2 : 3))
          if (low > high) return this.fail(L, `bad argument #${count} to 'random' (interval is empty)`, 2)
          m._lua_pushnumber(L, Math.floor(drawn * (high - low + 1)) + low)
        }
        return 1
      }
    }
  }

  private fail(L: number, message: string, level = 1): number {
    const { m } = this
    m._luaL_where(L, level)
    this.push(L, message)
    m._lua_concat(L, 2)
    return m._lua_error(L)
  }

  private pushValue(L: number, value: Value): void {
    const { m } = this
    if (typeof value === "string") this.push(L, value)
    else if (typeof value === "number") m._lua_pushnumber(L, value)
    else if (typeof value === "bigint") m._lua_pushnumber(L, Number(value))
    else if (value === null) m._lua_pushboolean(L, 0)
    else if (value instanceof Status || value instanceof Fail) {
      m._lua_createtable(L, 0, 1)
      this.push(L, value instanceof Status ? "ok" : "err")
      this.push(L, value instanceof Status ? value.ok : value.message)
      m._lua_rawset(L, -3)
      if (value instanceof Fail) {
        this.push(L, "ignore_error_stats_update")
        m._lua_pushboolean(L, 1)
        m._lua_rawset(L, -3)
      }
    } else {
      m._lua_checkstack(L, 8)
      m._lua_createtable(L, value.length, 0)
      value.forEach((item, index) => {
        this.pushValue(L, item)
        m._lua_rawseti(L, -2, index + 1)
      })
    }
  }

  private pushList(items: ReadonlyArray<string>): void {
    const { L, m } = this
    m._lua_createtable(L, items.length, 0)
    for (let i = 0; i < items.length; i++) {
      this.push(L, items[i]!)
      m._lua_rawseti(L, -2, i + 1)
    }
  }

  private push(L: number, text: string): void {
    const { m } = this
    const length = text.length
    const at = length <= SCRATCH ? this.scratch : m._malloc(length)
    const heap = m.HEAPU8
    for (let i = 0; i < length; i++) heap[at + i] = text.charCodeAt(i)
    m._lua_pushlstring(L, at, length)
    if (at !== this.scratch) m._free(at)
  }

  /** Strings and numbers; a number on the stack is turned into a string in place. */
  private read(L: number, at: number): string {
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

  private loadChunk(source: string, name: string): string | undefined {
    const { L, m } = this
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

  private pushFunction(run: (L: number) => number): void {
    this.m._lua_pushcclosure(this.L, this.m.addFunction(run, "ii"), 0)
  }

  /** Sets a field of the table below the value on top. */
  private setField(name: string): void {
    const { L, m } = this
    this.push(L, name)
    m._lua_insert(L, -2)
    m._lua_rawset(L, -3)
  }
}

const makeVm = (module: LuaModule): LuaVm => new Vm(module)

const truncate = (value: number): Value => {
  if (Number.isNaN(value) || Math.abs(value) >= 9223372036854775807) return -9223372036854775808n
  const whole = Math.trunc(value)
  return Object.is(whole, -0) ? 0 : whole
}
