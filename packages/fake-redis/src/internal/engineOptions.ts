/** The options for an engine, and the trace that it reports for each command. */
import type { ExpiryDelay } from "./expiryDelay.ts"
import type { LuaVm } from "./lua/script.ts"
import type { Value } from "./reply.ts"

/** One command and its reply, in binary strings. */
export interface Trace {
  readonly args: ReadonlyArray<string>
  readonly reply: Value
  readonly session: number
  /** Server time at which the command arrived. */
  readonly micros: number
}

export interface EngineOptions {
  /** Returns the server's wall clock, in whole microseconds since the epoch. A command or script sees a single time. */
  readonly nowMicros: () => number
  /**
   * Returns a uniform random number in [0, 1), for commands such as RANDOMKEY, for scripts, and for the delay before an
   * expired key is removed.
   */
  readonly random: () => number
  /**
   * The minimum and maximum delay, in milliseconds, before an expired key is removed if nobody accesses it. Default: 0
   * to 100.
   */
  readonly expiryDelayMillis?: ExpiryDelay
  /** Runs scripts; see `loadLua`. If not set, scripting commands are rejected. */
  readonly lua?: LuaVm
  /**
   * Returns elapsed milliseconds while a script runs. If not set, a long script is killed instead of making the server
   * busy.
   */
  readonly stopwatch?: (() => number) | undefined
  /** The maximum number of write commands that `rollback` can undo. Default: 0. */
  readonly undoDepth?: number
}
