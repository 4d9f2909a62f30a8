/** Reconstructs from the events which consumer owned each stream, and when. */
import type { Event } from "./events.ts"
import * as plan from "./plan.ts"

export type History = ReadonlyArray<Event>

type Of<Tag extends Event["_tag"]> = Extract<Event, { readonly _tag: Tag }>

/** All events with this tag. */
export const all = <Tag extends Event["_tag"]>(history: History, tag: Tag): ReadonlyArray<Of<Tag>> =>
  history.filter((event): event is Of<Tag> => event._tag === tag)

export const startOf = (history: History): number => Math.min(...history.map(({ at }) => at))

/** One consumer's time with a stream. */
export interface Tenure {
  readonly who: string
  readonly stream: string
  readonly token: number
  readonly from: number
  /** The numbers of the messages that the consumer processed. */
  readonly messages: ReadonlyArray<number>
  /** Whether the consumer reported the end of its tenure. A killed consumer does not. */
  readonly isOver: boolean
}

export const tenures = (history: History): ReadonlyArray<Tenure> => {
  const found = new Map<string, Tenure>()
  for (const event of history) {
    if (!("token" in event)) continue
    const { stream, token, who } = event
    const key = `${who} ${stream} ${token}`
    const before = found.get(key) ?? { who, stream, token, from: event.at, messages: [] }
    found.set(key, {
      ...before,
      messages: event._tag === "Processed" ? [...before.messages, event.n] : before.messages,
      isOver: event._tag !== "Taken" && event._tag !== "Processed"
    })
  }
  return [...found.values()]
}

/** Whether all producers' streams are done. */
export const isDone = (history: History): boolean =>
  new Set(all(history, "Done").map(({ stream }) => stream)).size === plan.producers.length * plan.streams

/** The tenures of a stream, ordered by token. */
export const ownersOf = (history: History, stream: string): ReadonlyArray<Tenure> =>
  tenures(history).filter((tenure) => tenure.stream === stream).sort((a, b) => a.token - b.token)

/** The streams that the killed consumer still owned when it died, each with its next tenure. */
export const takeovers = (history: History) =>
  tenures(history)
    .filter(({ isOver, who }) => who === plan.killed && !isOver)
    .map(({ stream, token }) => ({ stream, next: ownersOf(history, stream).find((owner) => owner.token > token) }))
