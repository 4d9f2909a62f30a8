/** New announcements: read as there is room for them, and taken. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { persist } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { Entry } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"
import type { Sweep } from "./orphanSweep.ts"

/** How long one read waits in the backend for announcements. */
const readTimeout = Duration.seconds(1)

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  sweep: Sweep,
  deliver: Deliver,
  /** Ends when whoever is told has caught up. */
  ready: Effect.Effect<void>
): Effect.Effect<never, StoreError> => {
  const { config, meter, store, table } = client
  const { consumer } = config

  const bury = (entry: Entry) =>
    entry._tag !== "Malformed" ? Effect.void : store.deadLetterMalformed(entry.entry, consumer, entry.problem).pipe(
      Effect.tap((buried) => {
        if (buried) meter.update(StreamMetrics.malformed, 1)
        return Effect.logError(`An announcement cannot be read: ${entry.problem}`)
      }),
      // It is pending here, so a sweep comes back to it
      Effect.catch((error) => Effect.logWarning(`Cannot bury an announcement: ${error.message}`)),
      Effect.annotateLogs({ entry: entry.entry })
    )

  const accept = (entries: ReadonlyArray<Entry>) =>
    Effect.suspend(() => {
      const candidates: Array<Candidate> = []
      for (const entry of entries) {
        // Owned under another announcement: this one stays pending, and is tried again by sweeps
        if (entry._tag === "Announced" && taking.isWorthwhile(entry)) {
          candidates.push({ ...entry, minIdle: Duration.zero })
        }
      }
      const taken = Effect.map(taking.take(candidates, "intake", deliver), ({ length }) => {
        // What orphans took the room of meanwhile is pending here, and goes to whoever has room first
        if (length < candidates.length) sweep.want()
      })
      return Effect.andThen(taken, Effect.forEach(entries, bury, { discard: true }))
    })

  /**
   * As many as there is room for, so that nothing is handed out to a consumer that cannot take it. The room is not kept
   * while the read waits: an orphan that comes up meanwhile must find it.
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
      yield* ready
      yield* table.room.await
      // Orphans wait for longer than what is new
      if (sweep.isWanted()) yield* sweep.once
      yield* read
    })
  ))
}
