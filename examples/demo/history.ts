/** Reconstructs from the events what each worker was doing, and when. */
import type { Event } from "./events.ts"
import * as plan from "./plan.ts"

export type State = "starting" | "waiting" | "leading" | "resting" | "finished" | "interrupted" | "crashed" | "failed"

export interface Span {
  readonly worker: string
  readonly state: State
  readonly from: number
  /** Undefined until the span ends. */
  readonly to?: number
  readonly term?: number
  readonly token?: number
}

const states: Record<Exclude<Event["_tag"], "Note">, State> = {
  Waiting: "waiting",
  Leading: "leading",
  Leaving: "resting",
  Lost: "resting",
  Finished: "finished",
  Interrupted: "interrupted",
  Crashed: "crashed",
  Failed: "failed"
}

/** The spans of a worker, in order. */
export const spansOf = (history: ReadonlyArray<Event>, worker: string): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  for (const event of history) {
    if (event.worker !== worker || event._tag === "Note") continue
    const last = spans.pop()
    if (last !== undefined) spans.push({ ...last, to: event.at })
    spans.push({
      worker,
      state: states[event._tag],
      from: event.at,
      ...("term" in event ? { term: event.term } : {}),
      ...("token" in event ? { token: event.token } : {})
    })
  }
  return spans
}

/** The last span of a worker. */
export const stateOf = (history: ReadonlyArray<Event>, worker: string): Span =>
  spansOf(history, worker).at(-1) ?? { worker, state: "starting", from: startOf(history) }

export const startOf = (history: ReadonlyArray<Event>): number => Math.min(...history.map((event) => event.at))

export const leader = (history: ReadonlyArray<Event>): string | undefined =>
  plan.workers.find((worker) => stateOf(history, worker).state === "leading")

/** The waiting workers, longest wait first. */
export const waiting = (history: ReadonlyArray<Event>): ReadonlyArray<string> =>
  plan.workers
    .map((worker) => stateOf(history, worker))
    .filter((span) => span.state === "waiting")
    .sort((a, b) => a.from - b.from)
    .map((span) => span.worker)
