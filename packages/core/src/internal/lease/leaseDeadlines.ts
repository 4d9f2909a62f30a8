/** The leases of one layer, ordered by when each is to be renewed or ends. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Scheduler from "effect/Scheduler"
import { IndexedHeap } from "./indexedHeap.ts"
import { comparePeriod, drift, type Instant, instant } from "./instant.ts"
import { Slice } from "./slices.ts"
import { sleepUntil } from "./supervise.ts"
import type { Periods, TrackedLease } from "./trackedLease.ts"

/** A lease of a mutex may label its figures with it. */
export type AnyLease = TrackedLease<Periods> & { readonly mutex?: string }

/** Timers that are less late say nothing of the turns. Milliseconds. */
const punctual = 50

/** What a turn of the past counts for after each wake-up. A longer one is a pause. Milliseconds. */
const memory = 0.9
const longestTurn = 10_000

/** When leases are ended again after a crash. Milliseconds. */
const retryEnd = 10

interface Attendant {
  /** Renews some of the leases that are due. Returns whether more are due. */
  readonly renew: (from: number, slice: Slice) => boolean
  /** The loop woke so many milliseconds late. */
  readonly late: (millis: number) => void
}

export class LeaseDeadlines<L extends AnyLease> {
  private readonly heap = new IndexedHeap<L>()
  /** Due for renewal, of which so many were taken. The heap has them until they end. */
  private due: Array<L> = []
  private taken = 0
  private readonly changed = Latch.makeUnsafe(false)
  private readonly clock: Clock.Clock
  /** Ends leases whose deadlines have passed. */
  private readonly end: (leases: ReadonlyArray<L>, now: Instant) => void
  /** The wall clock less the monotonic clock, when all deadlines were last computed. */
  private offset: number
  /** The longest turns of the last time, as far as timers came late. Milliseconds. */
  private turn = 0
  /** When the loop wakes, in monotonic milliseconds; undefined while it runs. */
  private wakesAt: number | undefined

  constructor(clock: Clock.Clock, end: (leases: ReadonlyArray<L>, now: Instant) => void) {
    this.clock = clock
    this.end = end
    const { monotonic, wall } = instant(clock)
    this.offset = wall - monotonic
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

  /** Adds an open lease, or moves it after its next renewal or its end has changed. */
  place(lease: L): void {
    // Nothing would remove it again
    if (!lease.isOpen()) throw new Error("a lease that has ended cannot be renewed")
    const key = Math.min(lease.nextRenewal - lease.lead(this.turn), lease.endsAt())
    this.heap.place(lease, key)
    if (this.wakesAt !== undefined && key < this.wakesAt) this.changed.openUnsafe()
  }

  remove(lease: L): void {
    this.heap.remove(lease)
  }

  private noteTurn(late: number): void {
    const before = this.turn
    const turn = Math.max(Math.min(late, longestTurn), before * memory)
    this.turn = turn < punctual ? 0 : turn
    // Leases that were placed before wait for their renewal
    if (this.turn > before) { for (const lease of this.all()) if (lease.isOpen()) this.place(lease) }
  }

  /**
   * Ends all leases whose deadlines have passed, before anything else runs: their work may be what keeps the process busy.
   * Each round removes the first lease. What returns to the heap ends after `now`, and is renewed by nobody but the loop.
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
      for (const lease of over) if (lease.isOpen()) this.heap.place(lease, now.monotonic + retryEnd)
    }
    if (this.hasDue && this.wakesAt !== undefined) this.changed.openUnsafe()
  }

  get hasDue(): boolean {
    return this.taken < this.due.length
  }

  /** A lease to renew, if one is due. */
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

  /** Each turn sweeps, and renews a part of what is due. It sleeps when nothing is due before a later instant. */
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
        this.compareClocks(now)
        this.sweep(now)
        const slice = previous = this.slice(previous)
        if (renew(now.monotonic, slice)) return Effect.yieldNow
        previous = undefined
        const { first } = this.heap
        this.wakesAt = first === undefined ? Infinity : Math.min(first.key, now.monotonic + comparePeriod)
        return sleepUntil(this.wakesAt, this.changed)
      }),
      { disableYield: true }
    )
    // Any other yield would come before the sweep, behind all fibers that can run
    return Effect.provideService(turns, Scheduler.PreventSchedulerYield, true)
  }

  /** A suspension, or a clock that was set, moves deadlines and renewals without moving their order. */
  private compareClocks({ monotonic, wall }: Instant): void {
    const offset = wall - monotonic
    if (Math.abs(offset - this.offset) <= drift) return
    this.offset = offset
    for (const lease of this.all()) {
      lease.left({ monotonic, wall })
      this.place(lease)
    }
  }
}
