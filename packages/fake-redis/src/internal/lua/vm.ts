/**
 * The Lua VM that runs the scripts: PUC Lua 5.1 in wasm, through its C API. Strings cross as bytes. An error inside the
 * host becomes a Lua error by `lua_error`, which unwinds as Lua itself does; no JavaScript exception crosses the VM.
 */
import { formatDouble } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail } from "../reply.ts"
import { sha1 } from "../sha1.ts"
import { decode, encode } from "./json.ts"
import { bitwise, errorText, formatInteger, Lrand48, toHex } from "./libraries.ts"
import { unpack, unpackLimit, unpackOne } from "./msgpackDecoder.ts"
import { pack } from "./msgpackEncoder.ts"
import { PRELUDE } from "./prelude.ts"
import { LuaStack } from "./stack.ts"
import { structPack, structSize, structUnpack } from "./struct.ts"
import { pushValue, toValue } from "./values.ts"
import type { LuaModule } from "./wasmModule.ts"
import { GLOBALS, REGISTRY, T } from "./wasmModule.ts"

export interface ScriptHost {
  readonly call: (args: ReadonlyArray<string>, protocol: 2 | 3) => Value
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

interface Wasmoon {
  readonly LuaApi: { readonly initialize: () => Promise<{ readonly module: LuaModule }> }
}

/** The package is CommonJS: some loaders name its exports, others give them as the default export only. */
export const loadLua = (): Promise<LuaVm> =>
  import("wasmoon-lua5.1")
    .then((loaded: unknown) => {
      const { default: fallback, LuaApi } = loaded as Partial<Wasmoon> & { readonly default?: Wasmoon }
      return (LuaApi ?? fallback!.LuaApi).initialize()
    })
    .then(({ module }) => new Vm(module))

class Vm implements LuaVm {
  private readonly m: LuaModule
  private readonly stack: LuaStack
  private readonly L: number
  private readonly compiled = new Map<string, LuaScript>()
  private readonly handlerRef: number
  private readonly globalsRef: number
  private host: ScriptHost = { call: () => null, random: () => 0 }
  private lrand: Lrand48 | undefined
  private hooks = 0
  /** What `redis.setresp` has chosen. */
  private resp: 2 | 3 = 2

  constructor(m: LuaModule) {
    this.m = m
    this.stack = new LuaStack(m)
    this.L = m._luaL_newstate()
    const { L, stack } = this
    m._luaL_openlibs(L)
    const load = stack.loadChunk(L, PRELUDE, "@prelude")
    if (load !== undefined) throw new Error(load)
    m._lua_createtable(L, 0, 3)
    const functions = { encode, decode, pack, unpack, unpackOne, unpackLimit, structPack, structUnpack, structSize }
    for (const [name, run] of Object.entries(functions)) {
      stack.pushFunction(L, (state) => run(stack, state))
      stack.setField(L, name)
    }
    m._lua_pushlightuserdata(L, 0)
    stack.setField(L, "null")
    stack.pushFunction(L, (state) => this.redisCall(state, true))
    stack.pushFunction(L, (state) => this.redisCall(state, false))
    stack.pushFunction(L, (state) => this.misc(state))
    if (m._lua_pcall(L, 4, 3, 0) !== 0) throw new Error(stack.read(L, -1))
    // The proxy becomes the environment of every chunk that is loaded from now on.
    m._lua_replace(L, GLOBALS)
    this.globalsRef = m._luaL_ref(L, REGISTRY)
    this.handlerRef = m._luaL_ref(L, REGISTRY)
    const hook = m.addFunction((state: number) => {
      if (++this.hooks * HOOK_EVERY < INSTRUCTIONS) return 0
      stack.push(state, "Script killed by the engine: it ran for too long")
      return m._lua_error(state)
    }, "vii")
    m._lua_sethook(L, hook, 8, HOOK_EVERY)
  }

  compile(source: string): LuaScript | string {
    const known = this.compiled.get(source)
    if (known !== undefined) return known
    const { L, m, stack } = this
    const error = stack.loadChunk(L, source, "@user_script")
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
    const { L, m, stack } = this
    this.host = host
    this.lrand = undefined
    this.hooks = 0
    this.resp = 2
    m._lua_settop(L, 0)
    m._lua_rawgeti(L, REGISTRY, this.globalsRef)
    stack.push(L, "KEYS")
    stack.pushList(L, keys)
    m._lua_rawset(L, 1)
    stack.push(L, "ARGV")
    stack.pushList(L, argv)
    m._lua_rawset(L, 1)
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    m._lua_rawgeti(L, REGISTRY, ref)
    const status = m._lua_pcall(L, 0, 1, 2)
    const value = status === 0 ? toValue(stack, L, m._lua_gettop(L), 0, this.resp) : this.scriptError(L, sha)
    m._lua_settop(L, 0)
    return value
  }

  private scriptError(L: number, sha: string): Fail {
    const { m, stack } = this
    if (m._lua_type(L, -1) !== T.table) {
      return new Fail(`ERR Error running script ${sha}, ${stack.read(L, -1).slice(0, 100)}`)
    }
    const at = m._lua_gettop(L)
    const text = stack.field(L, at, "err") ?? "ERR unknown error"
    const source = stack.field(L, at, "source")
    const line = stack.field(L, at, "line")
    const suffix = source !== undefined && line !== undefined ? ` script: ${sha}, on ${source}:${line}.` : ""
    return new Fail(text.replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " ") + suffix)
  }

  /** `redis.call`, or `redis.pcall` if it is not to raise. */
  private redisCall(L: number, raise: boolean): number {
    const { m, stack } = this
    const count = m._lua_gettop(L)
    let value: Value
    if (count === 0) value = new Fail("ERR Please specify at least one argument for this redis lib call")
    else {
      const args: Array<string> = []
      for (let i = 1; i <= count; i++) {
        const type = m._lua_type(L, i)
        if (type === T.string) args.push(stack.read(L, i))
        else if (type === T.number) args.push(formatDouble(m._lua_tonumber(L, i)))
        else break
      }
      if (args.length < count) value = new Fail("ERR Lua redis lib command arguments must be strings or integers")
      else value = this.guarded(() => this.host.call(args, this.resp))
    }
    m._lua_settop(L, 0)
    pushValue(stack, L, value, this.resp === 3)
    return raise && value instanceof Fail ? m._lua_error(L) : 1
  }

  private guarded(run: () => Value): Value {
    try {
      return run()
    } catch (error) {
      return error instanceof Fail ? error : new Fail(`ERR engine failure: ${String(error)}`)
    }
  }

  /** What the library functions of the prelude ask of the host; the first argument says what. */
  private misc(L: number): number {
    const { m, stack } = this
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
        this.resp = number(2) === 3 ? 3 : 2
        return 0
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
          if (low > high) return stack.fail(L, `bad argument #${count} to 'random' (interval is empty)`, 2)
          m._lua_pushnumber(L, Math.floor(drawn * (high - low + 1)) + low)
        }
        return 1
      }
    }
  }
}

let shared: Promise<LuaVm> | undefined

/** The Lua VM of this process, loaded once. */
export const sharedLua = (): Promise<LuaVm> => shared ??= loadLua()
