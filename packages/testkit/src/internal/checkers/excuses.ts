/** Excuses for a client that believes in a lease which the server does not know. */
import type { Event } from "../simulation/history.ts"
import type { View } from "../simulation/setup.ts"
import { field } from "./fields.ts"

/**
 * A process that resumes may finish its current step. A suspended machine stopped its timers too: the process notices
 * only at its next look at the wall clock. Milliseconds.
 */
const awakening = { paused: 1, suspended: 1100 }

export const excused = (view: View, client: string, grantedAt: number, timers: boolean): boolean =>
  view.lossAt() >= grantedAt || view.serverStepAt() >= grantedAt ||
  // Its wall clock was set while it slept: neither of its clocks measured the sleep
  (view.wasSuspended(client) && view.resumedAt(client) >= grantedAt && view.clockStepAt(client) >= grantedAt) ||
  view.now() - view.resumedAt(client) <= (timers && view.wasSuspended(client) ? awakening.suspended : awakening.paused)

/** When each id was granted. A server that lost data may grant to the same id again, which is another grant. */
export const grants = () => {
  const granted = new Map<string, number>()
  const told = new Set<string>()
  return {
    onEvent: (event: Event) => {
      if (event._tag === "Owner" && event.to !== undefined && !told.has(event.to)) granted.set(event.to, event.at)
      else if (event._tag === "Note" && event.kind === "granted") told.add(field(event.fields, "id"))
    },
    grantedAt: (id: string) => granted.get(id) ?? -1
  }
}
