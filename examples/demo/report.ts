/** Evaluates the history: how long hand-offs took, and whether the demo's claims hold. */
import type { Event } from "./events.ts"
import { type Span, spansOf } from "./history.ts"
import * as plan from "./plan.ts"

/** The terms of all workers, ordered by when they began. */
export const termsOf = (history: ReadonlyArray<Event>): ReadonlyArray<Span> =>
  plan.workers
    .flatMap((worker) => spansOf(history, worker).filter((span) => span.state === "leading"))
    .sort((a, b) => a.from - b.from)

const ending = <Tag extends "Crashed" | "Interrupted">(history: ReadonlyArray<Event>, tag: Tag) =>
  history.find((event): event is Extract<Event, { readonly _tag: Tag }> => event._tag === tag)

export const crashOf = (history: ReadonlyArray<Event>) => ending(history, "Crashed")

/**
 * Milliseconds from the end of one term to the start of the next. Counts only hand-offs to a worker that was already
 * waiting.
 */
export const handOffs = (history: ReadonlyArray<Event>): ReadonlyArray<number> => {
  const terms = termsOf(history)
  return terms.slice(1).flatMap((next, index) => {
    const end = terms[index]!.to
    if (end === undefined || end === crashOf(history)?.at) return []
    const waited = spansOf(history, next.worker).find((span) => span.state === "waiting" && span.to === next.from)
    return waited !== undefined && waited.from < end ? [next.from - end] : []
  })
}

const millis = (value: number) => value < 10 ? `${value.toFixed(1)} ms` : `${value.toFixed(0)} ms`

/** The history contains only a lower bound on the end of the lease, so the difference is a bound, too. */
const relative = (value: number) => value < 0 ? `at least ${millis(-value)} before` : `at most ${millis(value)} after`

export const summary = (history: ReadonlyArray<Event>): ReadonlyArray<string> => {
  const lines: Array<string> = []
  const sorted = [...handOffs(history)].sort((a, b) => a - b)
  if (sorted.length > 0) {
    const median = sorted[Math.floor(sorted.length / 2)]!
    lines.push(
      `Hand-offs, from release to the next leader (${sorted.length}): `
        + `fastest ${millis(sorted[0]!)}, median ${millis(median)}, slowest ${millis(sorted.at(-1)!)}`
    )
  }
  const crash = crashOf(history)
  const successor = crash === undefined ? undefined : termsOf(history).find((term) => term.from >= crash.at)
  if (crash !== undefined && successor !== undefined) {
    const lease = crash.leaseEnds === undefined
      ? ""
      : `, ${relative(successor.from - crash.leaseEnds)} the end of ${crash.worker}'s lease`
    lines.push(`Crash: ${successor.worker} took over ${millis(successor.from - crash.at)} later${lease}`)
  }
  for (const event of history) {
    if (event._tag === "Failed") lines.push(`${event.worker} failed: ${event.problem}`)
    if (event._tag === "Lost") lines.push(`${event.worker} lost its lease: ${event.reason}`)
  }
  return lines
}

/** The demo's claims. The exit code is 0 only if all of them hold. */
export const checks = (history: ReadonlyArray<Event>): ReadonlyArray<readonly [claim: string, holds: boolean]> => {
  const terms = termsOf(history)
  const pairs = terms.slice(1).map((next, index) => [terms[index]!, next] as const)
  const has = (worker: string, tag: Event["_tag"]) =>
    history.some((event) => event.worker === worker && event._tag === tag)
  const others = plan.workers.filter((worker) => worker !== plan.crash.worker && worker !== plan.interruption.worker)
  const ledAll = (worker: string) => terms.filter((term) => term.worker === worker).length === plan.terms
  const stateBefore = (worker: string, tag: "Crashed" | "Interrupted") => {
    const at = ending(history, tag)?.at
    return spansOf(history, worker).find((span) => span.to === at)?.state
  }
  const crash = crashOf(history)
  return [
    [
      `${terms.length} terms, and never two leaders at once`,
      pairs.every(([a, b]) => a.to !== undefined && a.to <= b.from)
    ],
    ["every fencing token is larger than the previous one", pairs.every(([a, b]) => a.token! < b.token!)],
    [
      `${others.join(", ")} led ${plan.terms} times each and finished`,
      others.every((worker) => ledAll(worker) && has(worker, "Finished"))
    ],
    [
      `${plan.crash.worker} was killed while it led, and somebody took over`,
      stateBefore(plan.crash.worker, "Crashed") === "leading" && terms.some((term) => term.from > crash!.at)
    ],
    [
      `${plan.interruption.worker} was interrupted while it waited`,
      stateBefore(plan.interruption.worker, "Interrupted") === "waiting"
    ],
    ["nobody else failed or lost a lease", !history.some((event) => event._tag === "Failed" || event._tag === "Lost")]
  ]
}
