/** What excuses a client that believes in a lease of which the server knows nothing. */
import type { Event } from "../simulation/history.ts"
import type { View } from "../simulation/setup.ts"
import { field } from "./fields.ts"

/**
 * Right after a process went on it may still do what it was about to do. A suspended machine has stopped the timers
 * too, so that it takes until its next look at the wall clock to find out. Milliseconds.
 */
const awakening = { paused: 1, suspended: 1100 }

export const excused = (view: View, client: string, grantedAt: number, timers: boolean): boolean =>
  view.lossAt() >= grantedAt || view.serverStepAt() >= grantedAt ||
  // Asleep while its wall clock was set: neither of its clocks knows how long
  (view.wasSuspended(client) && view.resumedAt(client) >= grantedAt && view.clockStepAt(client) >= grantedAt) ||
  view.now() - view.resumedAt(client) <= (timers && view.wasSuspended(client) ? awakening.suspended : awakening.paused)

/** When ids were granted what they hold. A server that forgot it may grant it to the same id again: that is another. */
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
