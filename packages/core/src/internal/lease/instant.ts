/** An instant on the monotonic and on the wall clock, in milliseconds. */
import type * as Clock from "effect/Clock"

export interface Instant {
  /** Stops while the machine is suspended. */
  readonly monotonic: number
  readonly wall: number
}

export const instant = (clock: Clock.Clock): Instant => ({
  monotonic: Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  wall: clock.currentTimeMillisUnsafe()
})

/** A suspension stops monotonic timers, so the clocks are compared this often. */
export const comparePeriodMillis = 1000

/** How far the clocks may drift apart before it counts as a suspension: a fraction of the smallest margin. */
const driftMillis = 10

/** Detects suspensions, and clocks that were set, for the loops that sleep on the monotonic clock. */
export class ClockComparison {
  /** The wall clock minus the monotonic clock, at the last shift. */
  private offset: number

  constructor(now: Instant) {
    this.offset = now.wall - now.monotonic
  }

  /** How far the wall clock has moved against the monotonic one since the last shift, in milliseconds. A drift is 0. */
  shift(now: Instant): number {
    const moved = now.wall - now.monotonic - this.offset
    if (Math.abs(moved) <= driftMillis) return 0
    this.offset += moved
    return moved
  }
}
