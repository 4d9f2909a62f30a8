/** Checks the turns that fibers of one process share: each must end in time. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import type { Checker } from "@effect-simba/testkit"

/** A process's clock may run slow by up to this fraction. */
const rate = 0.02

/** What a holder notes itself. Other notes about its lease may follow the hand-over. */
const holderNotes = new Set(["granted", "ensured", "begin", "step", "stopped", "end"])

/**
 * A lease goes to another fiber of its process only while its turn is younger than `localTurn`, in milliseconds. A turn
 * starts no later than its first holder's note. A lease is handed over no earlier than its holder's last note; the next
 * holder notes it when the process gets to it, which may take any time.
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
        // An id that the server granted again has a separate turn
        if (turn === undefined || token >= turn.token + tokenStride) {
          return void turns.set(id, { token, since: event.at, last: token, at: event.at })
        }
        const age = turn.at - turn.since
        turn.at = event.at
        if (token === turn.last) return
        turn.last = token
        if (localTurn === 0) {
          view.violated(`${id} went to another fiber with token ${token}, although each turn has one holder`)
        }
        // The clock of a turn stands still while the machine sleeps
        if (age > localTurn / (1 - rate) + 1 && view.resumedAt(event.client) < turn.since) {
          view.violated(`${id} went to another fiber ${Math.round(age)} ms after its turn began`)
        }
      }
    }
  }
})
