/**
 * The open leases in a layer or a stream client, by renewal group, ordered by their next renewal or end, and the loop
 * that renews and ends them. `leaseTable` creates it, and `leaseRenewer` runs the loop. `leaseDeadline` computes when a
 * group ends.
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
import type { Periods, RenewalGroup, TrackedLease } from "./leaseDeadline.ts"
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
  private readonly heap = new IndexedHeap<RenewalGroup>()
  /**
   * The groups due for renewal; `takeDue` has already returned the first `taken` of them. They stay in the heap until
   * they end.
   */
  private due: Array<RenewalGroup> = []
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

  get first(): RenewalGroup | undefined {
    return this.heap.first
  }

  /** The leases in one of this table's groups. */
  readonly leasesOf = (group: RenewalGroup): ReadonlyArray<L> =>
    group.leases as ReadonlyArray<TrackedLease<Periods>> as ReadonlyArray<L>

  /** Returns the list from the group's last request. If a lease has joined or left since then, keeps `leases` instead. */
  sentOf(group: RenewalGroup, leases: ReadonlyArray<L>): ReadonlyArray<L> {
    return (group.sent ??= leases) as ReadonlyArray<TrackedLease<Periods>> as ReadonlyArray<L>
  }

  all(): Array<L> {
    return this.heap.all().flatMap((group) => this.leasesOf(group))
  }

  /**
   * Adds the group of an open lease, or moves it after its next renewal or its end has changed. The longer the turns of
   * the event loop, the earlier it is renewed.
   */
  place(group: RenewalGroup): void {
    if (!group.isOpen()) throw new Error("a lease that has ended cannot be renewed")
    const key = Math.min(group.nextRenewal - group.lead(this.turnMillis), group.endsAt())
    this.heap.place(group, key)
    if (this.wakesAt !== undefined && key < this.wakesAt) this.changed.openUnsafe()
  }

  /** Stops renewing the lease. */
  remove(lease: L): void {
    if (lease.group.leases.length > 1) lease.group.separate(lease)
    else this.heap.remove(lease.group)
  }

  /** Merges two groups that were extended by the same renewal, if their leases allow it. Returns whether they do. */
  join(group: RenewalGroup, other: RenewalGroup): boolean {
    if (!group.join(other)) return false
    this.heap.remove(other)
    return true
  }

  /** Moves each of the leases into a group of its own. */
  readonly separate = (group: RenewalGroup): ReadonlyArray<RenewalGroup> => {
    const groups = [group]
    while (group.leases.length > 1) {
      const own = group.separate(group.leases[0]!)
      this.heap.place(own, own.endsAt())
      groups.push(own)
    }
    return groups
  }

  private noteTurn(late: number, now: Instant): void {
    const before = this.turnMillis
    const turn = Math.max(Math.min(late, longestTurnMillis), before * memory)
    this.turnMillis = turn < punctualMillis ? 0 : turn
    // Move all groups, because they were placed for shorter turns
    if (this.turnMillis > before) this.recompute(now)
  }

  /**
   * Ends all leases whose deadlines have passed before anything else runs, because their work may keep the process
   * busy. Also collects the groups that are due for renewal, which only the loop renews. Called by the loop in each
   * turn and, because timers may be late, by `leaseTable` before it relies on a lease. Terminates: a group that returns
   * to the heap ends after `now`.
   */
  sweep(now: Instant): void {
    const over: Array<L> = []
    for (let group = this.heap.first; group !== undefined && group.key <= now.monotonic; group = this.heap.first) {
      this.heap.remove(group)
      if (!group.isOpen()) continue
      if (group.left(now) <= 0 || group.endsAt() <= now.monotonic) {
        over.push(...this.leasesOf(group))
        continue
      }
      // `leaseRenewer` sets `nextRenewal` when the renewal has succeeded or failed
      group.nextRenewal = Infinity
      this.heap.place(group, group.endsAt())
      if (group.isDue) continue
      group.isDue = true
      this.due.push(group)
    }
    try {
      if (over.length > 0) this.end(over, now)
    } finally {
      // If `end` threw, some leases are still open
      for (const lease of over) if (lease.isOpen()) this.heap.place(lease.group, now.monotonic + retryEndMillis)
    }
    if (this.hasDue && this.wakesAt !== undefined) this.changed.openUnsafe()
  }

  get hasDue(): boolean {
    return this.taken < this.due.length
  }

  /** Returns the next group to renew, if one is due and `fits`. */
  takeDue(fits: (group: RenewalGroup) => boolean): RenewalGroup | undefined {
    while (this.hasDue) {
      const group = this.due[this.taken]!
      const isWaiting = group.isOpen() && !group.renewing
      if (isWaiting && !fits(group)) return undefined
      this.taken++
      group.isDue = false
      if (isWaiting) return group
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
          this.noteTurn(wokenLate, now)
        }
        if (this.clocks.shift(now) !== 0) this.recompute(now)
        this.sweep(now)
        const slice = previous = this.slice(previous)
        if (renew(now.monotonic, slice)) return Effect.yieldNow
        // After a sleep, a slice does not grow
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
   * Adjusts all groups after a suspension or a clock change, which shifts deadlines and renewals but keeps their order.
   */
  private recompute(now: Instant): void {
    for (const group of this.heap.all()) {
      // `left` adjusts the group's deadlines to the clocks
      group.left(now)
      this.place(group)
    }
  }
}
