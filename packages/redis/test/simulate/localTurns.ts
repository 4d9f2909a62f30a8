/** Checks the turns that fibers of one process share: each must end in time. */
import { tokenStride } from "@effect-simba/core/MutexStore"
import type { Checker } from "@effect-simba/testkit"

/** A process's clock may run slow by up to this fraction. */
const rate = 0.02

/** A fiber that is handed a lease may be set aside this many times before it notes it. */
const turnsToNote = 10

/**
 * A lease goes to another fiber of its process only while its turn is younger than `localTurn`, in milliseconds. A turn
 * starts no earlier than the process's request, and no later than its first holder's note.
 */
export const turnsEnd = ({ localTurn }: { readonly localTurn: number }): Checker.Checker => ({
  name: "turns end",
  start: (view) => {
    const turns = new Map<string, { readonly token: number; readonly since: number; last: number }>()
    return {
      onEvent: (event) => {
        if (event._tag !== "Note" || event.kind !== "granted" || !("token" in event.fields)) return
        const id = String(event.fields["id"])
        const token = Number(event.fields["token"])
        const turn = turns.get(id)
        // An id that the server granted again has a separate turn
        if (turn === undefined || token >= turn.token + tokenStride) {
          return void turns.set(id, { token, since: event.at, last: token })
        }
        if (token === turn.last) return
        turn.last = token
        const age = event.at - turn.since
        if (localTurn === 0) {
          view.violated(`${id} went to another fiber with token ${token}, although each turn has one holder`)
        }
        if (
          age > localTurn / (1 - rate) + turnsToNote * view.lateness(event.client) + 1 &&
          view.resumedAt(event.client) < turn.since
        ) {
          view.violated(`${id} went to another fiber ${Math.round(age)} ms after its turn began`)
        }
      }
    }
  }
})
