/** Scripts and functions as the server sees them, and the state of one run. */
import type { Value } from "../reply.ts"
import { jsonSettings } from "./jsonSettings.ts"
import type { Lrand48 } from "./libraries.ts"

export interface ScriptHost {
  readonly call: (args: ReadonlyArray<string>, protocol: 2 | 3) => Value
  readonly random: () => number
  /** Whether the user may run a command. `undefined` if the command does not exist. */
  readonly mayRun: (args: ReadonlyArray<string>) => boolean | undefined
  /**
   * Whether the script must pause to let the server serve other clients. If this function is not set, a long script is
   * killed instead.
   */
  readonly mustPause?: (() => boolean) | undefined
}

export class Paused {
  readonly resume: () => Value | Paused
  /** Makes the script fail when it resumes. */
  readonly kill: () => void
  constructor(resume: () => Value | Paused, kill: () => void) {
    this.resume = resume
    this.kill = kill
  }
}

/** The state of one script run. */
export class Run {
  readonly host: ScriptHost
  readonly json = jsonSettings()
  lrand: Lrand48 | undefined
  /** The protocol that the script has chosen with `redis.setresp`. */
  resp: 2 | 3 = 2
  hooks = 0
  /** The number of active `pcall`s. A script cannot pause inside one. */
  protections = 0
  /** The coroutine in which the script runs, if it can pause. */
  thread = 0
  isPausing = false
  isKilled = false
  constructor(host: ScriptHost) {
    this.host = host
  }
}

export interface LuaScript {
  readonly readOnly?: boolean
  /** Runs the script. Keys, arguments and the reply are binary strings. `sha` appears in error messages. */
  readonly run: (
    keys: ReadonlyArray<string>,
    argv: ReadonlyArray<string>,
    host: ScriptHost,
    sha: string
  ) => Value | Paused
}

/** A function registered by a library. */
export interface LuaFunction {
  readonly name: string
  readonly flags: ReadonlyArray<string>
  readonly description: string | undefined
  readonly run: (keys: ReadonlyArray<string>, argv: ReadonlyArray<string>, host: ScriptHost) => Value | Paused
}

export interface LuaVm {
  /** Compiles a script. Returns the compiler's message if it fails. */
  readonly compile: (source: string) => LuaScript | string
  /** Runs a library. Returns the functions that it registers, or an error message. */
  readonly load: (source: string) => ReadonlyArray<LuaFunction> | string
}
