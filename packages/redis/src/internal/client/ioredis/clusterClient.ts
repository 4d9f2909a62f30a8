/**
 * A Cluster client that refreshes the topology at growing intervals. ioredis would refresh it for each refused command.
 * `connection` makes it.
 */
import { Cluster } from "ioredis"
import { monotonicMillis } from "./wallClock.ts"

const shortestMillis = 100
const longestMillis = 2000

export class ClusterClient extends Cluster {
  private distance = shortestMillis
  private next = 0

  /** A slot that moved needs no refresh: the reply names its node. */
  override refreshSlotsCache(callback?: Parameters<Cluster["refreshSlotsCache"]>[0]): void {
    const now = monotonicMillis()
    if (this.status === "ready" && now < this.next) return callback?.()
    this.distance = now < this.next + this.distance ? Math.min(2 * this.distance, longestMillis) : shortestMillis
    this.next = now + this.distance
    super.refreshSlotsCache(callback)
  }
}
