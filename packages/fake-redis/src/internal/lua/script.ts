/**
 * Scripts and functions as the server sees them, and what belongs to one run of them.
 */
import type { Value } from "../reply.ts"
import { jsonSettings } from "./jsonSettings.ts"
import type { Lrand48 } from "./libraries.ts"

export interface ScriptHost {
  readonly call: (args: ReadonlyArray<string>, protocol: 2 | 3) => Value
  readonly random: () => number
  /** Whether the user may run a command; `undefined` if there is no such command. */
  readonly mayRun: (args: ReadonlyArray<string>) => boolean | undefined
  /** Whether the script has to pause, so that others are heard. Without it, a long script is ended. */
  readonly mustPause?: (() => boolean) | undefined
}

/** A script that waits to go on. */
export class Paused {
  readonly resume: () => Value | Paused
  /** It fails once it goes on. */
  readonly kill: () => void
  constructor(resume: () => Value | Paused, kill: () => void) {
    this.resume = resume
    this.kill = kill
  }
}

/** What belongs to one run of a script. */
export class Run {
  readonly host: ScriptHost
  readonly json = jsonSettings()
  lrand: Lrand48 | undefined
  /** What `redis.setresp` has chosen. */
  resp: 2 | 3 = 2
  hooks = 0
  /** Calls of `pcall` that have not ended: a script cannot pause within. */
  protections = 0
  /** The coroutine of a script that can pause. */
  thread = 0
  isPausing = false
  isKilled = false
  constructor(host: ScriptHost) {
    this.host = host
  }
}

export interface LuaScript {
  readonly readOnly?: boolean
  /** Keys, arguments and the reply are binary strings; `sha` appears in the texts of errors. */
  readonly run: (
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost,
    sha: string
  ) => Value | Paused
}

/** A function that a library has registered. */
export interface LuaFunction {
  readonly name: string
  readonly flags: ReadonlyArray<string>
  readonly description: string | undefined
  readonly run: (keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, host: ScriptHost) => Value | Paused
}

export interface LuaVm {
  /** The script, or the compiler's message. */
  readonly compile: (source: string) => LuaScript | string
  /** Runs a library; its functions, or what is wrong with it. */
  readonly load: (source: string) => ReadonlyArray<LuaFunction> | string
}
