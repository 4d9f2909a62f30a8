/**
 * The leases held by one layer or client. When leases are lost, their work is interrupted first, then users are
 * notified, and then the loss is reported. The subclasses in `heldLeases` and `streamTable` define the report.
 */
import type * as Clock from "effect/Clock"
import type { LossReason } from "../../SimbaError.ts"
import { DueLeases } from "./dueLeases.ts"
import type { Instant } from "./instant.ts"
import type { OwnedLease } from "./ownedLease.ts"
import type { SlicedTasks } from "./workSlices.ts"

export abstract class LeaseTable<L extends OwnedLease, Reason extends LossReason["_tag"]> {
  readonly deadlines: DueLeases<L>
  readonly tasks: SlicedTasks
  private readonly unreported = new Map<L, Reason>()

  constructor(clock: Clock.Clock, tasks: SlicedTasks) {
    this.deadlines = new DueLeases<L>(clock, (ended, now) => this.endOverdue(ended, now))
    this.tasks = tasks
  }

  /** Why an overdue lease is lost. */
  protected abstract overdue(lease: L, now: Instant): Reason

  /** Logs and counts the loss, and notifies the rest of the layer. */
  protected abstract reportLoss(lease: L, reason: Reason, now: Instant): void

  /** Stops renewing the lease before its work is interrupted. Returns whether the lease was in the table. */
  protected remove(lease: L): boolean {
    this.deadlines.remove(lease)
    return true
  }

  now(): Instant {
    return this.deadlines.now()
  }

  lose(lease: L, reason: Reason, owner?: string): void {
    const now = this.now()
    if (!this.interrupt(lease, reason, owner)) return
    lease.notifyLoss()
    this.report(lease, now)
  }

  /**
   * Interrupts the work of all leases before notifying anyone, because notifications would delay later interruptions.
   */
  loseAll(leases: ReadonlyArray<L>, reasonOf: (lease: L) => Reason): ReadonlyArray<L> {
    const lost = leases.filter((lease) => this.interrupt(lease, reasonOf(lease)))
    for (const lease of lost) lease.notifyLoss()
    return lost
  }

  protected endOverdue(ended: ReadonlyArray<L>, now: Instant): void {
    for (const lease of this.loseAll(ended, (lease) => this.overdue(lease, now))) this.report(lease, now)
  }

  private interrupt(lease: L, reason: Reason, owner?: string): boolean {
    if (!lease.isOpen() || !this.remove(lease)) return false
    this.unreported.set(lease, reason)
    lease.lose(reason, owner)
    return true
  }

  /** Reports the loss of the lease, unless it was already reported. */
  report(lease: L, now: Instant): void {
    const reason = this.unreported.get(lease)
    if (reason === undefined) return
    this.unreported.delete(lease)
    this.reportLoss(lease, reason, now)
  }

  /** Marks all overdue leases as lost, because timers may be late. Reports this lease if it is lost. */
  check(lease: L, now: Instant): void {
    this.deadlines.sweep(now)
    if (lease.isOpen() && lease.left(now) <= 0) this.lose(lease, this.overdue(lease, now))
    this.report(lease, now)
  }

  /** Whether the lease is held at `now`. */
  isHeld(lease: L, now = this.now()): boolean {
    this.check(lease, now)
    return lease.isHeld()
  }
}
