/**
 * What the sweeps of one consumer know about entries of Go consumers.
 *
 * A Go consumer locks an entry some time after its delivery. If it cannot, it stops reading permanently. It finishes an
 * entry in three calls, of which the first unlocks the entry. So an entry without a lease may be taken if
 *
 * - a sweep found the entry leased by the consumer to which it was delivered, or the entry has been idle for so long
 *   that a Go consumer would take it, and
 * - the entry is still pending and without a lease `secondCheck` later.
 *
 * An expired lease needs no second check: it expired because nobody unlocked it.
 */
import * as Duration from "effect/Duration"
import type { EntryId } from "../StreamName.ts"
import { compareEntryIds, type Entry, type Pending } from "../StreamStore.ts"

/** How long a lease of Go consumers lasts. They claim an entry whose lease expired if it was idle for this long. */
export const goLease = Duration.seconds(2)

/** The idle time after which a Go consumer takes an entry when it starts. */
const abandoned = Duration.seconds(40)

/** Longer than the calls by which a Go consumer finishes an entry. */
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

  /** Records what a sweep found. Returns whether the entry may be taken after the second check. */
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

  /** A sweep has ended, perhaps after `last`: entries up to there that it did not find are no longer pending. */
  endSweep(last?: EntryId): void {
    for (const [entry, { pass }] of this.sightings) {
      if (pass !== this.pass && (last === undefined || compareEntryIds(entry, last) <= 0)) this.sightings.delete(entry)
    }
    this.pass++
  }
}
