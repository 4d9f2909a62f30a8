/** A checker for turns. During a turn, the fibers of one process hand a lease to each other. Turns must end in time. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import type { Checker } from "@effect-simba/testkit"

/** The fraction by which a process's clock may run slow, at most. */
const rate = 0.02

/** The kinds of notes that only holders write. Other notes about a lease may follow its hand-off. */
const holderNotes = new Set(["granted", "ensured", "begin", "step", "stopped", "end"])

/**
 * A lease goes to another fiber of the same process only while its turn is younger than `localTurn` milliseconds. A
 * turn starts with its first holder's first note. A hand-off is timed by the old holder's last note, because the next
 * holder may write its first note much later.
 */
export const turnsEnd = ({ localTurn }: { readonly localTurn: number }): Checker.Checker => ({
  name: "turns end",
  start: (view) => {
    const turns = new Map<string, { readonly token: number; readonly since: number; last: number; at: number }>()
    return {
      onEvent: (event) => {
        if (event._tag !== "Note" || !holderNotes.has(event.kind)) return
        const id = String(event.fields["id"])
        const turn = turns.get(id)
        if (event.kind !== "granted" || !("token" in event.fields)) {
          if (turn !== undefined) turn.at = event.at
          return
        }
        const token = Number(event.fields["token"])
        // A new grant to the same id starts a new turn
        if (turn === undefined || token >= turn.token + tokenStride) {
          return void turns.set(id, { token, since: event.at, last: token, at: event.at })
        }
        const age = turn.at - turn.since
        turn.at = event.at
        if (token === turn.last) return
        turn.last = token
        if (localTurn === 0) {
          view.violated(`${id} went to another fiber with token ${token}, although local turns are disabled`)
        }
        // The turn's clock stops while the machine sleeps
        if (age > localTurn / (1 - rate) + 1 && view.resumedAt(event.client) < turn.since) {
          view.violated(`${id} went to another fiber ${Math.round(age)} ms after its turn began`)
        }
      }
    }
  }
})
