/** A checker for forced releases, after which the old owner must stop soon. */
import type { Checker } from "@effect-simba/testkit"

const beliefs = new Set(["ensured", "begin", "step"])

/**
 * No client relies on a lease for more than `within` milliseconds after its forced release, or after the client
 * received the grant if that is later. A client is exempt if it may have missed the message, because it had no
 * subscription, resubscribed after the release, or was disturbed by a fault after the release or less than `recovery`
 * milliseconds before. It is also exempt if a renewal failed after the release.
 */
export const forcedReleasesAreHeard = (
  { recovery, within }: { readonly within: number; readonly recovery: number }
): Checker.Checker => ({
  name: "forced releases are noticed",
  start: (view) => {
    const forced = new Map<string, { readonly at: number; readonly channel: string | undefined }>()
    const grantedAt = new Map<string, number>()
    const failedAt = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (event._tag === "Owner") {
          const { at, command, from, resource, to } = event
          if (to !== undefined) forced.delete(to)
          const ids = command === undefined ? [] : [view.lock.forced?.(command.args, command.reply) ?? []].flat()
          if (from !== undefined && ids.some(({ id }) => id === from)) {
            const channel = view.lock.channel?.(resource, from)
            if (channel === undefined || view.subscribers(channel) > 0) forced.set(from, { at, channel })
          }
        }
        if (event._tag === "Command" && event.command.args[0] === "SUBSCRIBE") {
          for (const [id, { channel }] of forced) {
            if (channel !== undefined && event.command.args.includes(channel)) forced.delete(id)
          }
        }
        if (event._tag === "Log" && event.text.includes("could not be renewed")) failedAt.set(event.client, event.at)
        if (event._tag !== "Note") return
        const id = String(event.fields["id"])
        if (event.kind === "granted" && !grantedAt.has(id)) grantedAt.set(id, event.at)
        const forcedAt = forced.get(id)?.at
        if (forcedAt === undefined || !beliefs.has(event.kind)) return
        const touched = Math.max(view.disturbedAt(event.client), view.resumedAt(event.client))
        if (touched + recovery >= forcedAt || (failedAt.get(event.client) ?? -Infinity) >= forcedAt) return
        const late = event.at - Math.max(forcedAt, grantedAt.get(id) ?? forcedAt)
        if (late <= within + view.lateness(event.client)) return
        view.violated(`${id} relies on its lease ${Math.round(late)} ms after its forced release`)
      }
    }
  }
})
