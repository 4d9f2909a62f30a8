/**
 * Limits how often a repeated fault triggers a reaction. Used by `slotRefresh`, and to reconnect when a server has
 * become a replica.
 */
import { monotonicMillis } from "./wallClock.ts"

const shortestMillis = 100
const longestMillis = 2000

export class Pace {
  /** The minimum time until the next reaction. It doubles while requests are frequent, up to `longestMillis`. */
  private distance = shortestMillis
  private next = 0

  /** Returns whether the reaction is due. If it is, schedules the next one. */
  isDue(): boolean {
    const now = monotonicMillis()
    if (now < this.next) return false
    this.distance = now < this.next + this.distance ? Math.min(2 * this.distance, longestMillis) : shortestMillis
    this.next = now + this.distance
    return true
  }
}
