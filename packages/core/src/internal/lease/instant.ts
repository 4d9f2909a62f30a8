/** An instant on both clocks, in milliseconds. */
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

/** How far the clocks may drift apart before it counts as a suspension: a small part of the smallest margin. */
export const driftMillis = 10
