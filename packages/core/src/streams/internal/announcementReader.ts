/**
 * Reads new announcements while this consumer has free capacity, and claims their data streams through `leaseTaker`.
 * Run by `consumption`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { persist } from "../../internal/lease/storeRetries.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Entry } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker, type Malformed } from "./leaseTaker.ts"
import type { OrphanSweep } from "./orphanSweep.ts"

/** How long a read blocks on the backend if there are no announcements, unless a sweep is due earlier. */
const readMillis = 1000

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  sweep: OrphanSweep,
  deliver: Deliver,
  /** Waits until the notification queue is no longer full. Completes immediately under `run`. */
  ready: Effect.Effect<void>
): Effect.Effect<never, StoreError> => {
  const { config, store, table } = client
  const { consumer } = config

  const accept = Effect.fnUntraced(function*(entries: ReadonlyArray<Entry>) {
    const candidates: Array<Candidate> = []
    const malformed: Array<Malformed> = []
    for (const entry of entries) {
      if (entry._tag === "Malformed") malformed.push(entry)
      // Other entries stay pending until a sweep takes them
      else if (taking.mayTake(entry)) candidates.push({ ...entry, minIdle: config.leaseDuration })
    }
    const { length } = yield* taking.take(candidates, "announcement", deliver)
    // Orphans may have used up the capacity during the read. The next sweep, on any consumer, takes the remaining ones
    if (length < candidates.length) sweep.request()
    yield* Effect.forEach(malformed, (entry) => taking.deadLetter(entry, consumer), { discard: true })
  })

  /**
   * Redis assigns entries to the consumer that reads them, so this never reads more announcements than the consumer has
   * capacity for. A blocked read reserves no capacity: orphans can use it.
   */
  const read = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const count = Math.min(table.free(), batchSize)
      const block = Duration.millis(Math.min(readMillis, Math.max(1, Math.ceil(sweep.dueIn()))))
      return count === 0
        ? Effect.void
        : Effect.flatMap(restore(store.read({ consumer, count, block })), accept)
    })
  )

  return Effect.forever(persist(
    "Reading announcements",
    Effect.gen(function*() {
      // An announcement read during a pause would be assigned to this consumer and wait there
      while (client.pauses.isService) yield* Effect.sleep(config.heartbeatInterval)
      yield* ready
      yield* table.room.await
      // Take orphans first: they have waited longer than new announcements
      if (sweep.dueIn() <= 0) yield* sweep.once
      yield* read
    }),
    config.sweepInterval
  ))
}
