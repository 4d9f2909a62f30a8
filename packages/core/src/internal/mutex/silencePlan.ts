/**
 * Tracks whether the backend replies to the requests from one line of fibers, and decides when the line's waiters give
 * up: a state machine on plain data. `LocalQueue` reports requests and replies, and sets the timer.
 */
import * as Duration from "effect/Duration"
import type { BackendError } from "../../SimbaError.ts"
import { noReply } from "../lease/storeFailure.ts"

/**
 * - `untried`: no request has been sent yet.
 * - `replied`: the last request got a reply.
 * - `firstPending`: a request is in flight, and no earlier request got a reply.
 * - `pending`: a request is in flight, and an earlier request got a reply.
 * - `out`: the last request failed because of an outage. Another request may be in flight.
 */
export type Phase = "untried" | "replied" | "firstPending" | "pending" | "out"

/** Mutated in place, because each turn of a contended mutex has a request. */
export interface Silence {
  phase: Phase
  /**
   * When the first request without a reply was sent, in monotonic milliseconds. Finite unless `untried` or `replied`.
   */
  since: number
  /** The error of the outage, in the phase `out`. */
  outage: BackendError | undefined
  /**
   * The shortest lease wanted by a fiber that has joined since the line was last empty. After this long without a
   * reply, the first waiter gives up.
   */
  shortestMillis: number
  /** When the next waiter gives up if there is still no reply, in monotonic milliseconds. */
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

/** Called when a request is sent. If an earlier request is still without a reply, the period of silence continues. */
export const asked = (silence: Silence, now: number, hasWaiters: boolean): void => {
  if (isSilent(silence)) return
  silence.phase = silence.phase === "untried" ? "firstPending" : "pending"
  silence.since = now
  if (hasWaiters) silence.giveUpAt = now + silence.shortestMillis
}

/** Called when a fiber joins the line. `isAlone`: whether the line was empty. */
export const joined = (silence: Silence, now: number, leaseMillis: number, isAlone: boolean): void => {
  silence.shortestMillis = isAlone ? leaseMillis : Math.min(silence.shortestMillis, leaseMillis)
  if (isSilent(silence)) silence.giveUpAt = Math.min(silence.giveUpAt, now + leaseMillis)
}

/** Called when a reply arrives, even if it is a refusal or an error. */
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

/** Sets the time at which the next waiter gives up. */
export const waits = (silence: Silence, until: number): void => {
  silence.giveUpAt = until
}

/** Called when the timer rings at `giveUpAt`. Returns the outage, or undefined if a reply has arrived. */
export const rang = (silence: Silence): BackendError | undefined => {
  const at = silence.giveUpAt
  silence.giveUpAt = Infinity
  return isSilent(silence) ? noReply("acquire", Duration.millis(at - silence.since)) : undefined
}

/** Returns the outage if a waiter that gives up after `timeout` cannot know whether the mutex is taken. */
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
      // Earlier requests got replies, so a missing reply counts as an outage only after a while
      return now - since >= Duration.toMillis(Duration.min(timeout, confirm)) ? noReply("acquire", timeout) : undefined
  }
}
