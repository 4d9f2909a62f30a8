/**
 * Coordinates a layer's fibers that want the same mutex: a state machine on plain data. `LocalQueue` executes its
 * commands.
 *
 * Waiting fibers share one place in the fleet's queue, which serves the first fiber in line. A fiber that is alone
 * requests the mutex itself, without a place. docs/protocol.md explains H4 and H7.
 */

/**
 * - `idle`: no fiber wants the mutex.
 * - `asking`: no fiber holds it, and some have sent requests that are in flight. Others may wait for the result.
 * - `contending`: no fiber holds it, and some wait. Their place contends for the first one.
 * - `holding`: a fiber holds it, and no fiber waits.
 * - `awaited`: a fiber holds it, and others wait. Their place listens, ready for the release to queue it (H4).
 */
export type Phase = "idle" | "asking" | "contending" | "holding" | "awaited"

/**
 * - `new`: the fiber has not requested the mutex yet.
 * - `asking`: its own request is in flight.
 * - `waiting`: it is in line.
 * - `granted`: it has a lease, even if it has not resumed yet.
 * - `gone`: it was refused, or has given up.
 */
export type FiberPhase = "new" | "asking" | "waiting" | "granted" | "gone"

/** One fiber that wants the mutex. Mutated in place. */
export interface LineFiber {
  phase: FiberPhase
}

/** Mutated in place, because each turn of a contended mutex has several events. */
export interface Line {
  phase: Phase
  /** The number of fibers whose own request is in flight. */
  asking: number
  /** The number of fibers in line. */
  waiting: number
  /** The place is `contending` from its first request, or from the release that queues it, until it ends. */
  place: "none" | "listening" | "contending"
}

/**
 * The events of one fiber.
 *
 * - `Asked`: it requests the mutex itself.
 * - `Granted`: its own request was granted.
 * - `Refused`: its own request was refused or undone, and the fiber does not wait.
 * - `JoinedFirst`: its own request was refused, and it waits at the head of the line.
 * - `Joined`: it waits at the end of the line.
 * - `Left`: it no longer waits.
 * - `Won`: the place was granted the mutex for it, and has ended.
 * - `HandedOn`: the last holder passed the lease on to it, within the same turn.
 */
export type FiberEvent = "Asked" | "Granted" | "Refused" | "JoinedFirst" | "Joined" | "Left" | "Won" | "HandedOn"

/**
 * - `Released`, `Lost`: no fiber holds the mutex any more.
 * - `Crashed`: the place ended with a defect, which fails the first waiter.
 */
export type Event = FiberEvent | "Released" | "Lost" | "Crashed"

/**
 * - `listen`: create a place that listens.
 * - `contend`: let the place contend; create it if there is none.
 * - `requeue`: the release must also queue the place.
 * - `abandon`: end the place (H7).
 */
export type Command = "nothing" | "listen" | "contend" | "requeue" | "abandon"

export const make = (): Line => ({ phase: "idle", asking: 0, waiting: 0, place: "none" })

export const isHeld = ({ phase }: Line): boolean => phase === "holding" || phase === "awaited"

/** A fiber's phase before and after each event. */
const steps: Readonly<Record<FiberEvent, readonly [FiberPhase, FiberPhase]>> = {
  Asked: ["new", "asking"],
  Granted: ["asking", "granted"],
  Refused: ["asking", "gone"],
  JoinedFirst: ["asking", "waiting"],
  Joined: ["new", "waiting"],
  Left: ["waiting", "gone"],
  Won: ["waiting", "granted"],
  HandedOn: ["waiting", "granted"]
}

/**
 * How to clean up after an acquire that failed or was interrupted (H7).
 *
 * - `undo`: its request may still be granted. Undo the request on the backend, and report the fiber as `Refused`.
 * - `leave`: report that the fiber has `Left`.
 * - `release`: release its lease.
 */
export const undoOf = ({ phase }: LineFiber): "nothing" | "undo" | "leave" | "release" =>
  phase === "asking" ? "undo" : phase === "waiting" ? "leave" : phase === "granted" ? "release" : "nothing"

const isPossible = (line: Line, event: Event): boolean => {
  switch (event) {
    case "Asked":
      return !isHeld(line) && line.waiting === 0
    // Possible even if a fiber in line holds the mutex: it may rely on a lease that the backend has already lost
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

const advance = (fiber: LineFiber, event: FiberEvent): void => {
  const [from, to] = steps[event]
  if (fiber.phase !== from) throw new Error(`event ${event} is impossible for a fiber that is ${fiber.phase}`)
  fiber.phase = to
}

const assertPossible = (line: Line, event: Event): void => {
  if (isPossible(line, event)) return
  throw new Error(`event ${event} is impossible for a line that is ${line.phase}, with ${line.waiting} waiting`)
}

/** Applies one fiber's event and returns the command to execute. Throws if the event cannot occur. */
export const next = (line: Line, event: FiberEvent, fiber: LineFiber): Command => {
  assertPossible(line, event)
  advance(fiber, event)
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
  }
}

/** Records that a fiber's lease has ended. */
export const ended = (line: Line, event: "Released" | "Lost"): Command => {
  assertPossible(line, event)
  const isQueued = event === "Released" && line.phase === "awaited" && line.place === "listening"
  if (isQueued) line.place = "contending"
  const command = settle(line, false)
  return isQueued ? "requeue" : command
}

/** Records that the place ended with a defect. This fails `first`, the first waiter, if there is one. */
export const crashed = (line: Line, first: LineFiber | undefined): Command => {
  assertPossible(line, "Crashed")
  line.place = "none"
  if (first !== undefined) {
    advance(first, "Left")
    line.waiting--
  }
  return settle(line, isHeld(line))
}
