/** Checks that nobody sleeps too long while the lock is free, and that all waiters are eventually served. */
import * as Duration from "effect/Duration"
import type { Event } from "../simulation/history.ts"
import type { Checker } from "../simulation/setup.ts"
import { forgetFallen } from "./fallen.ts"
import { field, seconds } from "./fields.ts"

interface Waiting {
  readonly client: string
  readonly resource: string
  readonly at: number
  /** The waiter's own `recovery` in milliseconds, if its program noted one. */
  readonly recovery: number | undefined
}

/** Tracks who is waiting, based on the programs' notes. */
const waits = () => {
  const waiting = new Map<string, Waiting>()
  return {
    waiting,
    onEvent: (event: Event) => {
      if (event._tag === "Note") {
        const key = `${event.client}#${event.generation}/${field(event.fields, "wait")}`
        if (event.kind === "waiting") {
          const recovery = event.fields["recovery"]
          waiting.set(key, {
            client: event.client,
            resource: field(event.fields, "resource"),
            at: event.at,
            recovery: recovery === undefined ? undefined : Number(recovery)
          })
        } else if (event.kind === "waited") waiting.delete(key)
      }
      forgetFallen(event, [waiting])
    }
  }
}

/**
 * Checks that no waiter sleeps longer than `bound` while the lock is free. The limit is `afterLoss` if the server lost
 * the owner, if the server's clock was stepped, or if at least two other processes are unresponsive. For a paused or
 * suspended waiter, the limit counts from when it resumes. If a fault affects the waiter, the limit counts from
 * `recovery` later (default: zero), because a waiter whose command was lost waits for the timeout and pauses before it
 * retries.
 *
 * @category checkers
 * @since 0.1.0
 */
export const nobodyOversleeps = (options: {
  readonly bound: Duration.Input
  readonly afterLoss: Duration.Input
  readonly recovery?: Duration.Input | undefined
}): Checker => ({
  name: "nobody sleeps while the lock is free",
  start: (view) => {
    const bound = Duration.toMillis(Duration.fromInputUnsafe(options.bound))
    const afterLoss = Duration.toMillis(Duration.fromInputUnsafe(options.afterLoss))
    const recovery = Duration.toMillis(Duration.fromInputUnsafe(options.recovery ?? 0))
    const { onEvent, waiting } = waits()
    const freeSince = new Map<string, number>()
    // A hand-off notifies one waiter and the one behind it. If both are unresponsive, all others sleep until their next
    // poll
    const manySilent = (free: number, waiter: string) =>
      view.names().filter((name) =>
        name !== waiter && (!view.isRunning(name) || view.disturbedAt(name) + recovery >= free - bound)
      ).length > 1
    view.every(250, () => {
      const now = view.now()
      for (const resource of view.lock.resources) {
        if (view.owner(resource) !== undefined) {
          // A server clock step may have restored an expired owner without an event
          freeSince.delete(resource)
          continue
        }
        const free = freeSince.get(resource) ?? now
        const limit = now - Math.max(view.lossAt(), view.serverStepAt()) > afterLoss ? bound : afterLoss
        freeSince.set(resource, free)
        for (const wait of waiting.values()) {
          if (wait.resource !== resource || !view.isRunning(wait.client)) continue
          const recovered = view.disturbedAt(wait.client) + (wait.recovery ?? recovery)
          const since = Math.max(free, wait.at, recovered, view.resumedAt(wait.client))
          const own = manySilent(free, wait.client) ? Math.max(limit, afterLoss) : limit
          if (now - since > own) {
            return view.violated(`${wait.client} has slept for ${seconds(now - since)} although ${resource} is free`)
          }
        }
      }
    })
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag === "Owner" && event.to !== undefined) freeSince.delete(event.resource)
      }
    }
  }
})

/**
 * Checks that all parties that are waiting when the faults end are served before the liveness phase ends.
 *
 * @category checkers
 * @since 0.1.0
 */
export const everybodyIsServed: Checker = {
  name: "everybody is served",
  start: (view) => {
    const { onEvent, waiting } = waits()
    let over = Infinity
    const left = () => [...waiting.values()].filter(({ at }) => at <= over)
    return {
      onEvent: (event) => {
        if (event._tag === "Phase" && event.phase === "liveness") over = event.at
        onEvent(event)
      },
      isConverged: () => left().length === 0,
      onConverged: () => {
        for (const { at, client, resource } of left()) {
          view.violated(
            `${client} has waited for ${resource} since ${seconds(at)}, and faults ended at ${seconds(over)}`
          )
        }
      }
    }
  }
}
