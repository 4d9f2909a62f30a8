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
  /** When this leadership began, in monotonic milliseconds. */
  since: number
  /** Whether this leadership's work has failed. */
  hasFailed: boolean
  /** How many consecutive leaderships had work that failed. */
  failures: number
  /** When the pause after failed work ends, in monotonic milliseconds. Restarting the loop does not shorten it. */
  contendsAt: number
}

/** `leadership` is the number of the event's leadership, and `now` is in monotonic milliseconds. */
export type Event =
  | { readonly _tag: "Start" | "Stop" | "StepDown" | "Leave" | "Close" }
  /** The loop has ended after an interruption. */
  | { readonly _tag: "LoopEnded" }
  | { readonly _tag: "Gained"; readonly now: number }
  /** The lease has been lost, or is about to be released. */
  | { readonly _tag: "Over"; readonly now: number }
  | { readonly _tag: "RunStarted" }
  | { readonly _tag: "RunEnded"; readonly leadership: number }
  /**
   * The work failed, or the leader resigns because of a failed job, an operator's request, or a clock that is far off.
   * Work may fail after its leadership is over.
   */
  | { readonly _tag: "WorkFailed"; readonly leadership: number; readonly now: number }
  /** The job runs have ended, or the drain timeout has passed. */
  | { readonly _tag: "Drained"; readonly leadership: number }

/**
 * - `begin`: start the loop. It pauses until `contendsAt` before each attempt.
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
  since: 0,
  hasFailed: false,
  failures: 0,
  contendsAt: 0
})

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

const pause = (contention: Contention, now: number): void => {
  contention.contendsAt = now + Math.min(firstPauseMillis * 2 ** contention.failures++, longestPauseMillis)
}

/** Applies an event and returns the command to execute. Throws if the event cannot occur in this phase. */
export const next = (contention: Contention, event: Event): Command => {
  switch (event._tag) {
    case "Start": {
      const { isLeaving } = contention
      contention.isWanted = !contention.isClosed
      contention.isLeaving = false
      if (!hasLoop(contention)) return begin(contention)
      // Restart the loop so that it queues immediately, without first making another attempt that does not queue
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
      // Restart the loop so that it leaves the queue and contends without queueing
      return contention.phase === "contending" ? "interrupt" : "nothing"
    case "LoopEnded":
      return contention.phase === "contending" ? begin(contention) : impossible(contention, event)
    case "Gained":
      if (contention.phase !== "contending") return impossible(contention, event)
      contention.phase = "leading"
      contention.leadership++
      contention.runs = 0
      contention.since = event.now
      contention.hasFailed = false
      return "nothing"
    case "Over":
      if (!isLeader(contention)) return impossible(contention, event)
      if (event.now - contention.since >= lastingMillis) contention.failures = 0
      if (contention.hasFailed) pause(contention, event.now)
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
      if (contention.hasFailed || event.leadership !== contention.leadership) return "nothing"
      contention.hasFailed = true
      if (contention.phase === "leading") {
        contention.phase = "resigning"
        return "drain"
      }
      // The work first stepped down or lost the lease. The loop may be contending already
      pause(contention, event.now)
      return interrupt(contention)
    case "Drained":
      if (contention.phase !== "resigning" || event.leadership !== contention.leadership) return "nothing"
      contention.phase = "ending"
      return "interrupt"
  }
}
