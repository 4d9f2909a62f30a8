/** News that a data stream is free: leases that ran out, and hints of the fleet. They only make sweeps unnecessary. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { persist } from "../../internal/lease/storeFailure.ts"
import { sleepUntil } from "../../internal/lease/supervise.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { Subscription } from "../../Subscriber.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import { compareEntryIds, type EntryId, type StreamName } from "../StreamName.ts"
import type { ClientContext, Deliver } from "./context.ts"
import { batchSize, type Candidate, type LeaseTaker } from "./leaseTaker.ts"
import * as fleetOf from "./members.ts"
import type { Sweep } from "./orphanSweep.ts"
import { before } from "./previousEntryId.ts"

export interface Listener {
  /** A lease ran out: tells somebody who claims by himself. Otherwise it is taken. */
  readonly onExpired: ((stream: StreamName, entry: EntryId) => Effect.Effect<void>) | undefined
  /** Something was handed to this member. */
  readonly onGiven: Effect.Effect<void, StoreError>
}

/** Between two members that try the same one. Milliseconds. */
const stagger = 30

/** More at once than this, and a sweep is cheaper. */
const most = 10_000

export const make = (
  client: ClientContext,
  taking: LeaseTaker,
  sweep: Sweep,
  fleet: fleetOf.Fleet,
  deliver: Deliver,
  listener: Listener
): Effect.Effect<never, StoreError> => {
  const { config, meter, session, store, table } = client
  const due = new Map<EntryId, { readonly at: number; readonly source: "expiry" | "hint" }>()
  const changed = Latch.makeUnsafe(false)

  const hear = (entry: EntryId, stream: StreamName, source: "expiry" | "hint") =>
    Effect.gen(function*() {
      if (due.has(entry) || !taking.isWorthwhile({ entry, stream })) return
      if (due.size >= most) return sweep.nudge()
      const rank = fleetOf.rank(fleet, session, entry)
      const delay = rank === undefined ? yield* Random.nextBetween(0, 4 * stagger) : rank * stagger
      due.set(entry, { at: table.now().monotonic + Math.min(delay, Duration.toMillis(config.sweepInterval)), source })
      changed.openUnsafe()
    })

  /** The oldest first: what is pending and nobody renews, of those that were heard of. */
  const look = (entries: ReadonlyArray<EntryId>, source: "expiry" | "hint") =>
    Effect.gen(function*() {
      const wanted = new Set(entries)
      const last = entries[entries.length - 1]!
      let after = before(entries[0]!) as EntryId | undefined
      while (true) {
        const page = yield* store.pending({
          minIdle: config.leaseDuration,
          after,
          count: wanted.size === 1 ? 1 : batchSize
        })
        const found: Array<Candidate> = []
        for (const { content } of page.entries) {
          if (content._tag === "Announced" && wanted.delete(content.entry) && taking.isWorthwhile(content)) {
            found.push({ ...content, minIdle: config.leaseDuration })
          }
        }
        const { length } = yield* taking.take(found, source, deliver)
        meter.update(StreamMetrics.heard.used, length)
        if (length < found.length) {
          meter.update(StreamMetrics.heard.dropped, found.length - length)
          sweep.want()
        }
        after = page.next
        if (wanted.size === 0 || after === undefined || compareEntryIds(after, last) >= 0) return
      }
    })

  const attempts = Effect.forever(persist(
    "Looking for what became free",
    Effect.gen(function*() {
      changed.closeUnsafe()
      const now = table.now().monotonic
      let next = Infinity
      const ready: Record<"expiry" | "hint", Array<EntryId>> = { expiry: [], hint: [] }
      for (const [entry, { at, source }] of due) {
        if (at > now) next = Math.min(next, at)
        else {
          due.delete(entry)
          ready[source].push(entry)
        }
      }
      if (ready.expiry.length + ready.hint.length === 0) return yield* sleepUntil(next, changed)
      for (const source of ["hint", "expiry"] as const) {
        const entries = ready[source]
        if (entries.length === 0) continue
        if (table.free() === 0) {
          meter.update(StreamMetrics.heard.dropped, entries.length)
          sweep.want()
        } else yield* look(entries.sort(compareEntryIds), source)
      }
    })
  ))

  const gap = Effect.sync(() => {
    meter.update(StreamMetrics.heard.gap, 1)
    sweep.nudge()
  })

  const next = <A>(hints: Subscription<A>): Effect.Effect<A | { readonly _tag: "Gap" }> =>
    hints.bound === undefined ? hints.next : Effect.map(
      Effect.timeoutOption(hints.next, hints.bound),
      Option.getOrElse(() => ({ _tag: "Gap" as const }))
    )

  const hints = Effect.scoped(Effect.gen(function*() {
    const hints = yield* store.signals
    // Whatever was said before is missed
    yield* gap
    return yield* Effect.forever(Effect.flatMap(next(hints), (hint) =>
      hint._tag === "Released"
        ? hear(hint.entry, hint.stream, "hint")
        : hint._tag === "Gap"
        ? Effect.andThen(gap, listener.onGiven)
        : hint.session === session
        ? listener.onGiven
        : Effect.void))
  }))

  const expiries = Effect.scoped(Effect.gen(function*() {
    const expiries = yield* store.expiries
    if (Option.isNone(expiries)) {
      yield* Effect.logInfo("The backend publishes no expiries: orphaned data streams are found by sweeps")
      return yield* Effect.never
    }
    return yield* Effect.forever(Effect.flatMap(next(expiries.value), (expiry) =>
      expiry._tag === "Gap"
        ? gap
        : listener.onExpired === undefined
        ? hear(expiry.entry, expiry.stream, "expiry")
        : Effect.suspend(() =>
          table.free() > 0 && taking.isWorthwhile(expiry)
            ? listener.onExpired!(expiry.stream, expiry.entry)
            : Effect.void
        )))
  }))

  const listen = (what: string, loop: Effect.Effect<never, StoreError>) =>
    // Sweeps do without it, so not even a final refusal ends anything
    Effect.catch(persist(what, loop), (error) =>
      Effect.andThen(Effect.logWarning(`${what} is not possible: ${error.message}`), Effect.never))

  return Effect.raceAllFirst([
    listen("Listening to hints", hints),
    listen("Listening to expired leases", expiries),
    attempts
  ])
}
