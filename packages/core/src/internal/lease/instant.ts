/** An instant on both clocks, in milliseconds. */
import type * as Clock from "effect/Clock"

export interface Instant {
  /** Stands still while a machine is suspended. */
  readonly monotonic: number
  readonly wall: number
}

export const instant = (clock: Clock.Clock): Instant => ({
  monotonic: Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  wall: clock.currentTimeMillisUnsafe()
})
