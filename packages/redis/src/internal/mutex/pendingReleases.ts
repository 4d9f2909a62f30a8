/**
 * Releases whose effect is uncertain: they failed, or a late request queued the id again. A grant to one of these ids
 * is released once more, however late: ids are never reused. `store` notes releases, and asks when `waiterInbox` hears
 * a grant that nobody waits for.
 */
import type { ReleaseRequest } from "@effect-simba/core/MutexStore"

/** At least this many ids are remembered. The turn of an older id costs the next waiter a confirm period. */
const limit = 10_000

export class PendingReleases {
  private requests = new Map<string, ReleaseRequest>()
  /** Dropped together: a map that repeatedly loses its first entry becomes slow. */
  private older = this.requests
  private readonly queued = new Set<string>()

  /** The id may be in the queue from now on. */
  noteQueued(id: string): void {
    this.queued.add(id)
    if (this.queued.size > limit) this.queued.delete(this.queued.keys().next().value!)
  }

  settle({ confirm, id, lease, mutex }: ReleaseRequest, failed: boolean): void {
    if (!this.queued.delete(id) && !failed) return
    if (this.requests.size === limit) {
      this.older = this.requests
      this.requests = new Map()
    }
    this.requests.set(id, { mutex, id, confirm, lease })
  }

  find(id: string): ReleaseRequest | undefined {
    return this.requests.get(id) ?? this.older.get(id)
  }
}
