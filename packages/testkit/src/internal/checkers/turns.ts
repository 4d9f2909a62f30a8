/** Checks that grants are not wasted, and that no waiter is passed over too often. */
import * as Duration from "effect/Duration"
import type { Event } from "../simulation/history.ts"
import { all } from "../simulation/ownershipTracker.ts"
import type { Checker, View } from "../simulation/setup.ts"
import { fallen, forgetFallen } from "./fallen.ts"
import { field, seconds } from "./fields.ts"

/**
 * The maximum number of consecutive lost races. On the same network, two parties each win about half of their races, so
 * losing this many by chance is practically impossible.
 */
const mostRaces = 40

/** Commands from a dead process may arrive up to this much later, and look like commands from its successor. */
const stragglingMillis = 4000

/** Tracks which running process uses each id. */
const owners = (view: View) => {
  const clients = new Map<string, string | undefined>()
  const born = new Map<string, number>()
  return {
    onEvent: (event: Event) => {
      if (event._tag === "Command") {
        const { args, client, reply } = event.command
        for (const { id } of all(view.lock.asked?.(args, reply))) {
          if (clients.has(id)) continue
          clients.set(id, event.at - (born.get(client) ?? -Infinity) < stragglingMillis ? undefined : client)
        }
      }
      const gone = fallen(event)
      if (gone === undefined) return
      born.set(gone, event.at)
      for (const [id, client] of [...clients]) if (client === gone) clients.set(id, undefined)
    },
    clientOf: (id: string) => clients.get(id)
  }
}

/** Whether the client has been free of faults since `since`, and for `recovery` before that. */
const isUndisturbed = (view: View, client: string, since: number, recovery: number) =>
  view.isRunning(client) && view.lossAt() < since && view.serverStepAt() < since &&
  view.disturbedAt(client) + recovery < since && view.resumedAt(client) + recovery < since

export const noFlapping = (options: { readonly recovery: Duration.Input; readonly bound?: number }): Checker => ({
  name: "no grant is wasted",
  start: (view) => {
    const recovery = Duration.toMillis(Duration.fromInputUnsafe(options.recovery))
    const bound = options.bound ?? 0
    const { clientOf, onEvent } = owners(view)
    const held = new Set<string>()
    const reported = new Set<string>()
    const left = new Set<string>()
    const silent = new Set<string>()
    const placed = new Set<string>()
    const inVain = new Map<string, number>()
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag === "Command") {
          const { args, reply } = event.command
          for (const { id } of all(view.lock.released?.(args, null))) left.add(id)
          for (const { id } of all(view.lock.queued?.(args, reply))) placed.add(id)
        }
        if (event._tag === "Note" && event.kind === "granted") {
          held.add(field(event.fields, "id"))
          reported.add(field(event.fields, "id"))
        }
        if (event._tag !== "Owner") return
        if (event.to !== undefined) {
          const channel = view.lock.channel?.(event.resource, event.to)
          // An attempt without a place, such as a try-acquire, does not subscribe
          if (channel !== undefined && (!placed.has(event.to) || view.subscribers(channel) === 0)) silent.add(event.to)
          else silent.delete(event.to)
        }
        if (event.from === undefined || view.phase() === "closing") return
        const { command, from, resource, since } = event
        if (held.delete(from)) return void inVain.delete(resource)
        const released = command === undefined ? [] : all(view.lock.released?.(command.args, command.reply))
        if (released.some(({ id }) => id === from)) return
        if (command !== undefined && all(view.lock.forced?.(command.args, command.reply)).length > 0) return
        const client = clientOf(from)
        // A fault may have undone the owner's grant or release, caused the release to be refused, or delayed a request
        // from an abandoned attempt
        const over = left.has(from) || reported.has(from) || silent.has(from)
        if (client !== undefined && over && view.disturbedAt(client) > -Infinity) return
        if (client === undefined || !isUndisturbed(view, client, since, recovery)) return
        const count = (inVain.get(resource) ?? 0) + 1
        inVain.set(resource, count)
        if (count > bound) {
          view.violated(
            `${resource} was granted to ${from}, which never used it; ` +
              `consecutive wasted grants without a reason: ${count}`
          )
        }
      }
    }
  }
})

interface Turn {
  readonly resource: string
  readonly place: number
  readonly client: string
  since: number
  ahead: number
  passed: number
  turns: number
  /**
   * Whether the last grant was a barge that may only have won a race. The barge counts unless the notified waiter's
   * request follows shortly.
   */
  isRacing: boolean
  /** The number of consecutive barges that may only have won a race. */
  races: number
  /**
   * Whether this wait may have failed. True if the client has reported a wait that failed, or that ended without
   * success during a fault, and no later request shows that this waiter is still waiting.
   */
  mayHaveFailed: boolean
}

