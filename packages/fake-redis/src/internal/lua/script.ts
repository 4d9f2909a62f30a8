/**
 * Scripts and functions from the server's side, and the state of one run.
 */
import type { Value } from "../reply.ts"
import { jsonSettings } from "./jsonSettings.ts"
import type { Lrand48 } from "./libraries.ts"

export interface ScriptHost {
  readonly call: (args: ReadonlyArray<string>, protocol: 2 | 3) => Value
  readonly random: () => number
  /** Whether the user may run a command; `undefined` if there is no such command. */
  readonly mayRun: (args: ReadonlyArray<string>) => boolean | undefined
  /** Whether the script must pause, so that other clients are served. Without it, a long script is ended. */
  readonly mustPause?: (() => boolean) | undefined
}

/** A script that waits to continue. */
export class Paused {
  readonly resume: () => Value | Paused
  /** Makes the script fail when it continues. */
  readonly kill: () => void
  constructor(resume: () => Value | Paused, kill: () => void) {
    this.resume = resume
    this.kill = kill
  }
}

/** The state of one run of a script. */
export class Run {
  readonly host: ScriptHost
  readonly json = jsonSettings()
  lrand: Lrand48 | undefined
  /** The protocol that `redis.setresp` has chosen. */
  resp: 2 | 3 = 2
  hooks = 0
  /** Calls of `pcall` that have not returned: within them, a script cannot pause. */
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
  /** Keys, arguments and the reply are binary strings; `sha` appears in error messages. */
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
  /** Runs a library; returns its functions, or what is wrong with it. */
  readonly load: (source: string) => ReadonlyArray<LuaFunction> | string
}
