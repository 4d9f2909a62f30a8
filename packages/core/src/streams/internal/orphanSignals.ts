/** Takes orphans upon signals of the fleet and expiry events, earlier than the next sweep would. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { persist } from "../../internal/lease/storeFailure.ts"
import { sleepUntil } from "../../internal/lease/supervise.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Subscription } from "../../Subscriber.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import { compareEntryIds, EntryId, type StreamName } from "../StreamName.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"
import * as members from "./members.ts"
import type { OrphanSweep } from "./orphanSweep.ts"
import { stockLease } from "./stockEntries.ts"

type Source = "expiry" | "signal"

export interface SignalListener {
  /** Called with an expired lease instead of taking it: for readers of notifications, who claim themselves. */
  readonly onExpired: ((stream: StreamName, entry: EntryId) => Effect.Effect<void>) | undefined
  /** Called when a data stream was handed over to this member. */
  readonly onHandOver: Effect.Effect<void, StoreError>
}

interface Due {
  readonly at: number
  readonly source: Source
  /** Of an expired lease, where a stock consumer may have claimed the entry since and never locked it. */
  readonly isSecond: boolean
}

/** Between two members that try to take the same stream. Milliseconds. */
const stagger = 30

/** Beyond this a sweep is cheaper. */
const maxDue = 10_000

/** The greatest id before this one; before the first there is `0-0`, which no entry has. */
const before = (id: EntryId): EntryId => {
  const [millis, sequence] = id.split("-").map(BigInt) as [bigint, bigint]
  if (sequence > 0n) return EntryId.make(`${millis}-${sequence - 1n}`)
  return EntryId.make(millis > 0n ? `${millis - 1n}-18446744073709551615` : "0-0")
}

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

  const note = (entry: EntryId, stream: StreamName, source: Source) =>
    Effect.gen(function*() {
      const drawn = yield* Random.nextBetween(0, 4 * stagger)
      if (due.has(entry) || !taking.mayTake({ entry, stream })) return
      if (due.size >= maxDue) return sweep.wake()
      const rank = members.rank(client.members, session, entry)
      const delay = rank === undefined ? drawn : rank * stagger
      const at = table.now().monotonic + Math.min(delay, Duration.toMillis(config.sweepInterval))
      due.set(entry, { at, source, isSecond: false })
      changed.openUnsafe()
    })

  /** Takes noted entries that are pending and not renewed, the oldest first. Returns those that it did not find. */
  const look = (entries: ReadonlyArray<EntryId>, source: Source, first: ReadonlySet<EntryId>) =>
    Effect.gen(function*() {
      const wanted = new Set(entries)
      const last = entries[entries.length - 1]!
      const { leaseDuration } = config
      // Where a lease of a stock consumer expired, nobody is about to take one, or is finishing
      const minIdle = source === "expiry" ? Duration.min(leaseDuration, stockLease) : leaseDuration
      let after = before(entries[0]!) as EntryId | undefined
      while (true) {
        const page = yield* store.pending({
          minIdle,
          after,
          count: wanted.size === 1 ? 1 : batchSize
        })
        const found: Array<Candidate> = []
        for (const { content, deliveries, stock } of page.entries) {
          if (content._tag !== "Announced" || !wanted.delete(content.entry) || !taking.mayTake(content)) continue
          if (stock === undefined) found.push({ ...content, minIdle: leaseDuration })
          // A stock consumer claimed it after the signal: sweeps know how long to leave it alone
          // Given for less than its lease: the event is of an earlier one. What it read it may be about to lock, and would end
          // What it has locked since, it may unlock before it is taken, to finish it
          else if (
            source === "expiry" && stock.lease === undefined && (first.has(content.entry) || deliveries > 1)
          ) {
            found.push({ ...content, minIdle: stockLease })
          }
        }
        const { length } = yield* taking.take(found, source, deliver)
        metrics.update(StreamMetrics.signals.used, length)
        if (length < found.length) {
          metrics.update(StreamMetrics.signals.dropped, found.length - length)
          sweep.request()
        }
        after = page.next
        if (wanted.size === 0 || after === undefined || compareEntryIds(after, last) >= 0) return wanted
      }
    })

  /** Rechecks them once, when a stock consumer that claimed them must have locked them. */
  const again = (entries: ReadonlyArray<EntryId>) => {
    const at = table.now().monotonic + Duration.toMillis(stockLease) + stagger
    for (const entry of entries) if (!due.has(entry)) due.set(entry, { at, source: "expiry", isSecond: true })
  }

  const attempts = Effect.forever(persist(
    "Looking for free data streams",
    Effect.gen(function*() {
      changed.closeUnsafe()
      const now = table.now().monotonic
      let next = Infinity
      const ready: Record<Source, Array<EntryId>> = { expiry: [], signal: [] }
      const first = new Set<EntryId>()
      for (const [entry, { at, isSecond, source }] of due) {
        if (at > now) next = Math.min(next, at)
        else {
          due.delete(entry)
          ready[source].push(entry)
          if (!isSecond) first.add(entry)
        }
      }
      if (ready.expiry.length + ready.signal.length === 0) return yield* sleepUntil(next, changed)
      for (const source of ["signal", "expiry"] as const) {
        const entries = ready[source]
        if (entries.length === 0) continue
        if (table.free() === 0) {
          metrics.update(StreamMetrics.signals.dropped, entries.length)
          sweep.request()
        } else {
          const young = yield* look(entries.sort(compareEntryIds), source, first)
          if (source === "expiry") again([...young].filter((entry) => first.has(entry)))
        }
      }
    }),
    config.sweepInterval
  ))

  const gap = Effect.sync(() => {
    metrics.update(StreamMetrics.signals.gap, 1)
    sweep.wake()
  })

  const next = <A>(hints: Subscription<A>): Effect.Effect<A | { readonly _tag: "Gap" }> =>
    hints.bound === undefined ? hints.next : Effect.map(
      Effect.timeoutOption(hints.next, hints.bound),
      Option.getOrElse(() => ({ _tag: "Gap" as const }))
    )

  const hints = Effect.scoped(Effect.gen(function*() {
    const hints = yield* store.signals
    // Signals before the subscription were missed
    yield* gap
    return yield* Effect.forever(Effect.flatMap(next(hints), (hint) =>
      hint._tag === "Released"
        ? note(hint.entry, hint.stream, "signal")
        : hint._tag === "Gap"
        ? Effect.andThen(gap, listener.onHandOver)
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
    // Sweeps do without it, so not even a final refusal ends anything
    Effect.catch(persist(what, loop), (error) =>
      Effect.andThen(log.warning(`${what} is not possible: ${error.message}`), Effect.never))

  return Effect.raceAllFirst([
    listen("Listening to hints", hints),
    listen("Listening to expired leases", expiries),
    attempts
  ])
}
