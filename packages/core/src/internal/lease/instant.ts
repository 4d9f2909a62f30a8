/** Instants on both the monotonic and the wall clock, in milliseconds. Comparing the two clocks detects suspensions. */
import type * as Clock from "effect/Clock"

export interface Instant {
  /** The monotonic clock stops while the machine is suspended. */
  readonly monotonic: number
  readonly wall: number
}

export const instant = (clock: Clock.Clock): Instant => ({
  monotonic: Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  wall: clock.currentTimeMillisUnsafe()
})

/** How often the clocks are compared. Timers stop during a suspension, so no timer fires when it ends. */
export const comparePeriodMillis = 1000

/** How far the clocks may drift apart before this counts as a suspension: a tenth of the smallest margin. */
const driftMillis = 10

/** Detects suspensions and clock changes, for loops that sleep on the monotonic clock. */
export class ClockComparison {
  /** The difference between the wall clock and the monotonic clock at the last shift. */
  private offset: number

  constructor(now: Instant) {
    this.offset = now.wall - now.monotonic
  }

  /**
   * How far the wall clock has moved relative to the monotonic clock since the last shift, in milliseconds. Returns 0
   * for mere drift.
   */
  shift(now: Instant): number {
    const moved = now.wall - now.monotonic - this.offset
    if (Math.abs(moved) <= driftMillis) return 0
    this.offset += moved
    return moved
  }
}
