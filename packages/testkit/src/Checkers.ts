/**
 * What must hold in every history of a simulation. Checkers read the server; from programs they take only what a server
 * cannot know: when protected work begins and ends, and what a lease said of itself.
 *
 * Programs say so by `client.note(kind, { resource, id, ... })`:
 *
 * - `waiting`, `waited`: asks for a `resource`, and has it or has given up; `wait` is a number of its own.
 * - `granted`: has it, with `id` and `token`.
 * - `ensured`: the lease has just said that it is held; `left` is the milliseconds until its deadline.
 * - `begin`, `step`, `end`: protected work under `id`.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import { field, seconds } from "./internal/noted.ts"
import type { Checker as AnyChecker, View } from "./internal/simulated.ts"
import { everybodyIsServed, nobodyOversleeps } from "./internal/waitCheckers.ts"

/**
 * @category models
 * @since 0.1.0
 */
export type Checker = AnyChecker

/**
 * Right after a process went on it may still do what it was about to do. A suspended machine has stopped the timers
 * too, so that it takes until its next look at the wall clock to find out. Milliseconds.
 */
const awakening = { paused: 1, suspended: 1100 }

/**
 * An owner is followed by another only after it released, after its time was up, or after the server lost data.
 *
 * @category checkers
 * @since 0.1.0
 */
export const oneOwner: Checker = {
  name: "one owner at a time",
  start: (view) => ({
    onEvent: (event) => {
      if (event._tag !== "Owner" || event.from === undefined || view.lossAt() >= event.since) return
      const { command, deadline, from, resource, to } = event
      const released = command === undefined ? undefined : view.lock.released?.(command.args, command.reply)
      if (released?.resource === resource && released.id === from) return
      const left = deadline - view.serverNow()
      if (left < 0) return
      view.violated(`${resource} went from ${from} to ${to ?? "nobody"}, ${seconds(left)} before its time was up`)
    }
  })
}

/**
 * Each grant has a token greater than all before it, unless the server lost data; and who is granted is told that token.
 *
 * @category checkers
 * @since 0.1.0
 */
export const tokensGrow: Checker = {
  name: "tokens grow",
  start: (view) => {
    const largest = new Map<string, { readonly token: number; readonly at: number }>()
    const minted = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (event._tag === "Owner" && event.to !== undefined) {
          // What a loss, or a clock that was set back, has brought back is not a grant
          if (view.lossAt() >= event.at || event.command === undefined) return
          const { resource, to, token } = event
          if (token === undefined || Number.isNaN(token)) {
            return view.violated(`${to} was granted ${resource} without a token`)
          }
          const before = largest.get(resource)
          if (before !== undefined && token <= before.token && view.lossAt() < before.at) {
            view.violated(`${to} was granted ${resource} with token ${token}, after ${before.token}`)
          }
          largest.set(resource, { token, at: event.at })
          minted.set(to, token)
        } else if (event._tag === "Note" && event.kind === "granted") {
          const id = field(event.fields, "id")
          const token = minted.get(id)
          if (token !== Number(event.fields["token"]) && view.lossAt() < 0) {
            view.violated(`${id} was told token ${event.fields["token"]}, the server had ${token ?? "none"}`)
          }
        }
      }
    }
  }
}

/** Whether it is excused that a client believes in a lease which the server does not know. */
const excused = (view: View, client: string, grantedAt: number, timers: boolean) =>
  view.lossAt() >= grantedAt || view.serverStepAt() >= grantedAt ||
  // Asleep while its wall clock was set: neither of its clocks knows how long
  (view.wasSuspended(client) && view.resumedAt(client) >= grantedAt && view.clockStepAt(client) >= grantedAt) ||
  view.now() - view.resumedAt(client) <= (timers && view.wasSuspended(client) ? awakening.suspended : awakening.paused)

const whatTheServerSays = (name: string, kinds: ReadonlyArray<string>, act: string, timers: boolean): Checker => ({
  name,
  start: (view) => {
    const granted = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (event._tag === "Owner" && event.to !== undefined) granted.set(event.to, event.at)
        if (event._tag !== "Note" || !kinds.includes(event.kind)) return
        const id = field(event.fields, "id")
        const resource = field(event.fields, "resource")
        if (event.kind === "ensured" && Number(event.fields["left"]) <= 0) {
          return view.violated(`ensure of ${id} passed after its deadline`)
        }
        const owner = view.owner(resource)?.id
        if (owner === id || excused(view, event.client, granted.get(id) ?? -1, timers)) return
        view.violated(`${id} ${act} while ${resource} belonged to ${owner ?? "nobody"}`)
      }
    }
  }
})

/**
 * `ensure` passes before the local deadline only, and only while the server agrees: unless it lost data, its wall clock
 * was stepped, the client's was while its machine slept, or the process has just gone on after a pause.
 *
 * @category checkers
 * @since 0.1.0
 */
export const ensureTellsTheTruth: Checker = whatTheServerSays(
  "ensure tells the truth",
  ["ensured"],
  "passed ensure",
  false
)

/**
 * Protected work takes its steps only while its lease is in force on the server, with the same exceptions.
 *
 * @category checkers
 * @since 0.1.0
 */
