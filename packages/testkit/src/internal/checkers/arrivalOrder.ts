/**
 * Checks that waiters are served in order of arrival. Between processes, their places in the queue decide; within a
 * process, the order of their requests does.
 */
import { all } from "../simulation/ownershipTracker.ts"
import type { Checker } from "../simulation/setup.ts"
import { forgetFallen } from "./fallen.ts"
import { field, seconds } from "./fields.ts"

interface Queued {
  readonly place: number
  readonly at: number
  readonly client: string
  /** The command with which the waiter first queued. */
  readonly command: object
}

/** Checks that a grant does not pass over a waiter with an earlier place. */
export const firstComeFirstServed: Checker = {
  name: "first come, first served",
  start: (view) => {
    const lineOf = view.lock.line ?? ((id) => id)
    const places = new Map<string, number>()
    const queues = new Map<string, Map<string, Queued>>()
    // The number of departures when each queue was last checked. A waiter that has unsubscribed may be skipped. It then
    // has no place until it queues again
    const known = new Map<string, number>()
    // Released ids. Their late requests do not count
    const left = new Set<string>()
    const queueOf = (resource: string) => {
      const queue = queues.get(resource) ?? new Map<string, Queued>()
      queues.set(resource, queue)
      return queue
    }
    const forgetSilent = (resource: string) => {
      const queue = queueOf(resource)
      const departures = view.departures()
      if (known.get(resource) === departures) return
      known.set(resource, departures)
      for (const id of [...queue.keys()]) {
        const channel = view.lock.channel?.(resource, id)
        if (channel !== undefined && view.subscribers(channel) === 0) queue.delete(id)
      }
    }
    return {
      onEvent: (event) => {
        forgetFallen(event, queues.values())
        if (event._tag === "Command") {
          const { args, client, reply } = event.command
          for (const resource of view.lock.resources) {
            if (args.includes(view.lock.ownerKey(resource))) forgetSilent(resource)
          }
          for (const { id, place, resource } of all(view.lock.queued?.(args, reply))) {
            places.set(id, place)
            if (left.has(id)) continue
            const queue = queueOf(resource)
            known.delete(resource)
            const { at, command } = queue.get(id) ?? { at: event.at, command: event.command }
            queue.set(id, { place, at, command, client })
          }
          for (const { id, resource } of all(view.lock.released?.(args, reply))) {
            queueOf(resource).delete(id)
            left.add(id)
          }
        } else if (event._tag === "Owner" && event.to !== undefined) {
          const { resource, to } = event
          const queue = queueOf(resource)
          const place = places.get(to) ?? Infinity
          const since = queue.get(to)?.at ?? -Infinity
          queue.delete(to)
          for (const [id, waiter] of queue) {
            if (lineOf(id) === lineOf(to)) continue
            // The same call may grant the mutex and then queue another waiter
            if (waiter.command === event.command) continue
            // After the server's clock was set back, a later ticket may be smaller
            if (view.serverStepAt() > -Infinity && waiter.at >= since) continue
            if (waiter.place >= place || view.lossAt() >= waiter.at || view.serverStepAt() >= waiter.at) continue
            if (view.disturbedAt(waiter.client) >= waiter.at) continue
            view.violated(`${resource} was granted to ${to} although ${id} has waited since ${seconds(waiter.at)}`)
          }
        }
      }
    }
  }
}

interface Asking {
  readonly order: number
  readonly at: number
  readonly client: string
  readonly line: string
  /** Whether the request may be sent later than it is noted. */
  readonly asksLater: boolean
}

/** Checks that waiters in the same process are served in the order in which they noted `waiting`. */
export const inOrderWithinLines: Checker = {
  name: "in order within a process",
  start: (view) => {
    const asking = new Map<string, Asking>()
    let overtaken: Array<{ readonly key: string; readonly wait: Asking; readonly at: number; readonly text: string }> =
      []
    let order = 0
    return {
      onEvent: (event) => {
        // If a waiter gives up at the same instant, it may note this one step later
        if (overtaken.length > 0) {
          for (const { at, key, text, wait } of overtaken) {
            if (event.at > at && asking.get(key) === wait) return view.violated(text)
          }
          overtaken = overtaken.filter(({ at, key, wait }) => event.at <= at && asking.get(key) === wait)
        }
        forgetFallen(event, [asking])
        if (event._tag !== "Note") return
        const process = `${event.client}#${event.generation}`
        const key = `${process}/${field(event.fields, "wait")}`
        if (event.kind === "waiting") {
          const resource = field(event.fields, "resource")
          asking.set(key, {
            order: order++,
            at: event.at,
            client: event.client,
            line: `${process} ${resource}`,
            // A contender that retries after leading or after a failure notes its wait before it sends the request. Its
            // fiber may be delayed between the note and the request, even in a process that is ordered again after the
            // faults have ended
            asksLater: event.fields["recovery"] !== undefined || !view.isOrdered(event.client)
          })
        } else if (event.kind === "waited") {
          const wait = asking.get(key)
          asking.delete(key)
          // In an unordered process, a fiber may be delayed between its note and its request, so it may queue later
          if (!view.isOrdered(event.client)) return
          if (wait === undefined || Number(event.fields["served"] ?? 0) !== 1) return
          for (const [earlier, other] of asking) {
            if (other.line !== wait.line || other.asksLater || other.order > wait.order) continue
            if (view.disturbedAt(other.client) >= other.at) continue
            const text = `${key} was served before ${earlier}, which has waited since ${seconds(other.at)}`
            overtaken.push({ key: earlier, wait: other, at: event.at, text })
          }
        }
      }
    }
  }
}
