/**
 * Finds orphans (announced data streams without an owner) without relying on events: it lists the entries that have
 * been idle for at least the duration of a lease. `consumption` runs it, and `leaseTaker` claims the entries.
 *
 * After an entry is delivered to a Go consumer (a process that runs redis-stream-client-go), it has no lease until that
 * consumer locks it. `goEntries` decides when such an entry may be taken.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Random from "effect/Random"
import * as Semaphore from "effect/Semaphore"
import { sleepUntil } from "../../internal/lease/backgroundLoop.ts"
import { persist } from "../../internal/lease/storeRetries.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { GoEntries, secondCheck } from "./goEntries.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"

export interface OrphanSweep {
  /**
   * Takes the entries that an earlier process with this name left pending. Other consumers must first wait for the
   * duration of a lease.
   */
  readonly own: Effect.Effect<void, StoreError>
  /**
   * Milliseconds until the next sweep if orphans may be waiting for free capacity, otherwise infinity. A sweep begins at
   * least `minDistanceMillis` after the last one with free capacity. `announcementReader` sweeps before it reads new
   * announcements, because orphans have waited longer.
   */
  readonly dueIn: () => number
  /** Called by `announcementReader` and `orphanSignals` when they find more data streams than fit into the capacity. */
  readonly request: () => void
  /** Adopts the data streams that were handed over to this member, then sweeps once. */
  readonly once: Effect.Effect<void, StoreError>
  /** Makes `loop` sweep now. Called by `orphanSignals` when it may have missed signals or has too many. */
  readonly wake: () => void
  readonly loop: Effect.Effect<never, StoreError>
}

type Source = "start" | "sweep"

/**
 * Minimum time between the starts of two sweeps. Otherwise handlers that end quickly could cause one sweep after
 * another.
 */
const minDistanceMillis = 50

/**
 * `adoptHandOvers` confirms the data streams that other members handed over to this member, and starts their handlers.
 */
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
  /** When a sweep last began with free capacity, in monotonic milliseconds. */
  let lastWithRoom = -Infinity

  /** Takes the candidates batch by batch. Returns false if capacity runs out. */
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

  /** Runs one sweep. When the consumer starts (source `start`), reads only this consumer's entries. */
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
            // A Go consumer may still be working on the entry, and does not refresh the idle time
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
    // A sweep without free capacity takes nothing, so it must not delay a requested sweep when capacity becomes free
    if (table.free() > 0) lastWithRoom = last
    metrics.update(StreamMetrics.stream.sweeps, 1)
    return Effect.andThen(adoptHandOvers, sweepOnce("sweep"))
  }))

  return {
    own: permit.withPermit(sweepOnce("start")),
    dueIn: () => requested ? lastWithRoom + minDistanceMillis - table.now().monotonic : Infinity,
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
      // Retry at least as often as sweeping, or orphans would wait too long after an outage
      yield* persist("Sweeping", once, config.sweepInterval)
    }))
  }
}
