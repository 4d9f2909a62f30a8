/**
 * Takes orphaned data streams as soon as a member signals a release or a lease expires, without waiting for the next
 * sweep. Run by `consumption`. Signals are only hints: `orphanSweep` finds orphans whose signals were lost. `goEntries`
 * explains entries that belong to Go consumers (processes that run redis-stream-client-go).
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { sleepUntil } from "../../internal/lease/backgroundLoop.ts"
import { persist } from "../../internal/lease/storeRetries.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Subscription } from "../../Subscriber.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import { compareEntryIds } from "../StreamStore.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { goLease, secondCheck } from "./goEntries.ts"
import { before } from "./latestIds.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"
import * as memberOrder from "./memberOrder.ts"
import type { OrphanSweep } from "./orphanSweep.ts"

type Source = "expiry" | "signal"

export interface SignalListener {
  /**
   * Called when a lease expires, instead of taking the data stream: users of `notifications` claim data streams
   * themselves.
   */
  readonly onExpired: ((stream: StreamName, entry: EntryId) => Effect.Effect<void>) | undefined
  /** Runs when a data stream has been handed over to this member. */
  readonly onHandOver: Effect.Effect<void, StoreError>
}

/**
 * The state of an entry that this member will try to take.
 *
 * - `Signaled`: it was released, or its lease expired.
 * - `Claimed`: a Go consumer may have claimed it since then, and may never lock it.
 * - `Unlocked`: the Go consumer that claimed it has no lock on it. That consumer may be finishing the entry.
 */
type Step = "Signaled" | "Claimed" | "Unlocked"

interface Due {
  readonly at: number
  readonly source: Source
  readonly step: Step
}

/** The delay between two members' attempts to take the same data stream. */
const staggerMillis = 30

