/**
 * The open leases in a layer or a stream client, ordered by their next renewal or end, and the loop that renews and
 * ends them. `leaseTable` creates it, and `leaseRenewer` runs the loop. `leaseDeadline` computes when a single lease
 * ends.
 *
 * Timers in a `timerQueue` run in slices. This loop is separate because it must end all overdue leases before it
 * yields: their work may keep the process busy.
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

/** `mutex` is the label on the lease's metrics, if they have one. */
export type AnyLease = TrackedLease<Periods> & { readonly mutex?: string }

/** A smaller timer delay does not indicate a long turn of the event loop. */
const punctualMillis = 50

/**
 * The recorded length of the longest turn decays by this factor with each wake-up. The length is capped, because a
 * longer delay may mean that the process was paused.
 */
const memory = 0.9
const longestTurnMillis = 10_000

/** How long to wait before retrying an `end` that crashed. */
const retryEndMillis = 10

interface LoopHandlers {
  /** Renews due leases until the slice is full. Returns whether more are due. */
  readonly renew: (from: number, slice: Slice) => boolean
  /** Called at each wake-up with the delay in milliseconds, which is negative if the loop was woken early. */
  readonly late: (millis: number) => void
}

export class DueLeases<L extends AnyLease> {
  private readonly heap = new IndexedHeap<L>()
  /**
   * The leases due for renewal; `takeDue` has already returned the first `taken` of them. They stay in the heap until
   * they end.
   */
  private due: Array<L> = []
  private taken = 0
  private readonly changed = Latch.makeUnsafe(false)
  private readonly clock: Clock.Clock
  /** Ends leases whose deadlines have passed. */
  private readonly end: (leases: ReadonlyArray<L>, now: Instant) => void
  /** Detects whether the two clocks have diverged since all deadlines were last computed. */
  private readonly clocks: ClockComparison
  /** The longest recent turn of the event loop in milliseconds, measured by how late timers fire. */
  private turnMillis = 0
  /** When the loop wakes, in monotonic milliseconds. Undefined while the loop runs. */
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

  /**
   * Adds an open lease, or moves it after its next renewal or its end has changed. The longer the turns of the event
   * loop, the earlier it is renewed.
   */
  place(lease: L): void {
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
    // Move all leases, because they were placed for shorter turns
    if (this.turnMillis > before) { for (const lease of this.all()) if (lease.isOpen()) this.place(lease) }
  }

  /**
   * Ends all leases whose deadlines have passed before anything else runs, because their work may keep the process
   * busy. Also collects the leases that are due for renewal, which only the loop renews. Called by the loop in each
   * turn and, because timers may be late, by `leaseTable` before it relies on a lease. Terminates: a lease that returns
   * to the heap ends after `now`.
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
      // `leaseRenewer` sets `nextRenewal` when the renewal has succeeded or failed
      lease.nextRenewal = Infinity
      this.heap.place(lease, lease.endsAt())
      if (lease.isDue) continue
      lease.isDue = true
      this.due.push(lease)
    }
    try {
      if (over.length > 0) this.end(over, now)
    } finally {
      // If `end` threw, some leases are still open
      for (const lease of over) if (lease.isOpen()) this.heap.place(lease, now.monotonic + retryEndMillis)
    }
    if (this.hasDue && this.wakesAt !== undefined) this.changed.openUnsafe()
  }

  get hasDue(): boolean {
    return this.taken < this.due.length
  }

  /** Returns the next lease to renew, if one is due. */
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

  /** Each turn ends overdue leases, renews some of the due ones, and sleeps until the next lease is due. */
  readonly loop = ({ late, renew }: LoopHandlers): Effect.Effect<never> => {
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
    // A yield to the scheduler could delay the sweep until all other runnable fibers have run
    return Effect.provideService(turns, Scheduler.PreventSchedulerYield, true)
  }

  /**
   * Adjusts all leases after a suspension or a clock change, which shifts deadlines and renewals but keeps their order.
   */
  private recompute(now: Instant): void {
    for (const lease of this.all()) {
      // `left` adjusts the lease's deadlines to the clocks
      lease.left(now)
      this.place(lease)
    }
  }
}
