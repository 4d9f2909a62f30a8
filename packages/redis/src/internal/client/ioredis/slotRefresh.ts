/**
 * A Cluster client that refreshes the topology with backoff, and always reconnects. ioredis would refresh the topology
 * for each refused command. `connection` creates it.
 */
import { Cluster } from "ioredis"
import { monotonicMillis } from "./wallClock.ts"

/** The time between two refreshes. It doubles while requests are frequent, up to the longest. */
const shortestMillis = 100
const longestMillis = 2000

export class ClusterClient extends Cluster {
  private distance = shortestMillis
  private next = 0

  /** Skips a refresh that comes too soon. A moved slot needs none, because the reply names its new node. */
  override refreshSlotsCache(callback?: Parameters<Cluster["refreshSlotsCache"]>[0]): void {
    const now = monotonicMillis()
    if (this.status === "ready" && now < this.next) return callback?.()
    this.distance = now < this.next + this.distance ? Math.min(2 * this.distance, longestMillis) : shortestMillis
    this.next = now + this.distance
    super.refreshSlotsCache(callback)
  }

  /** If the last of the old connections ends while host names are resolved, ioredis would abort, and not try again. */
  override connect(): Promise<void> {
    const connecting = super.connect()
    connecting.catch(() => {
      if (this.status === "close") this["handleCloseEvent"]()
    })
    return connecting
  }
}
