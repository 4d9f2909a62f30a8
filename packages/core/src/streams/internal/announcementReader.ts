/**
 * Reads new announcements while there is room, and takes their data streams. `consumption` runs it, and `leaseTaker`
 * takes what it reads.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { persist } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Entry } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker, type Malformed } from "./leaseTaker.ts"
import type { OrphanSweep } from "./orphanSweep.ts"

/** How long one read waits in the backend for announcements. */
const readTimeout = Duration.seconds(1)

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  sweep: OrphanSweep,
  deliver: Deliver,
  /** Completes when the consumer of notifications has caught up. */
  ready: Effect.Effect<void>
): Effect.Effect<never, StoreError> => {
  const { config, store, table } = client
  const { consumer } = config

  const accept = Effect.fnUntraced(function*(entries: ReadonlyArray<Entry>) {
    const candidates: Array<Candidate> = []
    const malformed: Array<Malformed> = []
    for (const entry of entries) {
      if (entry._tag === "Malformed") malformed.push(entry)
      // A stream that is owned under another announcement stays pending for the sweeps
      else if (taking.mayTake(entry)) candidates.push({ ...entry, minIdle: config.leaseDuration })
    }
    const { length } = yield* taking.take(candidates, "announcement", deliver)
    // Orphans may have used up the room meanwhile: any consumer's sweep takes the rest
    if (length < candidates.length) sweep.request()
    yield* Effect.forEach(malformed, (entry) => taking.deadLetter(entry, consumer), { discard: true })
  })

  /**
   * Reads only as many announcements as there is room for, since Redis assigns entries to the consumer that reads them.
   * A blocked read reserves no room, so that orphans can use it.
   */
  const read = Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const count = Math.min(table.free(), batchSize)
      return count === 0
        ? Effect.void
        : Effect.flatMap(restore(store.read({ consumer, count, block: readTimeout })), accept)
    })
  )

  return Effect.forever(persist(
    "Reading announcements",
    Effect.gen(function*() {
      // Announcements that were read during a pause would be assigned to this consumer, and wait for its end
      while (client.pauses.isService) yield* Effect.sleep(config.heartbeatInterval)
      yield* ready
      yield* table.room.await
      // Orphans have waited longer than new announcements
      if (sweep.isRequested()) yield* sweep.once
      yield* read
    }),
    config.sweepInterval
  ))
}
