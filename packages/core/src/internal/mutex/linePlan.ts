/**
 * What the fibers of a layer that want one mutex do together: a decision on plain data. `LocalQueue` executes it.
 *
 * The waiting fibers share one place in the queue of the fleet, which serves the first of them. A fiber that is alone
 * requests the mutex itself, without a place.
 */

/**
 * - `idle`: no fiber wants the mutex.
 * - `asking`: no fiber holds it, and some have a request of their own under way. Others may wait for the result.
 * - `contending`: no fiber holds it, and some wait. Their place contends for the first of them.
 * - `holding`: one holds it, and none waits.
 * - `awaited`: one holds it, and others wait. Their place listens, so that the release can queue it (H4).
 */
export type Phase = "idle" | "asking" | "contending" | "holding" | "awaited"

/** Changed in place: each turn of a contended mutex has several events. */
export interface Line {
  phase: Phase
  /** Fibers with a request of their own under way. */
  asking: number
  waiting: number
  /** `contending` from its first request, or from the release that queues it, until it ends. */
  place: "none" | "listening" | "contending"
}

/**
 * - `Asked`, `Granted`, `Refused`: a fiber requests the mutex itself; it holds it; it does not want to wait for it.
 * - `JoinedFirst`, `Joined`: a fiber waits, at the head because its own request was refused, or at the end.
 * - `Left`: a waiter has left.
 * - `Won`: the place was granted the mutex for the first waiter, and has ended.
 * - `HandedOn`: the first waiter holds it next, within the same turn.
 * - `Released`, `Lost`: no fiber holds it any more.
 * - `Crashed`: the place has ended with a defect, and fails the first waiter.
 */
export type Event =
  | "Asked"
  | "Granted"
  | "Refused"
  | "JoinedFirst"
  | "Joined"
  | "Left"
  | "Won"
  | "HandedOn"
  | "Released"
  | "Lost"
  | "Crashed"

/**
 * - `listen`: make a place that listens.
 * - `contend`: the place contends; create it if there is none.
 * - `requeue`: the release queues the place.
 * - `abandon`: end the place (H7).
 */
export type Command = "nothing" | "listen" | "contend" | "requeue" | "abandon"

export const make = (): Line => ({ phase: "idle", asking: 0, waiting: 0, place: "none" })

export const isHeld = ({ phase }: Line): boolean => phase === "holding" || phase === "awaited"

const possible = (line: Line, event: Event): boolean => {
  switch (event) {
    case "Asked":
      return !isHeld(line) && line.waiting === 0
    // Perhaps while another fiber still relies on a lease that the backend has lost
    case "Granted":
    case "Refused":
    case "JoinedFirst":
      return line.asking > 0
    case "Joined":
      return true
    case "Left":
      return line.waiting > 0
    case "Won":
      return line.place === "contending" && line.waiting > 0
    case "HandedOn":
      return line.phase === "awaited"
    case "Released":
    case "Lost":
      return isHeld(line)
    case "Crashed":
      return line.place !== "none"
  }
}

const settle = (line: Line, held: boolean): Command => {
  const { asking, place, waiting } = line
  if (held) {
    line.phase = waiting > 0 ? "awaited" : "holding"
    if (waiting === 0 || place !== "none") return "nothing"
    line.place = "listening"
    return "listen"
  }
  line.phase = waiting > 0 && asking === 0 ? "contending" : asking > 0 ? "asking" : "idle"
  if (waiting === 0) {
    line.place = "none"
    return place === "none" ? "nothing" : "abandon"
  }
  if (asking > 0 || place === "contending") return "nothing"
  line.place = "contending"
  return "contend"
}

/** The next step. Throws for an event that the line cannot have. */
export const next = (line: Line, event: Event): Command => {
  if (!possible(line, event)) {
    throw new Error(`a line that is ${line.phase}, with ${line.waiting} waiting, cannot have the event ${event}`)
  }
  switch (event) {
    case "Asked":
      line.asking++
      return settle(line, false)
    case "Granted":
      line.asking--
      return settle(line, true)
    case "Refused":
      line.asking--
      return settle(line, isHeld(line))
    case "JoinedFirst":
      line.asking--
      line.waiting++
      return settle(line, isHeld(line))
    case "Joined":
      line.waiting++
      return settle(line, isHeld(line))
    case "Left":
      line.waiting--
      return settle(line, isHeld(line))
    case "Won":
      line.place = "none"
      line.waiting--
      return settle(line, true)
    case "HandedOn":
      line.waiting--
      return settle(line, true)
    case "Released":
    case "Lost": {
      const isQueued = event === "Released" && line.phase === "awaited" && line.place === "listening"
      if (isQueued) line.place = "contending"
      const command = settle(line, false)
      return isQueued ? "requeue" : command
    }
    case "Crashed":
      line.place = "none"
      if (line.waiting > 0) line.waiting--
      return settle(line, isHeld(line))
  }
}
