/**
 * The Lua VM that runs scripts: PUC Lua 5.1 compiled to WebAssembly, through its C API. Strings are passed as bytes.
 * Errors in the host become Lua errors through `lua_error`, so that no JavaScript exception crosses the VM.
 */
import { formatDouble } from "../numbers.ts"
import type { Value } from "../reply.ts"
import { Fail } from "../reply.ts"
import { CompiledScripts } from "./compiledScripts.ts"
import { hostFunction } from "./hostFunctions.ts"
import { pushHostTable } from "./hostTable.ts"
import { PRELUDE } from "./prelude.ts"
import type { LuaFunction, LuaScript, LuaVm, ScriptHost } from "./script.ts"
import { Paused, Run } from "./script.ts"
import { LuaStack } from "./stack.ts"
import { pushValue, toValue } from "./values.ts"
import type { LuaModule } from "./wasmModule.ts"
import { GLOBALS, REGISTRY, T } from "./wasmModule.ts"

/** The number of VM instructions after which a script is killed: several seconds of looping. */
const INSTRUCTIONS = 200_000_000
const HOOK_EVERY = 1_000_000

interface Wasmoon {
  readonly LuaApi: { readonly initialize: () => Promise<{ readonly module: LuaModule }> }
}

/**
 * Loads the VM. The package is CommonJS: some loaders expose its exports by name, others only as the default export.
 */
export const loadLua = (): Promise<LuaVm> =>
  import("wasmoon-lua5.1")
    .then((loaded: unknown) => {
      const { default: fallback, LuaApi } = loaded as Partial<Wasmoon> & { readonly default?: Wasmoon }
      return (LuaApi ?? fallback!.LuaApi).initialize()
    })
    .then(({ module }) => new Vm(module))

const outside = new Fail("ERR attempt to yield from outside a coroutine")

const idleHost: ScriptHost = { call: () => null, random: () => 0, mayRun: () => undefined }

/** A Lua thread, and the reference that keeps it from being garbage-collected. */
interface Thread {
  readonly thread: number
  readonly ref: number
}

class Vm implements LuaVm {
  private readonly m: LuaModule
  private readonly stack: LuaStack
  private readonly L: number
  private readonly compiled: CompiledScripts
  private readonly handlerRef: number
  private readonly globalsRef: number
  private readonly loadRef: number
  private readonly invokeRef: number
  private readonly traceRef: number
  private nextCallback = 1
  /** A finished script's thread, for reuse. */
  private idleThread: Thread | undefined
  /** The functions in the library that is being loaded. */
  private registered: Array<LuaFunction> = []
  private current = new Run(idleHost)

  constructor(m: LuaModule) {
    this.m = m
    this.stack = new LuaStack(m)
    this.L = m._luaL_newstate()
    const { L, stack } = this
    this.compiled = new CompiledScripts(stack, L)
    m._luaL_openlibs(L)
    const load = stack.loadChunk(L, PRELUDE, "@prelude")
    if (load !== undefined) throw new Error(load)
    pushHostTable(stack, L, () => this.current)
    stack.pushFunction(L, (state) => this.redisCall(state, true))
    stack.pushFunction(L, (state) => this.redisCall(state, false))
    const register = this.register.bind(this)
    stack.pushFunction(L, (state) => hostFunction(stack, state, this.current, register))
    if (m._lua_pcall(L, 4, 6, 0) !== 0) throw new Error(stack.read(L, -1))
    // The proxy becomes the environment of every chunk that is loaded from now on.
    m._lua_replace(L, GLOBALS)
    this.traceRef = m._luaL_ref(L, REGISTRY)
    this.invokeRef = m._luaL_ref(L, REGISTRY)
    this.loadRef = m._luaL_ref(L, REGISTRY)
    this.globalsRef = m._luaL_ref(L, REGISTRY)
    this.handlerRef = m._luaL_ref(L, REGISTRY)
    const hook = m.addFunction((state: number) => this.interrupted(state), "vii")
    m._lua_sethook(L, hook, 8, HOOK_EVERY)
  }

