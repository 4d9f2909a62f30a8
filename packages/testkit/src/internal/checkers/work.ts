/** Checks that protected work does not overlap, and that stale writes are rejected. */
import type { Checker } from "../simulation/setup.ts"
import { beliefs } from "./excuses.ts"
import { forgetFallen } from "./fallen.ts"
import { field, seconds } from "./fields.ts"

interface Working {
  readonly id: string
  readonly client: string
  readonly at: number
  hasStepped: boolean
  /** Other work that started while this work was running, and the violation to report if this work continues. */
  overlap: { readonly at: number; readonly text: string } | undefined
}

/** The maximum time that an interruption may take. */
const interruptionMillis = 5000

/**
 * Checks that protected work does not start while other protected work is running, under the same lease or a different
 * one. `excuses` decides when an overlap is excused, such as shortly after a pause. Finalizers do not count as work.
 *
 * Work that notes its steps counts as continuing if it takes another step or is not interrupted in time. Until then,
 * the overlap is accepted, because an interruption may take a busy process several turns.
 */
export const workNeverOverlaps: Checker = {
  name: "work never overlaps",
  start: (view) => {
    const { isExcused, onEvent } = beliefs(view)
    const working = new Map<string, Map<string, Working>>()
    view.every(1000, () => {
      for (const present of working.values()) {
        for (const { client, overlap } of present.values()) {
          if (overlap === undefined || !view.isRunning(client)) continue
          const late = view.now() - Math.max(overlap.at, view.resumedAt(client))
          if (late > interruptionMillis) view.violated(overlap.text)
        }
      }
    })
    return {
      onEvent: (event) => {
        onEvent(event)
        forgetFallen(event, working.values())
        if (event._tag !== "Note") return
        const id = field(event.fields, "id")
        const resource = field(event.fields, "resource")
        const own = working.get(resource)?.get(id)
        if (event.kind === "step" && own !== undefined) {
          if (own.overlap !== undefined) view.violated(own.overlap.text)
          own.hasStepped = true
        }
        if (event.kind === "stopped" || event.kind === "end") return void working.get(resource)?.delete(id)
        if (event.kind !== "begin") return
        const present = working.get(resource) ?? new Map<string, Working>()
        working.set(resource, present)
        for (const other of present.values()) {
          if (!view.isRunning(other.client)) continue
          if (isExcused(other.client, resource, other.id, true) || isExcused(event.client, resource, id, true)) continue
          const text = `${id} starts work on ${resource} while ${other.id} has worked on it since ${seconds(other.at)}`
          if (other.id === id || !other.hasStepped) view.violated(text)
          else other.overlap ??= { at: event.at, text }
        }
        present.set(id, { id, client: event.client, at: event.at, hasStepped: false, overlap: undefined })
      }
    }
  }
}

/**
 * Checks that a resource never accepts a token below the largest one so far, unless Redis lost that token. A resource
 * outside Redis must accept every write that its owner sent within its lease, by the server's clock. Exceptions: data
 * loss or a clock step since then, or a forced release of the lease.
 */
export const writesAreFenced: Checker = {
  name: "writes are fenced",
  start: (view) => {
    const inRedis = new Map<string, { readonly token: number; readonly at: number }>()
    const outside = new Map<string, number>()
    const sent = new Map<string, { readonly at: number; readonly agreed: boolean }>()
    const { grantedAt, onEvent, wasForced } = beliefs(view)
    const check = (resource: string, key: string, at: number) => {
      const token = Number(view.read(key) ?? NaN)
      if (Number.isNaN(token)) return
      const before = inRedis.get(resource)
      if (before !== undefined && token < before.token && view.lossAt() < before.at) {
        view.violated(`${resource} accepted a write with token ${token} after one with ${before.token}`)
      }
      if (token !== before?.token) inRedis.set(resource, { token, at })
    }
    return {
      onEvent: (event) => {
        onEvent(event)
        const { fencedKey, resources } = view.lock
        if (event._tag === "Command" && fencedKey !== undefined) {
          for (const resource of resources) {
            const key = fencedKey(resource)
            if (event.command.args.includes(key)) check(resource, key, event.at)
          }
        }
        if (event._tag !== "Note") return
        const id = field(event.fields, "id")
        const resource = field(event.fields, "resource")
        const write = field(event.fields, "write")
        if (event.kind === "writing") {
          // After data loss, a previous owner may become the owner again
          const isOwner = view.owner(resource)?.id === id && view.lossAt() < grantedAt(id)
          sent.set(write, { at: event.at, agreed: isOwner })
        } else if (event.kind === "written") {
          const token = Number(event.fields["token"])
          const largest = outside.get(resource) ?? -Infinity
          if (Number(event.fields["accepted"]) === 1) {
            if (token < largest) {
              view.violated(`the resource ${resource} accepted a write with token ${token} after one with ${largest}`)
            }
            outside.set(resource, Math.max(token, largest))
            return
          }
          const before = sent.get(write)
          const shrunk = view.lossAt() > -Infinity && view.serverStepAt() > -Infinity
          if (before?.agreed !== true || shrunk || wasForced(id)) return
          if (view.lossAt() >= before.at || view.serverStepAt() >= before.at) return
          view.violated(`a write of ${id} was stale for ${resource}, although its lease was valid when it was sent`)
        }
      }
    }
  }
}
