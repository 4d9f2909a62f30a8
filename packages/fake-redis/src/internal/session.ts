/**
 * A session with the in-memory server, and what it delivers: replies, and messages that nobody requested.
 */

/** A reply as a client library returns it: errors are values, `null` is nil, nested arrays nest. */
export type Reply = string | number | null | ReplyError | ReadonlyArray<Reply>

export class ReplyError extends Error {
  override readonly name = "ReplyError"
}

/** A message that the server sends to a connection without a request. */
export type Push =
  | { readonly _tag: "message"; readonly channel: string; readonly message: string }
  | { readonly _tag: "pmessage"; readonly pattern: string; readonly channel: string; readonly message: string }

/** A push in binary strings, as a socket sends it. An invalidation without keys means all keys. */
export type BinaryPush =
  | Push
  | { readonly _tag: "smessage"; readonly channel: string; readonly message: string }
  | { readonly _tag: "invalidate"; readonly keys: ReadonlyArray<string> | undefined }
  | { readonly _tag: "tracking-redir-broken"; readonly target: number }
  | { readonly _tag: "monitor"; readonly line: string }

export interface Session<R = Reply> {
  readonly id: number
  /**
   * Runs one command. `reply` is called exactly once: before `execute` returns, or later for a command that blocks. It
   * is never called if the session is closed first.
   */
  readonly execute: (args: ReadonlyArray<string>, reply: (reply: R) => void) => void
  /** Drops the connection: blocked commands and subscriptions end, and no reply follows. */
  readonly close: () => void
}
