/**
 * The seams of the in-memory server. The engine is plain synchronous code without a clock, timers or randomness of its
 * own: whoever drives it supplies those, and calls `tick` when `nextWake` is due.
 */

import type { LuaVm } from "./lua/vm.ts"
import type { Value } from "./reply.ts"

/** A reply as a client library hands it out: errors are values, `null` is nil, nested arrays nest. */
export type Reply = string | number | null | ReplyError | ReadonlyArray<Reply>

export class ReplyError extends Error {
  override readonly name = "ReplyError"
}

/** Something that the server sends to a connection unasked. */
export type Push =
  | { readonly _tag: "message"; readonly channel: string; readonly message: string }
  | { readonly _tag: "pmessage"; readonly pattern: string; readonly channel: string; readonly message: string }

export type ErrorState = "LOADING" | "BUSY" | "READONLY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN"

/** A push in binary strings, as a socket sends it. No keys of an invalidation means all keys. */
export type BinaryPush =
  | Push
  | { readonly _tag: "smessage"; readonly channel: string; readonly message: string }
  | { readonly _tag: "invalidate"; readonly keys: ReadonlyArray<string> | undefined }

/** One command with its reply, as a session saw it, in binary strings. */
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
  /** Uniform in [0, 1). Decides how long after its deadline an expired key is actively removed. */
  readonly random: () => number
  /** How late active expiry removes a key that nobody touches, in ms: a draw between the two. Default 0 to 100. */
  readonly expiryDelayMillis?: readonly [minimum: number, maximum: number]
  /** Runs the scripts; see `loadLua`. Without it, scripting commands are refused. */
  readonly lua?: LuaVm
  /** How many of the last commands that wrote something `rollback` can take back. Default 0. */
  readonly undoDepth?: number
}

export interface Session<R = Reply> {
  readonly id: number
  /**
   * Runs one command. `reply` is called exactly once: before `execute` returns, or later for a command that blocks,
   * or never when the session is closed first.
   */
  readonly execute: (args: ReadonlyArray<string>, reply: (reply: R) => void) => void
  /** Drops the connection: blocked commands and subscriptions end, nothing is replied any more. */
  readonly close: () => void
}
