/** Checks that each resource has one owner at a time, and that tokens grow. */
import { all } from "../simulation/ownershipTracker.ts"
import type { Checker } from "../simulation/setup.ts"
import { beliefs } from "./excuses.ts"
import { field, seconds } from "./fields.ts"

/**
 * Checks that a resource changes owners only after a release, after the lease expired, or after the server lost data.
 */
export const oneOwner: Checker = {
  name: "one owner at a time",
  start: (view) => ({
    onEvent: (event) => {
      if (event._tag !== "Owner" || event.from === undefined || view.lossAt() >= event.since) return
      const { command, deadline, from, resource, to } = event
      const ended = command === undefined
        ? []
        : [view.lock.released, view.lock.forced].flatMap((parties) => all(parties?.(command.args, command.reply)))
      if (ended.some((party) => party.resource === resource && party.id === from)) return
      const left = deadline - view.serverNow()
      if (left < 0) return
      view.violated(`${resource} went from ${from} to ${to ?? "nobody"}, ${seconds(left)} before its lease expired`)
    }
  })
}

/**
 * Checks that each grant has a larger token than all earlier grants, unless the server lost data, and that the owner
 * receives that token.
 */
export const tokensGrow: Checker = {
  name: "tokens grow",
  start: (view) => {
    const largest = new Map<string, { readonly id: string; readonly token: number; readonly at: number }>()
    const minted = new Map<string, number>()
    const granted = new Set<string>()
    const reported = new Map<string, number>()
    const { isExcused, onEvent } = beliefs(view)
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag === "Owner" && event.to !== undefined) {
          // Not a grant: data loss or a clock step has restored an earlier owner
          if (view.lossAt() >= event.at || event.command === undefined) return
          const { resource, to, token } = event
          if (token === undefined || Number.isNaN(token)) {
            return view.violated(`${to} was granted ${resource} without a token`)
          }
          const before = largest.get(resource)
          if (before !== undefined && token <= before.token && view.lossAt() < before.at) {
            view.violated(`${to} was granted ${resource} with token ${token}, after ${before.token}`)
          }
          largest.set(resource, { id: to, token, at: event.at })
          minted.set(to, token)
          granted.add(`${to} ${token}`)
        } else if (event._tag === "Note" && event.kind === "granted" && "token" in event.fields) {
          const id = field(event.fields, "id")
          const resource = field(event.fields, "resource")
          const token = minted.get(id)
          const noted = Number(event.fields["token"])
          const next = reported.get(id) ?? token ?? 0
          const spare = (token: number) => view.lock.spareTokens?.(token) ?? 0
          // The client may rely on an earlier grant to the same id. If the server's clock was set back, the end of that
          // grant may have gone unnoticed
          const isEarlier = granted.has(`${id} ${noted}`) && isExcused(event.client, resource, id, false)
          const isRight = token !== undefined && noted >= next && noted <= token + spare(token)
          if (!isRight && !isEarlier && view.lossAt() < 0) {
            view.violated(`${id} received token ${noted}, but the server granted ${token ?? "none"}`)
          }
          reported.set(id, noted)
          const before = largest.get(resource)
          // The owner used a reserved token, so the largest token grows. Ignore other tokens: the owner may not have
          // noticed data loss yet, or its id was granted the resource again
          if (before?.id === id && token !== undefined && before.token < noted && noted <= token + spare(token)) {
            largest.set(resource, { ...before, token: noted })
          }
        }
      }
    }
  }
}
