/** A session with the in-memory server: commands in, replies and unsolicited messages out. */

/** A reply as a client library returns it: errors are values, and nil is `null`. */
export type Reply = string | number | null | ReplyError | ReadonlyArray<Reply>

export class ReplyError extends Error {
  override readonly name = "ReplyError"
}

/** An unsolicited message from the server. */
export type Push =
  | { readonly _tag: "message"; readonly channel: string; readonly message: string }
  | { readonly _tag: "pmessage"; readonly pattern: string; readonly channel: string; readonly message: string }

/** A push in binary strings, as sockets send it. An `invalidate` without keys invalidates all keys. */
export type BinaryPush =
  | Push
  | { readonly _tag: "smessage"; readonly channel: string; readonly message: string }
  | { readonly _tag: "invalidate"; readonly keys: ReadonlyArray<string> | undefined }
  | { readonly _tag: "tracking-redir-broken"; readonly target: number }
  | { readonly _tag: "monitor"; readonly line: string }

export interface Session<R = Reply> {
  readonly id: number
  /**
   * Runs one command. `reply` is called at most once: before `execute` returns, or later for a command that blocks. It
   * is not called after the session is closed, or if CLIENT REPLY suppresses the reply.
   */
  readonly execute: (args: ReadonlyArray<string>, reply: (reply: R) => void) => void
  /** Drops the connection. Blocked commands and subscriptions end without a reply. */
  readonly close: () => void
}