  compile(source: string): LuaScript | string {
    const ref = this.compiled.refOf(source)
    if (typeof ref === "string") return ref
    return { run: (keys, argv, host, sha) => this.run(source, keys, argv, host, sha) }
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

  /**
   * Registers a function in the library that is being loaded. Returns the number of its callback, or an error message.
   */
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

  /** Lua's instruction hook, which kills or pauses a script that runs for too long. */
  private interrupted(L: number): number {
    const { current: run, m, stack } = this
    if (run.isKilled) {
      stack.push(L, "Script killed by user with SCRIPT KILL...")
      return m._lua_error(L)
    }
    if (run.host.mustPause !== undefined) {
      if (L !== run.thread || run.protections > 0 || !run.host.mustPause()) return 0
      run.isPausing = true
      return m._lua_yield(L, 0)
    }
    if (++run.hooks * HOOK_EVERY < INSTRUCTIONS) return 0
    stack.push(L, "Script killed by the engine: it ran for too long")
    return m._lua_error(L)
  }

  private begin(host: ScriptHost): Run {
    this.m._lua_settop(this.L, 0)
    return this.current = new Run(host)
  }

  private invoke(
    id: number,
    name: string,
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost
  ): Value | Paused {
    const { m, stack } = this
    return this.start(host, name, (L) => {
      m._lua_rawgeti(L, REGISTRY, this.invokeRef)
      m._lua_pushnumber(L, id)
      stack.pushList(L, keys)
      stack.pushList(L, argv)
      return 3
    })
  }

  private run(
    source: string,
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost,
    sha: string
  ): Value | Paused {
    const { L, m, stack } = this
    const setGlobals = () => {
      m._lua_rawgeti(L, REGISTRY, this.globalsRef)
      const at = m._lua_gettop(L)
      stack.push(L, "KEYS")
      stack.pushList(L, keys)
      m._lua_rawset(L, at)
      stack.push(L, "ARGV")
      stack.pushList(L, argv)
      m._lua_rawset(L, at)
      m._lua_settop(L, at - 1)
    }
    const ref = this.compiled.refOf(source) as number
    return this.start(host, sha, (state) => {
      m._lua_rawgeti(state, REGISTRY, ref)
      return 0
    }, setGlobals)
  }

  /**
   * Runs a function. `push` pushes the function and its arguments, and returns the number of arguments. `prepare` runs
   * before the function starts, and before it resumes after a pause.
   */
  private start(
    host: ScriptHost,
    name: string,
    push: (L: number) => number,
    prepare: () => void = () => {}
  ): Value | Paused {
    const { L, m, stack } = this
    const run = this.begin(host)
    if (host.mustPause !== undefined) return this.startPausable(run, name, push, prepare)
    prepare()
    m._lua_rawgeti(L, REGISTRY, this.handlerRef)
    const count = push(L)
    const status = m._lua_pcall(L, count, 1, 1)
    const value = status === 0 ? toValue(stack, L, m._lua_gettop(L), 0, run.resp) : this.scriptError(L, name)
    m._lua_settop(L, 0)
    return value
  }

  private startPausable(run: Run, name: string, push: (L: number) => number, prepare: () => void): Value | Paused {
    const { L, m } = this
    const { ref, thread } = this.idleThread ?? { thread: m._lua_newthread(L), ref: m._luaL_ref(L, REGISTRY) }
    this.idleThread = undefined
    run.thread = thread
    const resume = (count: number): Value | Paused => {
      this.current = run
      m._lua_settop(L, 0)
      prepare()
      run.isPausing = false
      const status = m._lua_resume(thread, count)
      if (run.isPausing) {
        return new Paused(() => resume(0), () => {
          run.isKilled = true
        })
      }
      if (status === 0) {
        const value = this.result(thread, run)
        m._lua_settop(thread, 0)
        this.idleThread = { thread, ref }
        return value
      }
      const value = status > 1 ? this.threadError(thread, ref, name) : outside
      m._luaL_unref(L, REGISTRY, ref)
      return value
    }
    return resume(push(thread))
  }

  private result(thread: number, run: Run): Value {
    this.m._lua_settop(thread, 1)
    return toValue(this.stack, thread, 1, 0, run.resp)
  }

  private threadError(thread: number, ref: number, name: string): Fail {
    const { L, m } = this
    m._lua_rawgeti(L, REGISTRY, this.traceRef)
    m._lua_rawgeti(L, REGISTRY, ref)
    m._lua_xmove(thread, L, 1)
    m._lua_pcall(L, 2, 1, 0)
    const error = this.scriptError(L, name)
    m._lua_settop(L, 0)
    return error
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
    return new Fail((text + suffix).replace(/[\r\n]+$/, "").replace(/[\r\n]/g, " "))
  }

  /** Implements `redis.call` or, if `raise` is false, `redis.pcall`. */
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
      else value = this.guarded(() => this.current.host.call(args, this.current.resp))
    }
    m._lua_settop(L, 0)
    pushValue(stack, L, value, this.current.resp === 3)
    return raise && value instanceof Fail ? m._lua_error(L) : 1
  }

  private guarded(run: () => Value): Value {
    try {
      return run()
    } catch (error) {
      return error instanceof Fail ? error : new Fail(`ERR engine failure: ${String(error)}`)
    }
  }
}

let shared: Promise<LuaVm> | undefined

/** Loads this process's Lua VM once. */
export const sharedLua = (): Promise<LuaVm> => shared ??= loadLua()
