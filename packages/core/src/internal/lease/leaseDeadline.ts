/**
 * One lease of a mutex or a data stream: computes its local deadline, by two clocks, and its next renewal. `dueLeases`
 * orders the leases and sleeps until the next one is due.
 */
import type * as Duration from "effect/Duration"
import type * as Pull from "effect/Pull"
import type { Renewal } from "../../MutexSchedule.ts"
import type { LossReason, StoreError } from "../../SimbaError.ts"
import type { Item } from "./indexedHeap.ts"
import type { Instant } from "./instant.ts"

/** The periods of a lease in milliseconds, derived from its options. */
export interface Periods {
  /** The server's lease minus the safety margin. */
  readonly usable: number
  readonly margin: number
  readonly renewAfter: number
  /** How early a renewal may be sent together with one that is due. */
  readonly early: number
  /** The maximum time from the granting request to the end, renewed or not. */
  readonly maxHold: number
}

type Step = (now: number, renewal: Renewal) => Pull.Pull<[unknown, Duration.Duration], never, unknown>

export abstract class TrackedLease<P extends Periods> implements Item {
  readonly options: P
  /** Just before the granting request was sent. */
  readonly since: Instant
  /**
   * Just before the last granting or renewing request was sent. `adjustedRenewal` for a lease that was handed to
   * another fiber.
   */
  protected renewed: Instant
  private monotonicDeadline = 0
  private wallDeadline = 0
  /** Monotonic milliseconds; infinite while a renewal is in flight. */
  nextRenewal = 0
  key = 0
  position = -1
  before: Item | undefined = undefined
  behind: Item | undefined = undefined
  /** Due for renewal, and waiting for a batch. */
  isDue = false
  renewing = false
  /** Why the last attempt to renew it failed. */
  failure: StoreError | undefined = undefined
  /** The running schedule of delays: begun at the first of consecutive failures, or at the grant for a user's guard. */
  step: Step | undefined = undefined
  /** The time between two renewals that a user's guard asks for, in milliseconds. `renewAfter` applies if shorter. */
  private paceMillis = Infinity

  constructor(options: P, sent: Instant) {
    this.options = options
    this.since = this.renewed = sent
    this.extend(sent)
  }

  get isFailing(): boolean {
    return this.failure !== undefined
  }

  abstract isOpen(): boolean
  abstract get annotations(): Record<string, unknown>

  /** Sets the deadline. It counts from the instant before the request was sent, never from its reply. */
  extend(sent: Instant): void {
    const { maxHold, renewAfter, usable } = this.options
    this.renewed = sent
    const longest = this.since.monotonic + maxHold
    this.monotonicDeadline = Math.min(sent.monotonic + usable, longest)
    this.wallDeadline = Math.min(sent.wall + usable, this.since.wall + maxHold)
    // Renewing cannot move a deadline that `maxHold` has set
    this.nextRenewal = this.monotonicDeadline >= longest
      ? Infinity
      : sent.monotonic + Math.min(renewAfter, this.paceMillis)
  }

  /** Schedules the next renewal this long after the last one, but no later than `renewAfter`. */
  paceAt(paceMillis: number): void {
    this.paceMillis = paceMillis
    if (this.nextRenewal === Infinity) return
    this.nextRenewal = Math.ceil(this.renewed.monotonic + Math.min(this.options.renewAfter, paceMillis))
  }

  /**
   * How much earlier a renewal starts in a process with event loop turns of this many milliseconds: one turn may pass
   * before it is sent, and another before its reply is read.
   */
  lead(turn: number): number {
    return this.isFailing ? 0 : Math.max(0, Math.min(2 * turn, (this.nextRenewal - this.renewed.monotonic) / 2))
  }

  /**
   * Ends the lease `usable` milliseconds after `renewed` and renews it after `renewAfter`, if that is earlier.
   */
  protected shorten(usable: number, renewAfter: number): void {
    const { monotonic, wall } = this.renewed
    this.monotonicDeadline = Math.min(this.monotonicDeadline, monotonic + usable)
    this.wallDeadline = Math.min(this.wallDeadline, wall + usable)
    this.nextRenewal = Math.min(this.nextRenewal, monotonic + renewAfter)
  }

  /** Milliseconds until the deadline, by the clock that shows less. Setting a clock back does not extend it. */
  left(now: Instant): number {
    const monotonic = this.monotonicDeadline - now.monotonic
    const wall = this.wallDeadline - now.wall
    if (wall > monotonic) this.wallDeadline = now.wall + monotonic
    // More than a rounding error: a suspension, or a clock that was set
    else if (wall < monotonic - 1) {
      this.monotonicDeadline = now.monotonic + wall
      this.nextRenewal -= monotonic - wall
    }
    return Math.min(monotonic, wall)
  }

  /** `renewed`, earlier by what suspensions and clock changes have taken from the lease. */
  protected get adjustedRenewal(): Instant {
    const { renewed: { monotonic, wall }, since, options: { maxHold, usable } } = this
    return {
      monotonic: monotonic + this.monotonicDeadline - Math.min(monotonic + usable, since.monotonic + maxHold),
      wall: wall + this.wallDeadline - Math.min(wall + usable, since.wall + maxHold)
    }
  }

  /** The monotonic instant at which something ends the lease unless it is renewed. */
  endsAt(): number {
    return this.monotonicDeadline
  }

  /** Details of a loss besides its reason: the message, if the backend refused the last renewal. */
  protected problemOf(reason: LossReason["_tag"]): { readonly problem?: string } {
    const { failure } = this
    return reason === "BackendGone" && failure?.isRetryable === false ? { problem: failure.message } : {}
  }

  /** Why the deadline passed. */
  expiry(): "BackendGone" | "Expired" {
    return this.isFailing || this.renewing ? "BackendGone" : "Expired"
  }
}
