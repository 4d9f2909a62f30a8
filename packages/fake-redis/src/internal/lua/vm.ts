/**
 * The Lua VM that runs the scripts: PUC Lua 5.1 in wasm, through its C API. Strings cross as bytes. An error inside the
 * host becomes a Lua error by `lua_error`, which unwinds as Lua itself does; no JavaScript exception crosses the VM.
 */
import { formatDouble } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail } from "../reply.ts"
import { sha1 } from "../sha1.ts"
import { decode, encode } from "./json.ts"
import { configureJson, jsonSettings, settingNames } from "./jsonSettings.ts"
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
  /** Whether the user may run a command; `undefined` if there is no such command. */
  readonly mayRun: (args: ReadonlyArray<string>) => boolean | undefined
}

export interface LuaScript {
  readonly readOnly?: boolean
  /** Keys, arguments and the reply are binary strings; `sha` appears in the texts of errors. */
  readonly run: (keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, host: ScriptHost, sha: string) => Value
}

/** A function that a library has registered. */
export interface LuaFunction {
  readonly name: string
  readonly flags: ReadonlyArray<string>
  readonly description: string | undefined
  readonly run: (keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, host: ScriptHost) => Value
}

export interface LuaVm {
  /** The script, or the compiler's message. */
  readonly compile: (source: string) => LuaScript | string
  /** Runs a library; its functions, or what is wrong with it. */
  readonly load: (source: string) => ReadonlyArray<LuaFunction> | string
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

const idleHost: ScriptHost = { call: () => null, random: () => 0, mayRun: () => undefined }

class Vm implements LuaVm {
  private readonly m: LuaModule
  private readonly stack: LuaStack
  private readonly L: number
  private readonly compiled = new Map<string, LuaScript>()
  private readonly handlerRef: number
  private readonly globalsRef: number
  private readonly loadRef: number
  private readonly invokeRef: number
  private nextCallback = 1
  /** The functions of the library that is loading. */
  private registered: Array<LuaFunction> = []
  private host: ScriptHost = idleHost
  private lrand: Lrand48 | undefined
  private hooks = 0
  private json = jsonSettings()
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
      stack.pushFunction(L, (state) => run(stack, state, this.json))
      stack.setField(L, name)
    }
    for (const name of settingNames) {
      stack.pushFunction(L, (state) => configureJson(stack, state, name, this.json))
      stack.setField(L, name)
    }
    stack.pushFunction(L, (state) => this.mayRun(state))
    stack.setField(L, "mayRun")
    m._lua_pushlightuserdata(L, 0)
    stack.setField(L, "null")
    stack.pushFunction(L, (state) => this.redisCall(state, true))
    stack.pushFunction(L, (state) => this.redisCall(state, false))
    stack.pushFunction(L, (state) => this.misc(state))
    if (m._lua_pcall(L, 4, 5, 0) !== 0) throw new Error(stack.read(L, -1))
    // The proxy becomes the environment of every chunk that is loaded from now on.
    m._lua_replace(L, GLOBALS)
    this.invokeRef = m._luaL_ref(L, REGISTRY)
    this.loadRef = m._luaL_ref(L, REGISTRY)
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

  load(source: string): ReadonlyArray<LuaFunction> | string {
    const { L, m, stack } = this
    this.begin(idleHost)
    this.registered = []
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    m._lua_rawgeti(L, REGISTRY, this.loadRef)
    const error = stack.loadChunk(L, source, "@user_function")
    if (error !== undefined) {
      m._lua_settop(L, 0)
      return `Error compiling function: ${error}`
    }
    const status = m._lua_pcall(L, 1, 0, 1)
    const text = status === 0 ? undefined : stack.field(L, m._lua_gettop(L), "err") ?? stack.read(L, -1)
    m._lua_settop(L, 0)
    if (text !== undefined) return `Error registering functions: ${text}`
    return this.registered.length === 0 ? "No functions registered" : this.registered
  }

  /** Takes a function of the library that is loading: the number of its callback, or why it is refused. */
  private register(name: string, flags: ReadonlyArray<string>, description: string | undefined): number | string {
    if (!/^\w+$/.test(name)) {
      return "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
    }
    if (this.registered.some((other) => other.name === name)) return "Function already exists in the library"
    const id = this.nextCallback++
    this.registered.push({
      name,
      flags,
      description,
      run: (keys, argv, host) => this.invoke(id, name, keys, argv, host)
    })
    return id
  }

  private begin(host: ScriptHost): void {
    this.host = host
    this.lrand = undefined
    this.hooks = 0
    this.resp = 2
    this.json = jsonSettings()
    this.m._lua_settop(this.L, 0)
  }

  private invoke(
    id: number,
    name: string,
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost
  ): Value {
    const { L, m, stack } = this
    this.begin(host)
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    m._lua_rawgeti(L, REGISTRY, this.invokeRef)
    m._lua_pushnumber(L, id)
    stack.pushList(L, keys)
    stack.pushList(L, argv)
    return this.finish(m._lua_pcall(L, 3, 1, 1), name)
  }

  private run(
    ref: number,
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost,
    sha: string
  ): Value {
    const { L, m, stack } = this
    this.begin(host)
    m._lua_rawgeti(L, REGISTRY, this.globalsRef)
    stack.push(L, "KEYS")
    stack.pushList(L, keys)
    m._lua_rawset(L, 1)
    stack.push(L, "ARGV")
    stack.pushList(L, argv)
    m._lua_rawset(L, 1)
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    m._lua_rawgeti(L, REGISTRY, ref)
    return this.finish(m._lua_pcall(L, 0, 1, 2), sha)
  }

  /** The value on top of the stack, or the error; `name` appears in its text. */
  private finish(status: number, name: string): Value {
    const { L, m, stack } = this
    const value = status === 0 ? toValue(stack, L, m._lua_gettop(L), 0, this.resp) : this.scriptError(L, name)
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

  /** `redis.acl_check_cmd`. */
  private mayRun(L: number): number {
    const { m, stack } = this
    const call = Array.from({ length: m._lua_gettop(L) }, (_, at) => stack.read(L, at + 1))
    const may = call.length === 0 ? undefined : this.host.mayRun(call)
    if (may !== undefined) {
      m._lua_pushboolean(L, may ? 1 : 0)
      return 1
    }
    pushValue(stack, L, new Fail("ERR Invalid command passed to redis.acl_check_cmd()"), false)
    return m._lua_error(L)
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
      case "register": {
        const flags = stack.read(L, 3).split(" ").filter((flag) => flag !== "")
        const description = m._lua_type(L, 4) === T.string ? stack.read(L, 4) : undefined
        const id = this.register(stack.read(L, 2), flags, description)
        m._lua_pushnumber(L, typeof id === "number" ? id : 0)
        if (typeof id === "number") return 1
        stack.push(L, id)
        return 2
      }
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
