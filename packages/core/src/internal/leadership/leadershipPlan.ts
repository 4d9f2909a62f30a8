/**
 * Decides when a contender contends, leads and resigns: a state machine on plain data. `contender` executes its
 * commands, and runs the loop that acquires the mutex, leads until the lease ends, and acquires the mutex again.
 */

/**
 * - `stopped`: there is no loop.
 * - `contending`: the loop is pausing, or waiting for the mutex.
 * - `leading`: the contender holds the lease.
 * - `resigning`: it still holds the lease, but its work has failed or it was asked to resign. No more job runs start.
 * - `ending`: the job runs have ended or the drain timeout has passed, and the loop is being interrupted.
 */
export type Phase = "stopped" | "contending" | "leading" | "resigning" | "ending"

/** Mutated in place. */
export interface Contention {
  phase: Phase
  /** Whether the loop restarts after it has ended. */
  isWanted: boolean
  /** Whether the contender leads only if nobody else wants to. */
  isLeaving: boolean
  isClosed: boolean
  /** The number of leaderships so far. Events from earlier leaderships have a smaller number and are ignored. */
  leadership: number
  /** The number of this leadership's job runs in progress. */
  runs: number
  /** How many consecutive leaderships ended because of `WorkFailed`. */
  failures: number
  /** How long the loop pauses before it contends again. */
  pauseMillis: number
}

/** `leadership` is the number of the event's leadership. */
export type Event =
  | { readonly _tag: "Start" | "Stop" | "StepDown" | "Leave" | "Close" }
  /** The loop has ended after an interruption. */
  | { readonly _tag: "LoopEnded" }
  | { readonly _tag: "Gained" }
  /** The lease has been lost, or is about to be released. */
  | { readonly _tag: "Over"; readonly lastedMillis: number }
  | { readonly _tag: "RunStarted" }
  | { readonly _tag: "RunEnded"; readonly leadership: number }
  /**
   * The work failed, or the leader resigns because of a failed job, an operator's request, or a clock that is far off.
   */
  | { readonly _tag: "WorkFailed"; readonly leadership: number }
  /** The job runs have ended, or the drain timeout has passed. */
  | { readonly _tag: "Drained"; readonly leadership: number; readonly lastedMillis: number }

/**
 * - `begin`: start the loop, which first pauses.
 * - `interrupt`: interrupt the loop. `LoopEnded` follows.
 * - `drain`: wait until the job runs have ended, for at most the drain timeout. `Drained` follows.
 * - `endDrain`: stop waiting, because the last run has ended.
 */
export type Command = "nothing" | "begin" | "interrupt" | "drain" | "endDrain"

/** The pause after the first consecutive failure, and the longest pause. */
const firstPauseMillis = 100
const longestPauseMillis = 10_000

/** A leadership that lasts this long resets the failure count. */
const lastingMillis = 60_000

export const make = (): Contention => ({
  phase: "stopped",
  isWanted: false,
  isLeaving: false,
  isClosed: false,
  leadership: 0,
  runs: 0,
  failures: 0,
  pauseMillis: 0
})

/** Returns the pause before the loop contends, and resets it. */
export const takePause = (contention: Contention): number => {
  const { pauseMillis } = contention
  contention.pauseMillis = 0
  return pauseMillis
}

/** Whether a job run may start under the current leadership. */
export const mayStart = ({ phase }: Contention): boolean => phase === "leading"

const hasLoop = ({ phase }: Contention) => phase !== "stopped"
const isLeader = ({ phase }: Contention) => phase === "leading" || phase === "resigning" || phase === "ending"

const impossible = ({ phase }: Contention, event: Event): never => {
  throw new Error(`event ${event._tag} is impossible for a contender that is ${phase}`)
}

const begin = (contention: Contention): Command => {
  contention.phase = contention.isWanted ? "contending" : "stopped"
  return contention.isWanted ? "begin" : "nothing"
}

const interrupt = (contention: Contention): Command => hasLoop(contention) ? "interrupt" : "nothing"

/** Applies an event and returns the command to execute. Throws if the event cannot occur in this phase. */
export const next = (contention: Contention, event: Event): Command => {
  switch (event._tag) {
    case "Start": {
      const { isLeaving } = contention
      contention.isWanted = !contention.isClosed
      contention.isLeaving = false
      if (!hasLoop(contention)) return begin(contention)
      // The restarted loop queues immediately, not only after another attempt without queueing
      return isLeaving && contention.phase === "contending" ? "interrupt" : "nothing"
    }
    case "Stop":
      contention.isWanted = false
      return interrupt(contention)
    case "Close":
      contention.isClosed = true
      contention.isWanted = false
      return interrupt(contention)
    case "StepDown":
      return interrupt(contention)
    case "Leave":
      contention.isLeaving = true
      // The restarted loop leaves the queue and contends without queueing
      return contention.phase === "contending" ? "interrupt" : "nothing"
    case "LoopEnded":
      return contention.phase === "contending" ? begin(contention) : impossible(contention, event)
    case "Gained":
      if (contention.phase !== "contending") return impossible(contention, event)
      contention.phase = "leading"
      contention.leadership++
      contention.runs = 0
      return "nothing"
    case "Over":
      if (!isLeader(contention)) return impossible(contention, event)
      if (contention.phase !== "ending" && event.lastedMillis >= lastingMillis) contention.failures = 0
      contention.phase = "contending"
      return "nothing"
    case "RunStarted":
      if (!mayStart(contention)) return impossible(contention, event)
      contention.runs++
      return "nothing"
    case "RunEnded":
      if (!isLeader(contention) || event.leadership !== contention.leadership) return "nothing"
      return --contention.runs === 0 && contention.phase === "resigning" ? "endDrain" : "nothing"
    case "WorkFailed":
      if (contention.phase !== "leading" || event.leadership !== contention.leadership) return "nothing"
      contention.phase = "resigning"
      return "drain"
    case "Drained":
      if (contention.phase !== "resigning" || event.leadership !== contention.leadership) return "nothing"
      contention.phase = "ending"
      if (event.lastedMillis >= lastingMillis) contention.failures = 0
      contention.pauseMillis = Math.min(firstPauseMillis * 2 ** contention.failures++, longestPauseMillis)
      return "interrupt"
  }
}
