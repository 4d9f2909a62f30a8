/**
 * Whether the backend replies to the requests of one line of fibers, and when its waiters give up on it: a decision on
 * plain data. `LocalQueue` reports requests and replies, and sets the timer.
 */
import * as Duration from "effect/Duration"
import type { BackendError } from "../../SimbaError.ts"
import { noReply } from "../lease/storeFailure.ts"

/**
 * - `untried`: no request was sent yet.
 * - `replied`: the last request has a reply.
 * - `firstPending`: a request has no reply, and none before it had one.
 * - `pending`: a request has no reply, but one before it had.
 * - `out`: the last request failed with an outage. Another request may be in flight.
 */
export type Phase = "untried" | "replied" | "firstPending" | "pending" | "out"

/** Changed in place: each turn of a contended mutex has a request. */
export interface Silence {
  phase: Phase
  /**
   * When the first request without a reply was sent, in monotonic milliseconds. Finite unless `untried` or `replied`.
   */
  since: number
  /** Set in `out`. */
  outage: BackendError | undefined
  /** The shortest lease of the fibers that joined since the line was empty: after it, the first of them gives up. */
  shortestMillis: number
  /** When a waiter gives up, if there is still no reply, in monotonic milliseconds. */
  giveUpAt: number
}

export const make = (): Silence => ({
  phase: "untried",
  since: Infinity,
  outage: undefined,
  shortestMillis: Infinity,
  giveUpAt: Infinity
})

const isSilent = ({ phase }: Silence): boolean => phase !== "untried" && phase !== "replied"

/** A request was sent. */
export const asked = (silence: Silence, now: number, hasWaiters: boolean): void => {
  if (isSilent(silence)) return
  silence.phase = silence.phase === "untried" ? "firstPending" : "pending"
  silence.since = now
  if (hasWaiters) silence.giveUpAt = now + silence.shortestMillis
}

/** A fiber joined the line. */
export const joined = (silence: Silence, now: number, leaseMillis: number, isAlone: boolean): void => {
  silence.shortestMillis = isAlone ? leaseMillis : Math.min(silence.shortestMillis, leaseMillis)
  if (isSilent(silence)) silence.giveUpAt = Math.min(silence.giveUpAt, now + leaseMillis)
}

export const replied = (silence: Silence): void => {
  silence.phase = "replied"
  silence.since = silence.giveUpAt = Infinity
  silence.outage = undefined
}

/**
 * Returns when the outage began. The caller fails the waiters that have waited for a whole lease since then, and calls
 * `waits` with the time at which the next one gives up.
 */
export const failed = (silence: Silence, now: number, outage: BackendError): number => {
  if (!isSilent(silence)) silence.since = now
  silence.phase = "out"
  silence.outage = outage
  return silence.since
}

export const waits = (silence: Silence, until: number): void => {
  silence.giveUpAt = until
}

/** The outage at `giveUpAt`, when the timer rings. Undefined if there was a reply. */
export const rang = (silence: Silence): BackendError | undefined => {
  const at = silence.giveUpAt
  silence.giveUpAt = Infinity
  return isSilent(silence) ? noReply("acquire", Duration.millis(at - silence.since)) : undefined
}

/** Why a waiter that gives up after `timeout` does not know whether the mutex is taken. Undefined if it knows. */
export const problemOf = (
  { outage, phase, since }: Silence,
  timeout: Duration.Duration,
  confirm: Duration.Duration,
  now: number
): BackendError | undefined => {
  switch (phase) {
    case "untried":
    case "replied":
      return undefined
    case "out":
      return outage
    case "firstPending":
      return noReply("acquire", timeout)
    case "pending":
      // Earlier requests had replies, so one without a reply is an outage only after some time
      return now - since >= Duration.toMillis(Duration.min(timeout, confirm)) ? noReply("acquire", timeout) : undefined
  }
}
