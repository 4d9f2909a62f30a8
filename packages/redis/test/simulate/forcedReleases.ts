/** A checker of forced releases: the old owner must stop soon. */
import type { Checker } from "@effect-simba/testkit"

const beliefs = new Set(["ensured", "begin", "step"])

/**
 * No client relies on a lease for more than `within` milliseconds after its forced release, or after the client
 * received the grant if that is later. A client is exempt if it may have missed the message: it had no subscription, or
 * a fault disturbed it after the release, or less than `recovery` milliseconds before. It is also exempt if a renewal
 * failed after the release.
 */
export const forcedReleasesAreHeard = (
  { recovery, within }: { readonly within: number; readonly recovery: number }
): Checker.Checker => ({
  name: "forced releases are noticed",
  start: (view) => {
    const forcedAt = new Map<string, number>()
    const grantedAt = new Map<string, number>()
    const failedAt = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (event._tag === "Owner") {
          const { at, command, from, resource, to } = event
          if (to !== undefined) forcedAt.delete(to)
          const forced = command === undefined ? [] : [view.lock.forced?.(command.args, command.reply) ?? []].flat()
          if (from !== undefined && forced.some(({ id }) => id === from)) {
            const channel = view.lock.channel?.(resource, from)
            if (channel === undefined || view.subscribers(channel) > 0) forcedAt.set(from, at)
          }
        }
        if (event._tag === "Log" && event.text.includes("could not be renewed")) failedAt.set(event.client, event.at)
        if (event._tag !== "Note") return
        const id = String(event.fields["id"])
        if (event.kind === "granted" && !grantedAt.has(id)) grantedAt.set(id, event.at)
        const forced = forcedAt.get(id)
        if (forced === undefined || !beliefs.has(event.kind)) return
        const touched = Math.max(view.disturbedAt(event.client), view.resumedAt(event.client))
        if (touched + recovery >= forced || (failedAt.get(event.client) ?? -Infinity) >= forced) return
        const late = event.at - Math.max(forced, grantedAt.get(id) ?? forced)
        if (late <= within + view.lateness(event.client)) return
        view.violated(`${id} relies on its lease ${Math.round(late)} ms after its forced release`)
      }
    }
  }
})
