/**
 * The states of a data stream at its owner, and what moves it from one to another. docs/protocol.md draws them, and a test
 * compares.
 */

/**
 * - `owned`: its handler works on.
 * - `revoked`: it was asked back; its handler finishes the message in hand, within the grace period.
 * - `stopped`: its handler was interrupted, and it is yielded.
 * - `ended`: done, released, handed over or a dead letter, by its owner's own act.
 * - `lost`: its lease was over first.
 */
export type OwnedState = "owned" | "revoked" | "stopped" | "ended" | "lost"

type Transitions = { readonly [From in OwnedState]?: OwnedState }

/** What is not here does not happen: nothing follows an end. */
export const transitions = {
  revoke: { owned: "revoked" },
  keep: { revoked: "owned" },
  stop: { owned: "stopped", revoked: "stopped" },
  end: { owned: "ended", revoked: "ended", stopped: "ended" },
  lose: { owned: "lost", revoked: "lost", stopped: "lost" }
} satisfies Record<string, Transitions>

/** Undefined where it does not happen. */
export const after = (state: OwnedState, transition: keyof typeof transitions): OwnedState | undefined =>
  (transitions[transition] as Transitions)[state]
