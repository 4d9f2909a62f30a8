/** An instant on both clocks, and the deadline that a lease has by both. */
import type * as Clock from "effect/Clock"

/** In milliseconds. The monotonic clock stands still while a machine is suspended. */
export interface Instant {
  readonly monotonic: number
  readonly wall: number
}

export const instant = (clock: Clock.Clock): Instant => ({
  monotonic: Number(clock.monotonicTimeNanosUnsafe()) / 1e6,
  wall: clock.currentTimeMillisUnsafe()
})

/** What ends by whichever clock says so first. */
export abstract class Deadline {
  private monotonicDeadline = 0
  private wallDeadline = 0

  protected endAt(monotonic: number, wall: number): void {
    this.monotonicDeadline = monotonic
    this.wallDeadline = wall
  }

  /** Monotonic milliseconds. */
  deadline(): number {
    return this.monotonicDeadline
  }

  /** Milliseconds until the deadline. */
  left(now: Instant): number {
    const monotonic = this.monotonicDeadline - now.monotonic
    const wall = this.wallDeadline - now.wall
    // The wall clock was set back: what is left of the lease has not grown with that
    if (wall > monotonic) this.wallDeadline = now.wall + monotonic
    return Math.min(monotonic, wall)
  }
}
