/**
 * Decides what a layer's place in the fleet's queue does next: a state machine on plain data. `FleetPlace` executes its
 * commands.
 *
 * A place listens from the start (H4), has at most one request in flight, and sleeps only until its next poll. Messages
 * that arrive during a request are handled after the request. A grant by message is checked against the last reply, so
 * after a gap the place polls first (H5). docs/protocol.md explains H4 and H5.
 *
 * - ticket: the server's time at which the place queued. A request with the ticket keeps the place's position.
 * - gap: messages may have been missed.
 * - confirm period: how long a granted waiter has to respond before the next waiter is served.
 */
import type { Grant, Ticket, WakeUp } from "../../MutexStore.ts"
import type { Refused } from "./attempt.ts"

/**
 * - `prepared`: a fiber in this layer holds the mutex.
 * - `requeueing`: a release that queues the place is in flight.
 * - `asking`: a request is in flight.
 * - `asleep`: the last request was refused. The place waits for a message or for its next poll.
 * - `over`: the place was granted the mutex, or has given up.
 */
export type Phase = "prepared" | "requeueing" | "asking" | "asleep" | "over"

type Hint = Exclude<WakeUp, { readonly _tag: "PollAfter" }>

/** Mutated in place, because each turn of a contended mutex creates a place. */
export interface Place {
  phase: Phase
  ticket: Ticket | undefined
  /** The last reply, if it was a refusal. Always set in `asleep`, and for `judge`. */
  refused: Refused | undefined
  /**
   * The message since the last wake-up that decides the next step: the last `YourTurn`, unless a `Gap` came first.
   * Never set in `asleep`.
   */
  heard: Hint | undefined
  /** The grant for `judge` to examine. */
  grant: Grant | undefined
  /** When to poll, in monotonic milliseconds. Finite in `asleep`. */
  askAt: number
  /** Whether the first reply was the grant: the mutex was free, and no other contender waited for it. */
  wasFree: boolean
}

export type Event =
  /** No fiber in this layer holds the mutex, and no release will queue the place. */
  | { readonly _tag: "Contend" }
  /** The place is queued by a release that is being sent. */
  | { readonly _tag: "Requeue" }
  /** The release got a reply, or failed. `refused` is set if another effect-simba contender owns the mutex. */
  | { readonly _tag: "Settled"; readonly ticket?: Ticket | undefined; readonly refused?: Refused | undefined }
  /** A request was refused. */
  | { readonly _tag: "Refused"; readonly refused: Refused }
  /**
   * A request, the release, or a message granted the mutex, for the periods of the waiter that was first at the time.
   */
  | { readonly _tag: "Granted"; readonly isStillFirst: boolean }
  /** The grant that `judge` examined may be too old, or no fiber is waiting any more. */
  | { readonly _tag: "Doubted" }
  | { readonly _tag: "Heard"; readonly wakeUp: Hint }
  /** A message or a refusal says when to poll, in monotonic milliseconds. */
  | { readonly _tag: "AskBy"; readonly at: number }
  | { readonly _tag: "Rang" }
  | { readonly _tag: "End" }

/**
 * - `ask`: send a request. `askAfterOthers`: the same, but after the process's other work.
 * - `askNow`: if the request is paused by an outage, repeat it now, because the grant lasts only one confirm period.
 * - `confirm`: send a request to confirm the grant of a message.
 * - `judge`: decide whether `grant` is recent enough to start work. `Granted` or `Doubted` follows.
 * - `win`: the place is over, and its first waiter owns the mutex.
 * - `sleep`: compute when to poll. `AskBy` follows.
 * - `setTimer`: schedule `Rang` at `askAt`.
 */
export type Command =
  | "nothing"
  | "ask"
  | "askNow"
  | "askAfterOthers"
  | "confirm"
  | "judge"
  | "win"
  | "sleep"
  | "setTimer"

export const make = (): Place => ({
  phase: "prepared",
  ticket: undefined,
  refused: undefined,
  heard: undefined,
  grant: undefined,
  askAt: Infinity,
  wasFree: true
})

/** The last reply, which `sleep` and `judge` need. */
export const lastRefusal = ({ phase, refused }: Place): Refused => {
  if (refused === undefined) throw new Error(`a place that is ${phase} has no reply`)
  return refused
}

const ask = (place: Place): Command => {
  place.phase = "asking"
  return "ask"
}

const wake = (place: Place, heard: Hint | undefined): Command => {
  place.phase = "asking"
  place.heard = undefined
  place.askAt = Infinity
  // After a gap, or at the end of a lease, all of a layer's places may poll at the same time
  if (heard?._tag !== "YourTurn") return "askAfterOthers"
  place.grant = heard.grant
  return "judge"
}

/** Handles a refusal. */
const rest = (place: Place, refused: Refused): Command => {
  place.refused = refused
  place.ticket = refused.ticket ?? place.ticket
  place.wasFree = false
  if (place.heard !== undefined) return wake(place, place.heard)
  place.phase = "asleep"
  return "sleep"
}

const impossible = (place: Place, event: Event): never => {
  throw new Error(`event ${event._tag} is impossible for a place that is ${place.phase}`)
}

const requeue = (place: Place): Command => {
  place.phase = "requeueing"
  place.wasFree = false
  return "nothing"
}

const settled = (place: Place, event: Extract<Event, { readonly _tag: "Settled" }>): Command => {
  place.ticket = event.ticket
  return event.refused === undefined ? ask(place) : rest(place, event.refused)
}

/** H5: after a gap, a grant is only a hint until the next reply. */
const heard = (place: Place, wakeUp: Hint): Command => {
  if (place.phase === "asleep") return wake(place, wakeUp)
  if (place.heard === undefined || (place.heard._tag === "YourTurn" && wakeUp._tag === "YourTurn")) place.heard = wakeUp
  return place.phase === "asking" && wakeUp._tag === "YourTurn" ? "askNow" : "nothing"
}

/**
 * If the first waiter has left in the meantime, another request confirms the grant for the periods of the next waiter.
 */
const granted = (place: Place, event: Extract<Event, { readonly _tag: "Granted" }>): Command => {
  if (!event.isStillFirst) return place.phase === "asking" ? ask(place) : impossible(place, event)
  place.phase = "over"
  return "win"
}

/**
 * Applies an event and returns the command to execute. Throws if the event cannot occur in this phase. A place that is
 * over ignores all events.
 */
export const next = (place: Place, event: Event): Command => {
  if (place.phase === "over") return "nothing"
  switch (event._tag) {
    case "Contend":
      return place.phase === "prepared" ? ask(place) : impossible(place, event)
    case "Requeue":
      return place.phase === "prepared" ? requeue(place) : impossible(place, event)
    case "Settled":
      return place.phase === "requeueing" ? settled(place, event) : impossible(place, event)
    case "Refused":
      return place.phase === "asking" ? rest(place, event.refused) : impossible(place, event)
    case "Granted":
      return place.phase === "asking" || place.phase === "requeueing"
        ? granted(place, event)
        : impossible(place, event)
    case "Doubted":
      return place.phase === "asking" ? "confirm" : impossible(place, event)
    case "Heard":
      return heard(place, event.wakeUp)
    case "AskBy":
      place.askAt = Math.min(place.askAt, event.at)
      return place.phase === "asleep" ? "setTimer" : "nothing"
    case "Rang":
      return place.phase === "asleep" ? wake(place, undefined) : impossible(place, event)
    case "End":
      place.phase = "over"
      return "nothing"
  }
}
