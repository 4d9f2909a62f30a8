/**
 * Releases whose effect is not certain: they failed, or a late request queued the id again. A grant to such an id is
 * released once more, however late: ids are never used twice.
 */
import type { ReleaseRequest } from "@effect-simba/core/MutexStore"

/** Ids that are remembered. The turn of an id beyond that costs the next waiter a confirm period. */
const limit = 10_000

export class PendingReleases {
  private readonly requests = new Map<string, ReleaseRequest>()
  private readonly queued = new Set<string>()

  /** The id may be in the queue from now on. */
  noteQueued(id: string): void {
    this.queued.add(id)
    if (this.queued.size > limit) this.queued.delete(this.queued.keys().next().value!)
  }

  settle({ confirm, id, mutex, unfair }: ReleaseRequest, failed: boolean): void {
    if (!this.queued.delete(id) && !failed) return
    this.requests.set(id, { mutex, id, confirm, unfair })
    if (this.requests.size > limit) this.requests.delete(this.requests.keys().next().value!)
  }

  find(id: string): ReleaseRequest | undefined {
    return this.requests.get(id)
  }
}
