/** Finding data streams without an owner, needing no event: a look at what is pending for longer than a lease. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import { persist } from "../../internal/lease/storeFailure.ts"
import { sleepUntil } from "../../internal/lease/supervise.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { Pending } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"

export interface Sweep {
  /** One's own unfinished ones, from an earlier life under the same name: nobody else would look at them so soon. */
  readonly own: Effect.Effect<void, StoreError>
  /** Whether there were orphans left when there was no more room. They go before what is new. */
  readonly isWanted: () => boolean
  readonly want: () => void
  readonly once: Effect.Effect<void, StoreError>
  /** Looks without waiting for the next time. */
  readonly nudge: () => void
  readonly loop: Effect.Effect<never, StoreError>
}

/** With a small capacity and quick handlers there is room again at once; the backend is not asked more often than this. */
const shortest = 50

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  deliver: Deliver,
  also: Effect.Effect<void, StoreError>
): Sweep => {
  const { config, meter, store, table } = client
  const nudged = Latch.makeUnsafe(false)
  const turn = Semaphore.makeUnsafe(1)
  let wanted = false
  let last = -Infinity
  /** The last one that found room. */
  let filled = -Infinity

  const bury = ({ consumer, content }: Pending) => {
    if (content._tag !== "Malformed") return Effect.void
    return Effect.flatMap(store.deadLetterMalformed(content.entry, consumer, content.problem), (buried) => {
      if (buried) meter.update(StreamMetrics.malformed, 1)
      return Effect.logError(`An announcement cannot be read: ${content.problem}`).pipe(
        Effect.annotateLogs({ entry: content.entry })
      )
    })
  }

  const look = (only: "own" | "all", source: keyof typeof StreamMetrics.acquisitions) =>
    Effect.gen(function*() {
      wanted = false
      const { consumer, leaseDuration: lease } = config
      let after: EntryId | undefined
      do {
        if (table.free() === 0) {
          wanted = true
          return
        }
        const page = yield* store.pending({
          consumer: only === "own" ? consumer : undefined,
          minIdle: only === "own" ? Duration.zero : lease,
          after,
          count: batchSize
        })
        const candidates: Array<Candidate> = []
        for (const pending of page.entries) {
          const { content } = pending
          if (content._tag === "Malformed") {
            // A consumer of another implementation may be at it all the same, and does not make it young again
            const isStale = Duration.isGreaterThanOrEqualTo(pending.idle, config.reapAfter)
            if (pending.consumer === consumer || isStale) yield* bury(pending)
          } else if (taking.isWorthwhile(content)) {
            candidates.push({ ...content, minIdle: pending.consumer === consumer ? Duration.zero : lease })
          }
        }
        for (let i = 0; i < candidates.length;) {
          const { length } = yield* taking.take(candidates.slice(i), source, deliver)
          if (length === 0) {
            wanted = true
            return
          }
          i += length
        }
        after = page.next
      } while (after !== undefined)
    })

  const once = turn.withPermit(Effect.suspend(() => {
    last = table.now().monotonic
    // One without room must not keep orphans from the room that comes up the moment after
    if (table.free() > 0) filled = last
    meter.update(StreamMetrics.sweeps, 1)
    return Effect.andThen(also, look("all", "sweep"))
  }))

  return {
    own: turn.withPermit(look("own", "start")),
    isWanted: () => wanted && table.now().monotonic - filled >= shortest,
    want: () => {
      wanted = true
    },
    once,
    nudge: () => nudged.openUnsafe(),
    loop: Effect.forever(persist(
      "Sweeping",
      Effect.gen(function*() {
        const factor = yield* Random.nextBetween(0.8, 1.2)
        yield* sleepUntil(table.now().monotonic + Duration.toMillis(config.sweepInterval) * factor, nudged)
        nudged.closeUnsafe()
        yield* Effect.sleep(Math.max(0, last + shortest - table.now().monotonic))
        yield* once
      })
    ))
  }
}
