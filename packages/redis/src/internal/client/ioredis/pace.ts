/** Spaces out a repeated reaction to a fault. `slotRefresh` and the reconnects away from replicas use it. */
import { monotonicMillis } from "./wallClock.ts"

const shortestMillis = 100
const longestMillis = 2000

export class Pace {
  /** The time until the reaction is due again. It doubles while requests are frequent, up to the longest. */
  private distance = shortestMillis
  private next = 0

  /** Returns whether the reaction is due. If so, the next one is due after the distance. */
  isDue(): boolean {
    const now = monotonicMillis()
    if (now < this.next) return false
    this.distance = now < this.next + this.distance ? Math.min(2 * this.distance, longestMillis) : shortestMillis
    this.next = now + this.distance
    return true
  }
}
