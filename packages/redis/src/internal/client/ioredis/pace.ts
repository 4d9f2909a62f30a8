/**
 * Limits how often a repeated fault triggers a reaction. Used by `slotRefresh`, and to reconnect when a server has
 * become a replica.
 */
import { monotonicMillis } from "./wallClock.ts"

const shortestMillis = 100
const longestMillis = 2000

export class Pace {
  /**
   * The minimum time until the next reaction. It doubles up to `longestMillis`, and starts again after a reaction has
   * been due that long: requests may be slow to come back, because a reconnection on a slow link takes time.
   */
  private distance = shortestMillis
  private next = 0

  /** Returns whether the reaction is due. If it is, schedules the next one. */
  isDue(now = monotonicMillis()): boolean {
    if (now < this.next) return false
    this.distance = now < this.next + longestMillis ? Math.min(2 * this.distance, longestMillis) : shortestMillis
    this.next = now + this.distance
    return true
  }
}
