/**
 * What small programs may expect of their leases, in addition to the rules that hold under every fault. Times are in
 * milliseconds.
 */
import type { Checker } from "@effect-simba/testkit"

interface Working {
  readonly id: string
  readonly client: string
}

const text = (value: unknown) => String(value ?? "")

/** Reads protected work from its notes, and the pauses of processes. */
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

/** A process that works loses no lease by a pause shorter than `least`, because it confirmed its grant before. */
export const keptThroughPauses = (least: number): Checker.Checker => ({
  name: "short pauses end no lease",
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

/** Work starts with at least `least` left to its deadline: with less it requests its lease again first. */
export const beginsWith = (least: number): Checker.Checker => ({
  name: "work begins with time left",
  start: (view) => ({
    onEvent: (event) => {
      if (event._tag !== "Note" || event.kind !== "left") return
      const left = Number(event.fields["millis"])
      if (left < least) view.violated(`${text(event.fields["id"])} begins ${Math.round(left)} ms before its deadline`)
    }
  })
})

/** One lost request, or one lost reply, ends no lease: the renewal is retried. */
export const keptThroughOneLoss: Checker.Checker = {
  name: "one lost command ends no lease",
  start: (view) => {
    const faults: Array<string> = []
    return {
      onEvent: (event) => {
        if (event._tag === "Fault") faults.push(event.fault)
        if (event._tag !== "Note" || event.kind !== "failed") return
        if (faults.length > 1 || faults.some((fault) => !fault.startsWith("lost "))) return
        view.violated(`${event.client} lost its lease after ${faults[0] ?? "nothing that went wrong"}`)
      }
    }
  }
}

/**
 * A waiter that waited longer than `confirm` and does not respond after its grant keeps the mutex for at most `most`.
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
          view.violated(`${from} did not respond, and kept ${resource} for ${Math.round(at - since)} ms`)
        }
        silent.delete(resource)
        if (to === undefined || command?.args.includes(to) === true) return
        if (at - (queuedAt.get(to) ?? at) > confirm) silent.set(resource, to)
      }
    }
  }
})
