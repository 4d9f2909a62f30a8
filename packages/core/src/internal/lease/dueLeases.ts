/**
 * The open leases of one layer, ordered by their next renewal or end, and the loop that renews and ends them. Used by
 * `leaseRenewer`. `leaseDeadline` computes when a single lease ends.
 *
 * It is not a `timerQueue`, whose callbacks run in slices: this loop ends all overdue leases before it yields, because
 * their work may keep the process busy.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Scheduler from "effect/Scheduler"
import { sleepUntil } from "./backgroundLoop.ts"
import { IndexedHeap } from "./indexedHeap.ts"
import { ClockComparison, comparePeriodMillis, type Instant, instant } from "./instant.ts"
import type { Periods, TrackedLease } from "./leaseDeadline.ts"
import { Slice } from "./workSlices.ts"

/** A lease of a mutex may label its metrics with it. */
export type AnyLease = TrackedLease<Periods> & { readonly mutex?: string }

/** Timers that are late by less do not indicate long turns. */
const punctualMillis = 50

/** The decay of the longest turn with each wake-up. A turn longer than `longestTurnMillis` is a pause. */
const memory = 0.9
const longestTurnMillis = 10_000

/** The pause before the leases of a crashed `end` are ended again. */
const retryEndMillis = 10

interface Attendant {
  /** Renews some of the leases that are due. Returns whether more are due. */
  readonly renew: (from: number, slice: Slice) => boolean
  /** Called when the loop woke late. */
  readonly late: (millis: number) => void
}

export class DueLeases<L extends AnyLease> {
  private readonly heap = new IndexedHeap<L>()
  /** Due for renewal; the first `taken` are in progress. They stay in the heap until they end. */
  private due: Array<L> = []
  private taken = 0
  private readonly changed = Latch.makeUnsafe(false)
  private readonly clock: Clock.Clock
  /** Ends leases whose deadlines have passed. */
  private readonly end: (leases: ReadonlyArray<L>, now: Instant) => void
  /** Compares the clocks since all deadlines were last computed. */
  private readonly clocks: ClockComparison
  /** The longest recent turn of the event loop in milliseconds, as measured by late timers. */
  private turnMillis = 0
  /** When the loop wakes, in monotonic milliseconds; undefined while it runs. */
  private wakesAt: number | undefined

  constructor(clock: Clock.Clock, end: (leases: ReadonlyArray<L>, now: Instant) => void) {
    this.clock = clock
    this.end = end
    this.clocks = new ClockComparison(instant(clock))
  }

  now(): Instant {
    return instant(this.clock)
  }

  slice(previous?: Slice): Slice {
    return new Slice(this.clock, previous)
  }

  get first(): L | undefined {
    return this.heap.first
  }

  all(): Array<L> {
    return this.heap.all()
  }

  /** Adds an open lease, or moves it when its next renewal or its end has changed. */
  place(lease: L): void {
    // It would never be removed
    if (!lease.isOpen()) throw new Error("a lease that has ended cannot be renewed")
    const key = Math.min(lease.nextRenewal - lease.lead(this.turnMillis), lease.endsAt())
    this.heap.place(lease, key)
    if (this.wakesAt !== undefined && key < this.wakesAt) this.changed.openUnsafe()
  }

  remove(lease: L): void {
    this.heap.remove(lease)
  }

  private noteTurn(late: number): void {
    const before = this.turnMillis
    const turn = Math.max(Math.min(late, longestTurnMillis), before * memory)
    this.turnMillis = turn < punctualMillis ? 0 : turn
    // Earlier leases were placed with a shorter turn
    if (this.turnMillis > before) { for (const lease of this.all()) if (lease.isOpen()) this.place(lease) }
  }

  /**
   * Ends all leases whose deadlines have passed, before anything else runs, because their work may keep the process
   * busy. Each round removes the first lease. A lease that returns to the heap ends after `now`, and only the loop
   * renews it.
   */
  sweep(now: Instant): void {
    const over: Array<L> = []
    for (let lease = this.heap.first; lease !== undefined && lease.key <= now.monotonic; lease = this.heap.first) {
      this.heap.remove(lease)
      if (!lease.isOpen()) continue
      if (lease.left(now) <= 0 || lease.endsAt() <= now.monotonic) {
        over.push(lease)
        continue
      }
      lease.nextRenewal = Infinity
      this.heap.place(lease, lease.endsAt())
      if (lease.isDue) continue
      lease.isDue = true
      this.due.push(lease)
    }
    try {
      if (over.length > 0) this.end(over, now)
    } finally {
      // `end` has thrown
      for (const lease of over) if (lease.isOpen()) this.heap.place(lease, now.monotonic + retryEndMillis)
    }
    if (this.hasDue && this.wakesAt !== undefined) this.changed.openUnsafe()
  }

  get hasDue(): boolean {
    return this.taken < this.due.length
  }

  /** Returns a lease to renew, if one is due. */
  takeDue(): L | undefined {
    while (this.hasDue) {
      const lease = this.due[this.taken++]!
      lease.isDue = false
      if (lease.isOpen() && !lease.renewing) return lease
    }
    this.due = []
    this.taken = 0
    return undefined
  }

  /** Each turn ends overdue leases and renews some of those that are due, then sleeps until the next is due. */
  readonly loop = ({ late, renew }: Attendant): Effect.Effect<never> => {
    let previous: Slice | undefined
    const turns = Effect.forever(
      Effect.suspend(() => {
        this.changed.closeUnsafe()
        const now = this.now()
        const wokenLate = this.wakesAt === undefined ? undefined : now.monotonic - this.wakesAt
        this.wakesAt = undefined
        if (wokenLate !== undefined) {
          late(wokenLate)
          this.noteTurn(wokenLate)
        }
        if (this.clocks.shift(now) !== 0) this.recompute(now)
        this.sweep(now)
        const slice = previous = this.slice(previous)
        if (renew(now.monotonic, slice)) return Effect.yieldNow
        previous = undefined
        const { first } = this.heap
        this.wakesAt = first === undefined ? Infinity : Math.min(first.key, now.monotonic + comparePeriodMillis)
        return sleepUntil(this.wakesAt, this.changed)
      }),
      { disableYield: true }
    )
    // Any other yield would come before the sweep, behind all fibers that can run
    return Effect.provideService(turns, Scheduler.PreventSchedulerYield, true)
  }

  /** A suspension, or a clock that was set, shifts all deadlines and renewals, but not their order. */
  private recompute(now: Instant): void {
    for (const lease of this.all()) {
      // Adjusts its deadlines to the clocks
      lease.left(now)
      this.place(lease)
    }
  }
}
