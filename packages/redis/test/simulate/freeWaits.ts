/**
 * Measures how long effect-simba waiters wait while their mutex is free, and how often a mutex changes hands. The
 * checker for calm fleets and the statistics of `pnpm simulate` use these measurements.
 */
import type { MutexName } from "@effect-simba/core/MutexName"
import type { Checker, Simulation } from "@effect-simba/testkit"
import * as keys from "../../src/internal/mutex/keys.ts"

interface Wait {
  readonly client: string
  readonly resource: string
  readonly since: number
}

/** Measures one history, event by event, from the notes `waiting` and `waited`. Simba contenders do not write those. */
export const measure = () => {
  const waits = new Map<string, Wait>()
  const owned = new Set<string>()
  const freeSince = new Map<string, number>()
  const lastOwner = new Map<string, string>()
  const found = { handOvers: 0, longest: 0 }
  const end = (wait: Wait, at: number) => {
    const waited = owned.has(wait.resource) ? 0 : at - Math.max(freeSince.get(wait.resource) ?? 0, wait.since)
    found.longest = Math.max(found.longest, waited)
    return waited
  }
  /** Returns the longest wait ended by the event, in milliseconds. */
  const onEvent = (event: Simulation.Event): number => {
    if (event._tag === "Owner") {
      const { at, resource, to } = event
      if (to === undefined) {
        owned.delete(resource)
        freeSince.set(resource, at)
        return 0
      }
      if ((lastOwner.get(resource) ?? to) !== to) found.handOvers++
      lastOwner.set(resource, to)
      const ended = [...waits.values()].flatMap((wait) => wait.resource === resource ? end(wait, at) : [])
      owned.add(resource)
      return Math.max(0, ...ended)
    }
    if (event._tag !== "Note") return 0
    const { at, client, fields, kind } = event
    const key = `${client}#${event.generation}/${fields["wait"]}`
    if (kind === "waiting") waits.set(key, { client, resource: String(fields["resource"]), since: at })
    const wait = waits.get(key)
    if (kind !== "waited" || wait === undefined) return 0
    waits.delete(key)
    return end(wait, at)
  }
  /** Restarts the measurement of waits for a free mutex at this instant. */
  const begin = (resource: string, at: number) => void freeSince.set(resource, at)
  return { begin, onEvent, found }
}

/**
 * Without failures, nobody waits longer than `bound` milliseconds for a free mutex. A new reservation for a Simba
 * contender restarts the measurement, because the other waiters hold back for that contender.
 */
export const freeMutexesAreTaken = (bound: number): Checker.Checker => ({
  name: "free mutexes are taken",
  start: (view) => {
    const { begin, onEvent } = measure()
    const reservations = new Map<string, number>()
    return {
      onEvent: (event) => {
        if (view.phase() === "closing") return
        const waited = onEvent(event)
        if (waited > bound) view.violated(`a waiter waited ${Math.round(waited)} ms while its mutex was free`)
        if (event._tag !== "Command") return
        for (const resource of view.lock.resources) {
          const end = view.expiresAt(keys.reserved(resource as MutexName))
          if (end === undefined || end === reservations.get(resource)) continue
          reservations.set(resource, end)
          begin(resource, event.at)
        }
      }
    }
  }
})
