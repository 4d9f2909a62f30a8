/**
 * The states of a data stream at its owner, and the transitions between them. docs/protocol.md draws them, and a test
 * compares the two.
 */

/**
 * - `owned`: its handler works.
 * - `revoked`: its owner was asked to release it; the handler finishes its current message, within the grace period.
 * - `stopped`: its handler was interrupted, and the data stream will be yielded.
 * - `ended`: done, released, handed over or a dead letter, as its owner asked.
 * - `lost`: its lease ended before that.
 */
export type OwnedState = "owned" | "revoked" | "stopped" | "ended" | "lost"

type Transitions = { readonly [From in OwnedState]?: OwnedState }

/** Other transitions do not occur: nothing follows an end. */
export const transitions = {
  revoke: { owned: "revoked" },
  keep: { revoked: "owned" },
  stop: { owned: "stopped", revoked: "stopped" },
  end: { owned: "ended", revoked: "ended", stopped: "ended" },
  lose: { owned: "lost", revoked: "lost", stopped: "lost" }
} satisfies Record<string, Transitions>

/** Undefined if the transition does not occur. */
export const after = (state: OwnedState, transition: keyof typeof transitions): OwnedState | undefined =>
  (transitions[transition] as Transitions)[state]
