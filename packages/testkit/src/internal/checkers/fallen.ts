/** Finds processes that were killed or have failed. Their waits and work have ended without further notes. */
import type { Event } from "../simulation/history.ts"

/** The client, if any, whose process was killed or failed in this event. */
export const fallen = (event: Event): string | undefined =>
  event._tag === "Fault" && event.fault === "kill"
    ? event.target
    : event._tag === "Note" && event.kind === "crashed"
    ? event.client
    : undefined

/** Deletes the entries for the client whose process was killed or failed in this event. */
export const forgetFallen = (event: Event, maps: Iterable<Map<string, { readonly client: string }>>): void => {
  const gone = fallen(event)
  if (gone === undefined) return
  for (const map of maps) for (const [key, { client }] of map) if (client === gone) map.delete(key)
}
