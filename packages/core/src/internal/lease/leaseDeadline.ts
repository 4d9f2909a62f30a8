/**
 * Computes when a mutex or data-stream lease ends locally, by two clocks, and when to renew it. `dueLeases` orders the
 * leases and sleeps until the next one is due.
 */
import type * as Duration from "effect/Duration"
import type * as Pull from "effect/Pull"
import type { Renewal } from "../../MutexSchedule.ts"
import type { LossReason, StoreError } from "../../SimbaError.ts"
import type { Item } from "./indexedHeap.ts"
import type { Instant } from "./instant.ts"

/** The periods of a lease in milliseconds, derived from its options. */
export interface Periods {
  /** The duration of the server's lease minus the safety margin. */
  readonly usable: number
  readonly margin: number
  readonly renewAfter: number
  /** How early a renewal may be sent together with one that is due. */
  readonly early: number
  /** Maximum time from `since` to the end, regardless of renewals. */
  readonly maxHold: number
}

type Step = (now: number, renewal: Renewal) => Pull.Pull<[unknown, Duration.Duration], never, unknown>

export abstract class TrackedLease<P extends Periods> implements Item {
  readonly options: P
  /**
   * When the lease began: just before the granting request was sent, when another fiber handed it on, or at the
   * earliest possible time of a grant by message.
   */
  readonly since: Instant
  /**
   * Initially `since`, then the time just before the last successful renewal was sent. If another fiber handed the
   * lease on, the previous lease's `adjustedRenewal`.
   */
  protected renewed: Instant
  private monotonicDeadline = 0
  private wallDeadline = 0
  /**
   * When to renew, in monotonic milliseconds. Infinity while a renewal is in flight, and from the moment `maxHold` caps
   * the deadline. Negative infinity means immediately.
   */
  nextRenewal = 0
  key = 0
  position = -1
  before: Item | undefined
  behind: Item | undefined
  /** Whether the lease is due for renewal and waiting to be batched. */
  isDue = false
  renewing = false
  /** The error from the last attempt to renew, if it failed. */
  failure: StoreError | undefined
  /** The running delay schedule. It starts with the first consecutive failure or, for a user's guard, at the grant. */
  step: Step | undefined
  /** The interval between renewals requested by a user's guard, in milliseconds, capped at `longestPace`. */
  private paceMillis: number | undefined
  /** `renewAfter`, or less if a message granted the lease for a shorter period. */
  private longestPace = 0

  constructor(options: P, sent: Instant) {
    this.options = options
    this.since = this.renewed = sent
    this.extend(sent)
  }

  get isFailing(): boolean {
    return this.failure !== undefined
  }

  /** Whether the lease is being renewed: it has neither been lost nor ended. */
  abstract isOpen(): boolean
  abstract get annotations(): Record<string, unknown>

  /** Sets the deadline, measured from just before the request was sent, never from its reply. */
  extend(sent: Instant): void {
    const { maxHold, renewAfter, usable } = this.options
    this.renewed = sent
    this.longestPace = renewAfter
    // Read `since` only if necessary: with thousands of leases, it is not in the processor's cache
    const { monotonic, wall } = maxHold < Infinity ? this.since : sent
    const longest = monotonic + maxHold
    this.monotonicDeadline = Math.min(sent.monotonic + usable, longest)
    this.wallDeadline = Math.min(sent.wall + usable, wall + maxHold)
    // A renewal cannot extend a deadline that `maxHold` has set
    this.nextRenewal = this.monotonicDeadline >= longest
      ? Infinity
      : sent.monotonic + Math.min(renewAfter, this.paceMillis ?? Infinity)
  }

  /** Schedules the next renewal `paceMillis` after the last one, but no later than `longestPace`. */
  paceAt(paceMillis: number): void {
    this.paceMillis = paceMillis
    if (!Number.isFinite(this.nextRenewal)) return
    this.nextRenewal = Math.ceil(this.renewed.monotonic + Math.min(this.longestPace, paceMillis))
  }

  /**
   * How much earlier to renew if turns of the event loop take `turn` milliseconds: one turn may pass before the request
   * is sent, and another before its reply is read.
   */
  lead(turn: number): number {
    return this.isFailing ? 0 : Math.max(0, Math.min(2 * turn, (this.nextRenewal - this.renewed.monotonic) / 2))
  }

  /**
   * Makes the lease end no later than `usable` milliseconds after `renewed`, and be renewed no later than `renewAfter`
   * milliseconds after `renewed`.
   */
  protected shorten(usable: number, renewAfter: number): void {
    const { monotonic, wall } = this.renewed
    this.monotonicDeadline = Math.min(this.monotonicDeadline, monotonic + usable)
    this.wallDeadline = Math.min(this.wallDeadline, wall + usable)
    this.nextRenewal = Math.min(this.nextRenewal, monotonic + renewAfter)
    this.longestPace = Math.min(this.longestPace, renewAfter)
  }

  /**
   * Milliseconds until the deadline, by the clock that reaches it first. Setting a clock back does not extend the
   * lease.
   */
  left(now: Instant): number {
    const monotonic = this.monotonicDeadline - now.monotonic
    const wall = this.wallDeadline - now.wall
    if (wall > monotonic) this.wallDeadline = now.wall + monotonic
    // More than a rounding error: a suspension or a clock change
    else if (wall < monotonic - 1) {
      this.monotonicDeadline = now.monotonic + wall
      this.nextRenewal -= monotonic - wall
    }
    return Math.min(monotonic, wall)
  }

  /** `renewed`, minus the time by which suspensions and clock changes have shortened the lease. */
  protected get adjustedRenewal(): Instant {
    const { renewed: { monotonic, wall }, since, options: { maxHold, usable } } = this
    return {
      monotonic: monotonic + this.monotonicDeadline - Math.min(monotonic + usable, since.monotonic + maxHold),
      wall: wall + this.wallDeadline - Math.min(wall + usable, since.wall + maxHold)
    }
  }

  /** When the lease ends unless it is renewed, in monotonic milliseconds. */
  endsAt(): number {
    return this.monotonicDeadline
  }

  /** The `problem` field of a loss: the error message, if the backend refused the last renewal. */
  protected problemOf(reason: LossReason["_tag"]): { readonly problem?: string } {
    const { failure } = this
    return reason === "BackendGone" && failure?.isRetryable === false ? { problem: failure.message } : {}
  }

  /** Why the deadline passed. */
  expiry(): "BackendGone" | "Expired" {
    return this.isFailing || this.renewing ? "BackendGone" : "Expired"
  }
}
