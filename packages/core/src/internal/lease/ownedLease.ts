/**
 * A lease that protects work. Adds to `TrackedLease` what mutex leases and data-stream leases have in common.
 * `leaseTable` ends it, and `leaseHandle` is the object that users see.
 */
import type { FencingToken } from "../../FencingToken.ts"
import { LeaseLost, type LossReason } from "../../SimbaError.ts"
import { type Periods, TrackedLease } from "./leaseDeadline.ts"
import { Listeners } from "./observers.ts"
import { ProtectedWork } from "./protectedWork.ts"

export abstract class OwnedLease<P extends Periods = Periods> extends TrackedLease<P> {
  abstract readonly token: FencingToken
  /** Set if the lease was lost. An end requested by its owner is not a loss. */
  loss: LeaseLost | undefined = undefined
  readonly onLoss = new Listeners<LeaseLost>()
  private protectedWork: ProtectedWork | undefined

  protected abstract get resource(): Pick<LeaseLost, "kind" | "resource" | "id">

  /**
   * Whether users may rely on the lease. When the release of a mutex starts, this becomes false, although the lease
   * stays open and is renewed until its work has ended. A data stream stays held until the backend has confirmed the
   * end.
   */
  isHeld(): boolean {
    return this.isOpen()
  }

  /**
   * Whether `protect` may start work. False once the lease is ending, because new work would outlast it. For a data
   * stream, false while its work is being ended before the request that ends the lease.
   */
  get takesWork(): boolean {
    return this.isHeld()
  }

  /** The fibers that run in `protect`. */
  get work(): ProtectedWork {
    return this.protectedWork ??= new ProtectedWork()
  }

  get hasWork(): boolean {
    return this.protectedWork?.isEmpty === false
  }

  lossOf(reason: LossReason["_tag"], owner?: string): LeaseLost {
    // Callers pass `owner` for exactly those reasons that have this field
    const why = { _tag: reason, ...(owner === undefined ? this.problemOf(reason) : { owner }) } as LossReason
    return new LeaseLost({ ...this.resource, token: this.token, reason: why })
  }

  /** The error with which operations fail after the lease has ended. */
  get over(): LeaseLost {
    return this.loss ?? this.lossOf("Released")
  }

  /**
   * Interrupts the work. The caller calls `notifyLoss` later: `leaseTable` first interrupts the work of all lost
   * leases.
   */
  lose(reason: LossReason["_tag"], owner?: string): void {
    this.loss = this.lossOf(reason, owner)
    this.interruptWork()
  }

  protected interruptWork(): void {
    this.protectedWork?.interrupt()
  }

  notifyLoss(): void {
    this.onLoss.notify(this.loss!)
  }
}
