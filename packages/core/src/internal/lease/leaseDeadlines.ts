/** The leases of one layer, ordered by when each is to be renewed or ends. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { IndexedHeap } from "./indexedHeap.ts"
import { type Instant, instant } from "./instant.ts"
import { Slice } from "./slices.ts"
import { sleepUntil } from "./supervise.ts"
import type { Periods, TrackedLease } from "./trackedLease.ts"

/** A lease of a mutex may label its figures with it. */
export type AnyLease = TrackedLease<Periods> & { readonly mutex?: string }

/** A suspended machine stops monotonic timers, so the clocks are compared this often. Milliseconds. */
const watch = 1000

/** The least time until a lease that was attended is attended again. Milliseconds. */
const tick = 1

/** How far the clocks may drift apart before all deadlines are looked at: little of the smallest margin. Milliseconds. */
const drift = 10

export class LeaseDeadlines<L extends AnyLease> {
  private readonly heap = new IndexedHeap<L>()
  private readonly changed = Latch.makeUnsafe(false)
  private readonly clock: Clock.Clock
  /** Loses the lease if it has come to its end by now. */
  readonly expire: (lease: L, now: Instant) => void
  /** The wall clock less the monotonic clock, when all deadlines were last looked at. */
  private offset: number
  private next = Infinity

  constructor(clock: Clock.Clock, expire: (lease: L, now: Instant) => void) {
    this.clock = clock
    this.expire = expire
    const { monotonic, wall } = instant(clock)
    this.offset = wall - monotonic
  }

  now(): Instant {
    return instant(this.clock)
  }

  slice(): Slice {
    return new Slice(this.clock)
  }

  get first(): L | undefined {
    return this.heap.first
  }

  all(): Array<L> {
    return this.heap.all()
  }

  /** Adds an open lease, or moves it after its next renewal or its end has changed. */
  place(lease: L): void {
    this.placeAt(lease, Math.min(lease.nextRenewal, lease.endsAt()))
  }

  private placeAt(lease: L, key: number): void {
    // Nothing would remove it again
    if (!lease.isOpen()) throw new Error("a lease that has ended cannot be renewed")
    this.heap.place(lease, key)
    if (key < this.next) this.changed.openUnsafe()
  }

  remove(lease: L): void {
    this.heap.remove(lease)
  }

  /** Puts the first lease behind `from`, or removes it if it has ended: the loop over the first lease makes progress. */
  postpone(lease: L, from: number): void {
    if (!lease.isOpen()) return this.remove(lease)
    this.placeAt(lease, Math.max(Math.min(lease.nextRenewal, lease.endsAt()), from + tick))
  }

  /** Runs `attend` when the first lease is due, again and again as long as it answers that there is more. */
  readonly loop = (attend: (from: number) => boolean): Effect.Effect<never> => {
    // Thousands of leases must not keep other fibers waiting
    const attendAll = (from: number): Effect.Effect<void> =>
      attend(from) ? Effect.flatMap(Effect.yieldNow, () => attendAll(from)) : Effect.void
    return Effect.forever(Effect.suspend(() => {
      this.changed.closeUnsafe()
      const now = this.now()
      this.compareClocks(now)
      const { first } = this
      const isDue = first !== undefined && first.key <= now.monotonic
      this.next = first === undefined ? Infinity : isDue ? -Infinity : Math.min(first.key, now.monotonic + watch)
      return isDue ? attendAll(now.monotonic) : sleepUntil(this.next, this.changed)
    }))
  }

  /** A suspension, or a clock that was set, moves deadlines without moving their order. */
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