export const servedInTurn = (options: {
  readonly barges: number
  readonly turn: Duration.Input
  readonly recovery: Duration.Input
  readonly notice?: Duration.Input
  readonly race?: Duration.Input
  readonly foreign?: (id: string) => boolean
  readonly foreignPlace?: (serverNow: number) => number
}): Checker => ({
  name: "everybody is served in turn",
  start: (view) => {
    const turn = Duration.toMillis(Duration.fromInputUnsafe(options.turn))
    const recovery = Duration.toMillis(Duration.fromInputUnsafe(options.recovery))
    const notice = Duration.toMillis(Duration.fromInputUnsafe(options.notice ?? 0))
    const race = Duration.toMillis(Duration.fromInputUnsafe(options.race ?? 0))
    const isForeign = options.foreign ?? (() => false)
    const freeSince = new Map<string, number>()
    const waiting = new Map<string, Turn>()
    /** Released ids. Their late requests do not count. */
    const left = new Set<string>()
    const granted = new Set<string>()
    /** Served waits, by process and wait. */
    const served = new Set<string>()
    const lineOf = view.lock.line ?? ((id) => id)
    /** Ends a line's earlier waits when it queues again. */
    const supersede = (resource: string, id: string) => {
      for (const [other, wait] of [...waiting]) {
        if (wait.resource === resource && lineOf(other) === lineOf(id)) waiting.delete(other)
      }
    }
    const countAhead = (resource: string, place: number) => {
      let ahead = view.owner(resource) === undefined ? 0 : 1
      for (const other of waiting.values()) if (other.resource === resource && other.place < place) ahead++
      return ahead
    }
    /** Whether a waiter is subscribed and free of faults. If it is not, its counts restart from zero. */
    const isLive = (id: string, wait: Turn) => {
      const channel = view.lock.channel?.(wait.resource, id)
      if (
        !wait.mayHaveFailed && isUndisturbed(view, wait.client, wait.since, recovery) &&
        (channel === undefined || view.subscribers(channel) > 0)
      ) return true
      wait.since = view.now()
      wait.ahead = countAhead(wait.resource, wait.place)
      wait.passed = wait.turns = wait.races = 0
      wait.isRacing = false
      return false
    }
    const isWithin = (millis: number, resource: string, at: number) =>
      at - (freeSince.get(resource) ?? -Infinity) <= millis
    /** Counts a lost race. A request arrived just after a barge, so its waiter had already been notified. */
    const lostRace = (resource: string, id: string) => {
      for (const [waiter, wait] of waiting) {
        if (wait.resource !== resource || !wait.isRacing) continue
        wait.isRacing = false
        if (++wait.races > mostRaces) {
          view.violated(
            `${waiter} waits for ${resource}, and ${id} and others lost ${wait.races} consecutive races for it`
          )
        }
      }
    }
    view.every(250, () => {
      for (const [id, wait] of waiting) {
        if (!isLive(id, wait)) continue
        const waited = view.now() - wait.since
        if (waited > (wait.turns + 1) * turn) {
          return view.violated(
            `${id} has waited for ${wait.resource} for ${seconds(waited)}, while others had ${wait.turns} turns`
          )
        }
      }
    })
    return {
      onEvent: (event) => {
        forgetFallen(event, [waiting])
        if (event._tag === "Command") {
          const { args, client, reply } = event.command
          for (const { id, resource } of all(view.lock.asked?.(args, reply))) {
            // The view still shows the owner from before the command
            const owner = view.owner(resource)?.id
            if (owner !== undefined && owner !== id && isWithin(race, resource, event.at)) lostRace(resource, id)
          }
          for (const { id, place, resource } of all(view.lock.queued?.(args, reply))) {
            const known = waiting.get(id)
            // During a fault and shortly after it, this may be a late request from a failed wait
            const mayBeLate = !isUndisturbed(view, client, event.at, recovery)
            if (known !== undefined && !mayBeLate) known.mayHaveFailed = false
            if (isForeign(id) || known !== undefined || left.has(id)) continue
            supersede(resource, id)
            const ahead = countAhead(resource, place)
            waiting.set(id, {
              resource,
              place,
              client,
              since: event.at,
              ahead,
              passed: 0,
              turns: 0,
              isRacing: false,
              races: 0,
              mayHaveFailed: mayBeLate && granted.has(id)
            })
          }
          for (const { id } of all(view.lock.released?.(args, reply))) {
            waiting.delete(id)
            left.add(id)
          }
        } else if (event._tag === "Note" && event.kind === "failed") {
          for (const wait of waiting.values()) if (wait.client === event.client) wait.mayHaveFailed = true
        } else if (event._tag === "Note" && event.kind === "waited") {
          const { client, fields } = event
          const wait = `${client}#${event.generation} ${field(fields, "wait")}`
          if (fields["served"] !== undefined) served.add(wait)
          // A fault may have lost the request that ends the wait on the server
          else if (!served.delete(wait) && !isUndisturbed(view, client, event.at, recovery)) {
            for (const one of waiting.values()) {
              if (one.client === client && one.resource === field(fields, "resource")) one.mayHaveFailed = true
            }
          }
        } else if (event._tag === "Owner" && event.to === undefined) {
          freeSince.set(event.resource, event.at)
        } else if (event._tag === "Owner" && event.to !== undefined) {
          waiting.delete(event.to)
          granted.add(event.to)
          const isBarge = event.from === undefined && isForeign(event.to)
          // The Simba contender won a race against a message, which faults may delay repeatedly
          const raced = isBarge && view.phase() === "safety" && isWithin(notice, event.resource, event.at)
          const isRacing = isBarge && isWithin(race, event.resource, event.at)
          const foreignPlace = isForeign(event.to) ? options.foreignPlace?.(view.serverNow()) ?? Infinity : Infinity
          for (const [id, wait] of waiting) {
            if (wait.resource !== event.resource || !isLive(id, wait)) continue
            wait.turns++
            if (wait.isRacing) wait.passed++
            const isAhead = foreignPlace < wait.place
            wait.isRacing = !isAhead && !raced && isRacing
            if (!isAhead && !raced && !isRacing) {
              wait.passed++
              wait.races = 0
            }
            if (wait.passed > wait.ahead + options.barges) {
              return view.violated(
                `${wait.passed} others were granted ${wait.resource} since ${seconds(wait.since)}, when ` +
                  `${wait.ahead} were ahead of ${id}`
              )
            }
          }
        }
      }
    }
  }
})
