/**
 * Computes when a waiter polls if nothing wakes it: a pure function of the last reply, used by `fleetPlace`. The first
 * waiter polls right after the owner's key expires, the next seven at intervals of 30 milliseconds, and the others
 * spread over one confirm period. A waiter sleeps for at most `lease`, even if the owner's lease lasts longer, because
 * the next owner may have a shorter lease, and its grant wakes no other waiter.
 */
import * as Duration from "effect/Duration"
import type { Refused } from "./attempt.ts"

/** The interval between waiters near the head of the queue, so they do not all poll at the same time. */
const staggerMillis = 30
const staggered = 8

/** Simba owners wake only one waiter, so the others poll this often. */
const foreignPollMillis = 2000

/** Returns the delay in milliseconds. */
export const pollDelay = (
  { foreign, ownership, position }: Pick<Refused, "foreign" | "ownership" | "position">,
  options: {
    /** How long a granted waiter has to confirm the grant. */
    readonly confirm: Duration.Duration
    /** The layer's ttl plus its transition. */
    readonly lease: Duration.Duration
    /** A random number from 0 to 1. */
    readonly random: number
  }
): number => {
  const confirm = Duration.toMillis(options.confirm)
  const remaining = ownership._tag === "Free"
    ? confirm
    : ownership.timeLeft === undefined
    ? Duration.toMillis(options.lease)
    // A key disappears one millisecond after its remaining time has reached zero
    : Math.min(Duration.toMillis(ownership.timeLeft), Duration.toMillis(options.lease)) + 1
  const apart = position < staggered
    ? position * staggerMillis
    : staggered * staggerMillis + options.random * Math.max(0, confirm - staggered * staggerMillis)
  return Math.min(remaining + apart, !foreign ? Infinity : position === 0 ? confirm : foreignPollMillis)
}
