/**
 * The states of an owned data stream, and the transitions that `ownedStream` makes between them. A test compares them
 * with the diagram in docs/protocol.md.
 */

/**
 * - `owned`: the handler, if there is one, is running.
 * - `revoked`: the owner was asked to release the stream. The handler has the grace period to finish its current
 *   message.
 * - `stopped`: the handler was interrupted, and the lease will end.
 * - `ended`: the owner ended the lease: the stream is done, released, handed over or dead-lettered.
 * - `lost`: the lease was lost before its owner ended it.
 */
export type OwnedState = "owned" | "revoked" | "stopped" | "ended" | "lost"

type Transitions = { readonly [From in OwnedState]?: OwnedState }

/** A transition from any other state has no effect. `ended` and `lost` are final. */
export const transitions = {
  revoke: { owned: "revoked" },
  keep: { revoked: "owned" },
  stop: { owned: "stopped", revoked: "stopped" },
  end: { owned: "ended", revoked: "ended", stopped: "ended" },
  lose: { owned: "lost", revoked: "lost", stopped: "lost" }
} satisfies Record<string, Transitions>

/** The next state. Undefined if the transition has no effect. */
export const after = (state: OwnedState, transition: keyof typeof transitions): OwnedState | undefined =>
  (transitions[transition] as Transitions)[state]
