/**
 * Tracks what one consumer's sweeps know about entries that belong to Go consumers (processes that run
 * redis-stream-client-go), and decides which of those entries may be taken. Used by `orphanSweep`.
 *
 * A Go consumer locks an entry some time after receiving it. If it cannot lock its entry, it never reads again. To
 * finish an entry, it makes three calls, and the first one unlocks the entry. Therefore an entry without a lock may be
 * taken only if both of these are true:
 *
 * - A sweep found the entry locked by the consumer that received it, or the entry has been idle long enough for a Go
 *   consumer to take it.
 * - The entry is still pending and unlocked `secondCheck` later.
 *
 * After a lock has expired, no second check is needed, because a consumer unlocks an entry before finishing it.
 */
import * as Duration from "effect/Duration"
import type { EntryId } from "../StreamName.ts"
import { compareEntryIds, type Entry, type Pending } from "../StreamStore.ts"

/**
 * How long a Go consumer's lock lasts. Also the idle time after which Go consumers claim an entry whose lock expired.
 */
export const goLease = Duration.seconds(2)

/** When it starts, a Go consumer takes entries that have been idle for this long. */
const abandoned = Duration.seconds(40)

/** The time until the second check. A Go consumer needs less time to finish an entry. */
export const secondCheck = Duration.millis(250)

interface Sighting {
  readonly content: Entry
  readonly consumer: string
  readonly deliveries: number
  wasLeased: boolean
  pass: number
}

export class GoEntries {
  private readonly sightings = new Map<EntryId, Sighting>()
  private pass = 0

  readonly known = (entry: EntryId): Entry | undefined => this.sightings.get(entry)?.content

  /** Records an entry found by a sweep. Returns whether the entry may be taken after the second check. */
  mayTake({ consumer, content, deliveries, idle, goConsumer }: Pending): boolean {
    let sighting = this.sightings.get(content.entry)
    if (sighting?.consumer !== consumer || sighting.deliveries !== deliveries) {
      sighting = { content, consumer, deliveries, wasLeased: false, pass: this.pass }
      this.sightings.set(content.entry, sighting)
    }
    sighting.pass = this.pass
    if (goConsumer?.lease === consumer) sighting.wasLeased = true
    return goConsumer?.lease === undefined && (sighting.wasLeased || Duration.isGreaterThanOrEqualTo(idle, abandoned))
  }

  /**
   * Called when a sweep ends. If the sweep stopped early, `last` is the last entry that it covered. Forgets the entries
   * that the sweep covered but did not find, because they are no longer pending.
   */
  endSweep(last?: EntryId): void {
    for (const [entry, { pass }] of this.sightings) {
      if (pass !== this.pass && (last === undefined || compareEntryIds(entry, last) <= 0)) this.sightings.delete(entry)
    }
    this.pass++
  }
}
