/**
 * Checkers for the small programs in `scopes.ts`. They are stricter than the testkit's checkers, because schedules
 * contain few faults. Times are in milliseconds.
 */
import type { Checker } from "@effect-simba/testkit"

interface Working {
  readonly id: string
  readonly client: string
}

const text = (value: unknown) => String(value ?? "")

/** Tracks which leases have protected work and which processes are paused. */
const following = () => {
  const working = new Map<string, Working>()
  const pausedAt = new Map<string, number>()
  return {
    working,
    pausedAt,
    onEvent: (event: Parameters<NonNullable<ReturnType<Checker.Checker["start"]>["onEvent"]>>[0]) => {
      if (event._tag === "Fault") {
        if (event.fault === "pause") pausedAt.set(event.target, event.at)
        if (event.fault === "resume" || event.fault === "kill") pausedAt.delete(event.target)
        if (event.fault === "kill") {
          for (const [id, { client }] of [...working]) if (client === event.target) working.delete(id)
        }
      }
      if (event._tag !== "Note") return
      const id = text(event.fields["id"])
      if (event.kind === "begin") working.set(id, { id, client: event.client })
      if (event.kind === "stopped") working.delete(id)
    }
  }
}

/**
 * A pause shorter than `least` does not end a lease under which work has begun, because the grant is already confirmed.
 */
export const keptThroughPauses = (least: number): Checker.Checker => ({
  name: "short pauses do not end leases",
  start: (view) => {
    const { onEvent, pausedAt, working } = following()
    return {
      onEvent: (event) => {
        onEvent(event)
        if (event._tag !== "Owner" || event.from === undefined) return
        const work = working.get(event.from)
        const since = work && pausedAt.get(work.client)
        if (since === undefined || event.at - since >= least) return
        view.violated(`${event.from} lost ${event.resource} ${Math.round(event.at - since)} ms into a pause`)
      }
    }
  }
})

/** Work begins at least `least` before its lease's deadline. With less time left, a process renews the lease first. */
export const beginsWith = (least: number): Checker.Checker => ({
  name: "work begins with enough time left",
  start: (view) => ({
    onEvent: (event) => {
      if (event._tag !== "Note" || event.kind !== "left") return
      const left = Number(event.fields["millis"])
      if (left < least) view.violated(`${text(event.fields["id"])} begins ${Math.round(left)} ms before its deadline`)
    }
  })
})

/** A single lost request or reply does not end a lease, because the renewal is repeated. */
export const keptThroughOneLoss: Checker.Checker = {
  name: "one lost command does not end a lease",
  start: (view) => {
    const faults: Array<string> = []
    return {
      onEvent: (event) => {
        if (event._tag === "Fault") faults.push(event.fault)
        if (event._tag !== "Note" || event.kind !== "failed") return
        if (faults.length > 1 || faults.some((fault) => !fault.startsWith("lost "))) return
        view.violated(`${event.client} lost its lease after ${faults[0] ?? "no fault"}`)
      }
    }
  }
}

/**
 * A waiter that has waited longer than `confirm` but does not confirm its grant blocks the mutex for at most `most`.
 */
export const silenceCosts = (
  { confirm, most }: { readonly confirm: number; readonly most: number }
): Checker.Checker => ({
  name: "a silent waiter costs one confirm period",
  start: (view) => {
    const queuedAt = new Map<string, number>()
    const silent = new Map<string, string>()
    return {
      onEvent: (event) => {
        if (event._tag === "Command") {
          const { args, reply } = event.command
          for (const [resource, id] of silent) if (args.includes(id)) silent.delete(resource)
          const queued = view.lock.queued?.(args, reply) ?? []
          for (const { id } of Array.isArray(queued) ? queued : [queued]) {
            if (!queuedAt.has(id)) queuedAt.set(id, event.at)
          }
        }
        if (event._tag !== "Owner") return
        const { at, command, from, resource, since, to } = event
        if (from !== undefined && silent.get(resource) === from && at - since > most) {
          view.violated(`${from} did not confirm its grant, and blocked ${resource} for ${Math.round(at - since)} ms`)
        }
        silent.delete(resource)
        if (to === undefined || command?.args.includes(to) === true) return
        if (at - (queuedAt.get(to) ?? at) > confirm) silent.set(resource, to)
      }
    }
  }
})