/** Above this number of due entries, a sweep is cheaper. */
const maxDue = 10_000

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  sweep: OrphanSweep,
  deliver: Deliver,
  listener: SignalListener
): Effect.Effect<never, StoreError> => {
  const { config, metrics, session, store, table } = client
  const due = new Map<EntryId, Due>()
  const changed = Latch.makeUnsafe(false)
  /**
   * When the first entry is due. Adding an entry that is due later does not wake the loop, because each wake-up scans
   * all entries.
   */
  let nextAt = Infinity

  const note = (entry: EntryId, stream: StreamName, source: Source) =>
    Effect.gen(function*() {
      const drawn = yield* Random.nextBetween(0, 4 * staggerMillis)
      if (due.has(entry) || !taking.mayTake({ entry, stream })) return
      if (due.size >= maxDue) return sweep.wake()
      const rank = memberOrder.rank(client.members, session, entry)
      const delay = rank === undefined ? drawn : rank * staggerMillis
      const at = table.now().monotonic + Math.min(delay, Duration.toMillis(config.sweepInterval))
      due.set(entry, { at, source, step: "Signaled" })
      if (at < nextAt) changed.openUnsafe()
    })

  const recheck = (entry: EntryId, step: Step, delay: Duration.Duration) => {
    if (due.has(entry)) return
    due.set(entry, { at: table.now().monotonic + Duration.toMillis(delay) + staggerMillis, source: "expiry", step })
  }

  /** Takes the entries that are pending and have been idle for `minIdle`, oldest first. Returns the remaining ones. */
  const takeDue = (entries: ReadonlyArray<EntryId>, source: Source, steps: ReadonlyMap<EntryId, Step>) =>
    Effect.gen(function*() {
      const wanted = new Set(entries)
      const last = entries[entries.length - 1]!
      const { leaseDuration } = config
      // After a Go consumer's lease has expired, no Go consumer is about to take or finish the entry
      const minIdle = source === "expiry" ? Duration.min(leaseDuration, goLease) : leaseDuration
      let after = before(entries[0]!) as EntryId | undefined
      while (true) {
        const page = yield* store.pending({
          minIdle,
          after,
          count: entries.length === 1 ? 1 : batchSize
        })
        const found: Array<Candidate> = []
        for (const { content, deliveries, goConsumer } of page.entries) {
          if (content._tag !== "Announced" || !wanted.delete(content.entry) || !taking.mayTake(content)) continue
          if (goConsumer === undefined) found.push({ ...content, minIdle: leaseDuration })
          // Leave an entry to the sweeps if a Go consumer has locked it, or has claimed it since a release signal
          else if (source === "expiry" && goConsumer.lease === undefined) {
            const step = steps.get(content.entry)
            if (step !== "Claimed") found.push({ ...content, minIdle: goLease })
            // If an entry was delivered only once, a Go consumer may be about to lock it. If the lock fails, that
            // consumer never reads again
            else if (deliveries > 1) recheck(content.entry, "Unlocked", secondCheck)
          }
        }
        const { length } = yield* taking.take(found, source, deliver)
        metrics.update(StreamMetrics.stream.signals.used, length)
        if (length < found.length) {
          metrics.update(StreamMetrics.stream.signals.dropped, found.length - length)
          sweep.request()
        }
        after = page.next
        if (wanted.size === 0 || after === undefined || compareEntryIds(after, last) >= 0) return wanted
      }
    })

  const attempts = Effect.forever(persist(
    "Taking free data streams",
    Effect.gen(function*() {
      changed.closeUnsafe()
      const now = table.now().monotonic
      nextAt = Infinity
      const ready: Record<Source, Array<EntryId>> = { expiry: [], signal: [] }
      const steps = new Map<EntryId, Step>()
      for (const [entry, { at, source, step }] of due) {
        if (at > now) nextAt = Math.min(nextAt, at)
        else {
          due.delete(entry)
          ready[source].push(entry)
          steps.set(entry, step)
        }
      }
      if (ready.expiry.length + ready.signal.length === 0) return yield* sleepUntil(nextAt, changed)
      for (const source of ["signal", "expiry"] as const) {
        const entries = ready[source]
        if (entries.length === 0) continue
        if (table.free() === 0) {
          metrics.update(StreamMetrics.stream.signals.dropped, entries.length)
          sweep.request()
        } else {
          const young = yield* takeDue(entries.sort(compareEntryIds), source, steps)
          for (const entry of source === "expiry" ? young : []) {
            // The entry was delivered less than a lease duration ago, so the event is about an earlier lease. By the
            // time of the recheck, the new owner will have locked the entry
            if (steps.get(entry) === "Signaled") recheck(entry, "Claimed", goLease)
          }
        }
      }
    }),
    config.sweepInterval
  ))

  /** Starts a sweep. It also adopts data streams that were handed over. */
  const gap = Effect.sync(() => {
    metrics.update(StreamMetrics.stream.signals.gap, 1)
    sweep.wake()
  })

  const next = <A>(hints: Subscription<A>): Effect.Effect<A | { readonly _tag: "Gap" }> =>
    hints.bound === undefined ? hints.next : Effect.map(
      Effect.timeoutOption(hints.next, hints.bound),
      Option.getOrElse(() => ({ _tag: "Gap" as const }))
    )

  const hints = Effect.scoped(Effect.gen(function*() {
    const hints = yield* store.signals
    // Signals sent before the subscription were missed
    yield* gap
    return yield* Effect.forever(Effect.flatMap(next(hints), (hint) =>
      hint._tag === "Released"
        ? note(hint.entry, hint.stream, "signal")
        : hint._tag === "Gap"
        ? gap
        : hint.session === session
        ? listener.onHandOver
        : Effect.void))
  }))

  const expiries = Effect.scoped(Effect.gen(function*() {
    const expiries = yield* store.expiries
    if (Option.isNone(expiries)) return yield* Effect.never
    return yield* Effect.forever(Effect.flatMap(next(expiries.value), (expiry) =>
      expiry._tag === "Gap"
        ? gap
        : listener.onExpired === undefined
        ? note(expiry.entry, expiry.stream, "expiry")
        : Effect.suspend(() =>
          table.free() > 0 && taking.mayTake(expiry)
            ? listener.onExpired!(expiry.stream, expiry.entry)
            : Effect.void
        )))
  }))

  const listen = (what: string, loop: Effect.Effect<never, StoreError>) =>
    // Sweeps need no signals, so even a permanent refusal is not fatal
    Effect.catch(persist(what, loop), (error) =>
      Effect.andThen(log.warning(`${what} was refused: ${error.message}`), Effect.never))

  return Effect.raceAllFirst([
    listen("Listening for hints", hints),
    listen("Listening for expired leases", expiries),
    attempts
  ])
}
