/**
 * Remembers releases that may not have taken effect, because they failed or because a late request queued the id again.
 * If such an id is later granted the mutex, the release is repeated. This is safe, because ids are never reused.
 * `store` records releases, and checks them when `waiterInbox` receives a grant for which no waiter exists.
 */
import type { ReleaseRequest } from "@effect-simba/core/MutexStore"

/**
 * The minimum number of remembered ids. If a forgotten id is granted the mutex, the next waiter is delayed by a confirm
 * period.
 */
const limit = 10_000

/** Returns the unique part of an id: its counter and its layer's random text. */
export const attemptOf = (id: string) => id.slice(0, id.indexOf(":"))

export class PendingReleases {
  /** Releases by attempt. */
  private requests = new Map<string, ReleaseRequest>()
  /**
   * The previous generation of releases. It is dropped as a whole, because repeatedly deleting the first entry makes a
   * map slow.
   */
  private older = this.requests
  private readonly queued = new Set<string>()

  /** Records that the id may be in the queue. */
  noteQueued(id: string): void {
    this.queued.add(id)
    if (this.queued.size > limit) this.queued.delete(this.queued.keys().next().value!)
  }

  /** Whether the id may have been in the queue: its mutex was not free. */
  mayBeQueued(id: string): boolean {
    return this.queued.has(id)
  }

  /** Records the result of a release. Remembers the release if it failed or if its id may have been in the queue. */
  settle({ confirm, id, lease, mutex }: ReleaseRequest, failed: boolean): void {
    if (!this.queued.delete(id) && !failed) return
    if (this.requests.size === limit) {
      this.older = this.requests
      this.requests = new Map()
    }
    this.requests.set(attemptOf(id), { mutex, id, confirm, lease })
  }

  find(attempt: string): ReleaseRequest | undefined {
    return this.requests.get(attempt) ?? this.older.get(attempt)
  }
}