export const workIsProtected: Checker = whatTheServerSays("work is protected", ["begin", "step"], "worked", true)

/**
 * No process releases what its own work still uses.
 *
 * @category checkers
 * @since 0.1.0
 */
export const releasedAfterWork: Checker = {
  name: "released after the work ended",
  start: (view) => {
    const working = new Map<string, string>()
    return {
      onEvent: (event) => {
        if (event._tag === "Note") {
          const id = field(event.fields, "id")
          if (event.kind === "begin") working.set(id, event.client)
          else if (event.kind === "end") working.delete(id)
        } else if (event._tag === "Fault" && event.fault === "kill") {
          for (const [id, client] of [...working]) if (client === event.target) working.delete(id)
        } else if (event._tag === "Command") {
          const released = view.lock.released?.(event.command.args, event.command.reply)
          if (released !== undefined && working.has(released.id)) {
            view.violated(`${released.id} released ${released.resource} while its work went on`)
          }
        }
      }
    }
  }
}

/**
 * Among waiters that listen, the one with the earliest place is granted first: unless the server lost data, its wall
 * clock was stepped, or a fault touched the waiter, since it queued.
 *
 * @category checkers
 * @since 0.1.0
 */
export const firstComeFirstServed: Checker = {
  name: "first come, first served",
  start: (view) => {
    const places = new Map<string, number>()
    const queues = new Map<
      string,
      Map<string, { readonly place: number; readonly at: number; readonly client: string }>
    >()
    // Who does not listen while a script runs may be skipped, and is out until it queues again
    const seen = new Map<string, number>()
    const forgetSilent = (resource: string) => {
      const queue = queueOf(resource)
      const departures = view.departures()
      if (seen.get(resource) === departures) return
      seen.set(resource, departures)
      for (const id of [...queue.keys()]) {
        const channel = view.lock.channel?.(resource, id)
        if (channel === undefined || view.subscribers(channel) === 0) queue.delete(id)
      }
    }
    const queueOf = (resource: string) => {
      const queue = queues.get(resource) ?? new Map()
      queues.set(resource, queue)
      return queue
    }
    return {
      onEvent: (event) => {
        if (event._tag === "Command") {
          const { args, reply } = event.command
          for (const resource of view.lock.resources) {
            if (args.includes(view.lock.ownerKey(resource))) forgetSilent(resource)
          }
          const queued = view.lock.queued?.(args, reply)
          if (queued !== undefined) {
            const queue = queueOf(queued.resource)
            const { client } = event.command
            seen.delete(queued.resource)
            queue.set(queued.id, { place: queued.place, at: queue.get(queued.id)?.at ?? event.at, client })
            places.set(queued.id, queued.place)
          }
          const released = view.lock.released?.(args, reply)
          if (released !== undefined) queueOf(released.resource).delete(released.id)
        } else if (event._tag === "Owner" && event.to !== undefined) {
          const { resource, to } = event
          const queue = queueOf(resource)
          const place = places.get(to) ?? Infinity
          const since = queue.get(to)?.at ?? -Infinity
          queue.delete(to)
          for (const [id, waiter] of queue) {
            // After the server's clock was set back a later ticket may be smaller
            if (view.serverStepAt() > -Infinity && waiter.at >= since) continue
            if (waiter.place >= place || view.lossAt() >= waiter.at || view.serverStepAt() >= waiter.at) continue
            if (view.disturbedAt(waiter.client) >= waiter.at) continue
            view.violated(`${resource} was granted to ${to} although ${id} waits since ${seconds(waiter.at)}`)
          }
        }
      }
    }
  }
}

export { everybodyIsServed, nobodyOversleeps }

/**
 * When all scopes are closed nothing is left: no keys but those that may stay, no subscription, connection, fiber or
 * timer.
 *
 * @category checkers
 * @since 0.1.0
 */
export const nothingIsLeft: Checker = {
  name: "nothing is left behind",
  start: (view) => ({
    onClosed: () => {
      const keep = view.lock.keep ?? (() => false)
      const keys = view.keys().filter(({ expiresAt, key }) => !keep(key, expiresAt !== undefined)).map(({ key }) => key)
      if (keys.length > 0) view.violated(`keys are left: ${keys.join(", ")}`)
      const rest = {
        subscriptions: view.subscriptions(),
        connections: view.connections(),
        fibers: view.fibers(),
        timers: view.timers()
      }
      for (const [what, count] of Object.entries(rest)) if (count > 0) view.violated(`${count} ${what} are left`)
    }
  })
}

/**
 * All of them.
 *
 * @category checkers
 * @since 0.1.0
 */
export const all = (options: {
  readonly sleepBound: Duration.Input
  readonly sleepBoundAfterLoss?: Duration.Input | undefined
  readonly recovery?: Duration.Input | undefined
}): ReadonlyArray<Checker> => [
  oneOwner,
  tokensGrow,
  ensureTellsTheTruth,
  workIsProtected,
  releasedAfterWork,
  firstComeFirstServed,
  nobodyOversleeps({
    bound: options.sleepBound,
    afterLoss: options.sleepBoundAfterLoss ?? options.sleepBound,
    recovery: options.recovery
  }),
  everybodyIsServed,
  nothingIsLeft
]
