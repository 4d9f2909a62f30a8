/**
 * The options of an engine, and what it reports about each command.
 */
import type { ExpiryDelay } from "./expiryDelay.ts"
import type { LuaVm } from "./lua/script.ts"
import type { Value } from "./reply.ts"

/** One command with its reply, as a session received it, in binary strings. */
export interface Trace {
  readonly args: ReadonlyArray<string>
  readonly reply: Value
  readonly session: number
  /** Server time at which the command arrived. */
  readonly micros: number
}

export interface EngineOptions {
  /** The server's wall clock, in whole microseconds since the epoch. The engine freezes it within a command or script. */
  readonly nowMicros: () => number
  /** Uniform in [0, 1). Determines how long after its deadline an expired key is actively removed. */
  readonly random: () => number
  /** How late active expiry removes a key that nobody touches, in ms: a draw between the two. Default 0 to 100. */
  readonly expiryDelayMillis?: ExpiryDelay
  /** Runs the scripts; see `loadLua`. Without it, scripting commands are refused. */
  readonly lua?: LuaVm
  /** Milliseconds that pass while a script runs. Without it, a long script is ended instead of keeping the server busy. */
  readonly stopwatch?: (() => number) | undefined
  /** How many of the last commands that wrote something `rollback` can undo. Default 0. */
  readonly undoDepth?: number
}
