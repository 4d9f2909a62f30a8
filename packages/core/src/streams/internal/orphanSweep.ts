/**
 * Finds orphaned data streams without events: entries that have been pending for longer than a lease. `consumption`
 * runs it, and `leaseTaker` takes what it finds.
 *
 * An entry of a Go consumer has no lease between its delivery and its lock. `goEntries` decides when it may be taken.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import { sleepUntil } from "../../internal/lease/backgroundLoop.ts"
import { persist } from "../../internal/lease/storeFailure.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { GoEntries, secondCheck } from "./goEntries.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"

export interface OrphanSweep {
  /** Takes entries that an earlier process of this name left pending. Other consumers wait for a lease's length. */
  readonly own: Effect.Effect<void, StoreError>
  /**
   * Whether orphans may be waiting for room. `announcementReader` then sweeps before it reads new announcements, which
   * have waited less.
   */
  readonly isRequested: () => boolean
  /** Called by `announcementReader` and `orphanSignals` if they lacked room for what they found. */
  readonly request: () => void
  /** One sweep. */
  readonly once: Effect.Effect<void, StoreError>
  /** Starts a sweep now: `orphanSignals` may have missed signals, or has too many. */
  readonly wake: () => void
  readonly loop: Effect.Effect<never, StoreError>
}

type Source = "start" | "sweep"

/** The minimum pause between two sweeps. Quick handlers would otherwise start one sweep after another. */
const minDistanceMillis = 50

/** `adoptHandOvers` confirms the data streams that other members handed over to this one, and starts their handlers. */
export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  deliver: Deliver,
  adoptHandOvers: Effect.Effect<void, StoreError>
): OrphanSweep => {
  const { config, metrics, store, table } = client
  const woken = Latch.makeUnsafe(false)
  const permit = Semaphore.makeUnsafe(1)
  const goEntries = new GoEntries()
  let requested = false
  let last = -Infinity
  /** When a sweep last began with room. */
  let lastWithRoom = -Infinity

  /** Returns false if there was no room for all. */
  const takeAll = Effect.fnUntraced(function*(
    candidates: ReadonlyArray<Candidate>,
    source: Source
  ) {
    for (let i = 0; i < candidates.length;) {
      const { length } = yield* taking.take(candidates.slice(i), source, deliver)
      if (length === 0) {
        requested = true
        return false
      }
      i += length
    }
    return true
  })

  /** The sweep at the start reads only entries of this consumer. */
  const sweepOnce = (source: Source) =>
    Effect.gen(function*() {
      requested = false
      const { consumer, leaseDuration: lease } = config
      let after: EntryId | undefined
      const unlocked: Array<Candidate> = []
      const ends = (last?: EntryId) => {
        if (source === "sweep") goEntries.endSweep(last)
      }
      do {
        if (table.free() === 0) {
          requested = true
          if (after !== undefined) ends(after)
          return
        }
        const page = yield* store.pending({
          consumer: source === "start" ? consumer : undefined,
          minIdle: source === "start" ? Duration.zero : lease,
          after,
          count: batchSize,
          known: goEntries.known
        })
        const candidates: Array<Candidate> = []
        for (const pending of page.entries) {
          const { content } = pending
          if (content._tag === "Malformed") {
            // A Go consumer may still be working on it, and does not refresh its idle time
            const isStale = Duration.isGreaterThanOrEqualTo(pending.idle, config.reapAfter)
            if (pending.consumer === consumer || isStale) yield* taking.deadLetter(content, pending.consumer)
          } else if (pending.goConsumer !== undefined) {
            if (goEntries.mayTake(pending) && taking.mayTake(content)) unlocked.push({ ...content, minIdle: lease })
          } else if (taking.mayTake(content)) {
            candidates.push({ ...content, minIdle: lease })
          }
        }
        if (!(yield* takeAll(candidates, source))) return ends(page.entries.at(-1)?.content.entry)
        after = page.next
      } while (after !== undefined)
      ends()
      if (unlocked.length === 0) return
      yield* Effect.sleep(secondCheck)
      yield* takeAll(unlocked.filter(taking.mayTake), source)
    })

  const once = permit.withPermit(Effect.suspend(() => {
    last = table.now().monotonic
    // A sweep without room must not delay the next one, which may find room at once
    if (table.free() > 0) lastWithRoom = last
    metrics.update(StreamMetrics.stream.sweeps, 1)
    return Effect.andThen(adoptHandOvers, sweepOnce("sweep"))
  }))

  return {
    own: permit.withPermit(sweepOnce("start")),
    isRequested: () => requested && table.now().monotonic - lastWithRoom >= minDistanceMillis,
    request: () => {
      requested = true
    },
    once,
    wake: () => woken.openUnsafe(),
    loop: Effect.forever(Effect.gen(function*() {
      const factor = yield* Random.nextBetween(0.8, 1.2)
      yield* sleepUntil(table.now().monotonic + Duration.toMillis(config.sweepInterval) * factor, woken)
      woken.closeUnsafe()
      yield* Effect.sleep(Math.max(0, last + minDistanceMillis - table.now().monotonic))
      // Pauses no longer than between sweeps, so that orphans do not wait after an outage
      yield* persist("Sweeping", once, config.sweepInterval)
    }))
  }
}
