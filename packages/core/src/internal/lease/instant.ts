/** Instants on both the monotonic and the wall clock, in milliseconds, and a comparison that detects suspensions. */
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

/** How often the clocks are compared. Timers stop during a suspension, so none fires when it ends. */
export const comparePeriodMillis = 1000

/** The clocks may drift apart this far before it counts as a suspension. The smallest margin is ten times as long. */
const driftMillis = 10

/** Detects suspensions and clock changes, for loops that sleep on the monotonic clock. */
export class ClockComparison {
  /** The wall clock minus the monotonic clock, at the last shift. */
  private offset: number

  constructor(now: Instant) {
    this.offset = now.wall - now.monotonic
  }

  /**
   * How far the wall clock has moved relative to the monotonic clock since the last shift, in milliseconds; 0 if that
   * is only drift.
   */
  shift(now: Instant): number {
    const moved = now.wall - now.monotonic - this.offset
    if (Math.abs(moved) <= driftMillis) return 0
    this.offset += moved
    return moved
  }
}
