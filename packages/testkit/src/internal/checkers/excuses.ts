/** Decides when a checker must excuse a client for relying on a lease that has ended on the server. */
import type { Event } from "../simulation/history.ts"
import { all } from "../simulation/ownershipTracker.ts"
import type { View } from "../simulation/setup.ts"
import { field } from "./fields.ts"

/** After a process resumes, it may first finish its event-loop turn or, if tasks take time, its current step. */
const step = 1

/**
 * Suspending a machine stops timers too, so its processes notice the suspension only when they next compare their
 * clocks.
 */
const comparisonMillis = 1100

interface Grant {
  /** When the client sent its first request. The client may measure its grant's age from this time. */
  readonly askedAt: number
  /**
   * When the id was granted the resource. After data loss, the server may grant the resource to the same id again. That
   * is a different grant.
   */
  at: number
  /** The server time at which the lease would have ended if it had not been forcibly released. */
  forcedUntil: number
}

/** Tracks all ids' leases, to decide when a client is excused for relying on a lease that has ended. */
export const beliefs = (view: View) => {
  const grants = new Map<string, Grant>()
  const reported = new Set<string>()
  /** The server time at which each id's lease expired. */
  const ranOut = new Map<string, number>()
  const grantOf = (id: string, at: number) => {
    const known = grants.get(id)
    if (known !== undefined) return known
    const grant: Grant = { askedAt: at, at: -1, forcedUntil: -Infinity }
    grants.set(id, grant)
    return grant
  }
  return {
    onEvent: (event: Event) => {
      if (event._tag === "Command") {
        for (const { id } of all(view.lock.asked?.(event.command.args, event.command.reply))) grantOf(id, event.at)
      } else if (event._tag === "Note" && event.kind === "granted") reported.add(field(event.fields, "id"))
      if (event._tag !== "Owner") return
      if (event.to !== undefined && !reported.has(event.to)) grantOf(event.to, event.at).at = event.at
      const { command, deadline, from } = event
      if (from !== undefined && deadline <= view.serverNow()) ranOut.set(from, deadline)
      if (command === undefined || from === undefined) return
      if (all(view.lock.forced?.(command.args, command.reply)).some(({ id }) => id === from)) {
        grantOf(from, event.at).forcedUntil = deadline
      }
    },
    grantedAt: (id: string) => grants.get(id)?.at ?? -1,
    wasForced: (id: string) => (grants.get(id)?.forcedUntil ?? -Infinity) > -Infinity,
    isExcused: (client: string, resource: string, id: string, timers: boolean): boolean => {
      const last = view.lastOwner(resource)
      const end = last?.id === id ? last.until : ranOut.get(id) ?? -Infinity
      // A busy process may be late until the end of the event-loop turn that was running at the deadline
      const late = view.serverNow() - end
      if (late >= 0 && late <= view.lateness(client)) return true
      const { askedAt, at, forcedUntil } = grants.get(id) ?? { askedAt: -1, at: -1, forcedUntil: -Infinity }
      return view.lossAt() >= at || view.serverForwardAt() >= askedAt || view.serverNow() < forcedUntil ||
        // The client's machine was suspended, and its wall clock was set after the request: neither clock measured the
        // sleep
        (view.sleptUntil(client) >= at && view.clockStepAt(client) >= askedAt) ||
        view.now() - view.resumedAt(client) <=
          Math.max(step, view.lateness(client)) + (timers && view.wasSuspended(client) ? comparisonMillis : 0)
    }
  }
}
