/**
 * Computes when mutex and data-stream leases end locally, by two clocks, and when to renew them. `dueLeases` orders
 * them and sleeps until the next one is due.
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
  /** Whether leases with these periods may share a renewal group. */
  readonly isGroupable: boolean
}

type Step = (now: number, renewal: Renewal) => Pull.Pull<[unknown, Duration.Duration], never, unknown>

/**
 * Leases with the same deadline and the same next renewal. Each lease begins in a group of its own. Leases that were
 * renewed by the same request then share a group: otherwise, a process with thousands of leases would spend most of
 * each renewal on updating them one by one.
 */
export class RenewalGroup implements Item {
  /** If there are several, all are open. A single one may have ended. None if they have joined another group. */
  readonly leases: Array<TrackedLease<Periods>>
  /** The list of these leases in the last request to renew no others. Undefined once a lease has joined or left. */
  sent: ReadonlyArray<TrackedLease<Periods>> | undefined
  readonly options: Periods
  /**
   * Initially `since`, then the time just before the last successful renewal was sent. If another fiber handed the
   * lease on, the previous lease's `adjustedRenewal`.
   */
  renewed: Instant
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
  /** Whether the group is due for renewal and waiting to be batched. */
  isDue = false
  renewing = false
  /** When an immediate renewal was last requested. A renewal sent before then does not count as that renewal. */
  private requestedAt = -Infinity
  /** The error from the last attempt to renew, if it failed. */
  failure: StoreError | undefined
  /** The running delay schedule. It starts with the first consecutive failure or, for a user's guard, at the grant. */
  step: Step | undefined
  /** The interval between renewals requested by a user's guard, in milliseconds, capped at `longestPace`. */
  private paceMillis: number | undefined
  /** `renewAfter`, or less if a message granted the lease for a shorter period. */
  private longestPace = 0

  constructor(lease: TrackedLease<Periods>, sent: Instant) {
    this.leases = [lease]
    this.options = lease.options
    this.renewed = sent
    this.extend(sent)
  }

  get isFailing(): boolean {
    return this.failure !== undefined
  }

  isOpen(): boolean {
    return this.leases.length > 0 && this.leases[0]!.isOpen()
  }

  /** Sets the deadline, measured from just before the request was sent, never from its reply. */
  extend(sent: Instant): void {
    const { maxHold, renewAfter, usable } = this.options
    this.renewed = sent
    this.longestPace = renewAfter
    // Read the lease only if necessary: with thousands of them, it is not in the processor's cache
    const { monotonic, wall } = maxHold < Infinity ? this.leases[0]!.since : sent
    const longest = monotonic + maxHold
    this.monotonicDeadline = Math.min(sent.monotonic + usable, longest)
    this.wallDeadline = Math.min(sent.wall + usable, wall + maxHold)
    if (this.requestedAt > sent.monotonic) this.nextRenewal = -Infinity
    // A renewal cannot extend a deadline that `maxHold` has set
    else if (this.monotonicDeadline >= longest) this.nextRenewal = Infinity
    else this.nextRenewal = sent.monotonic + Math.min(renewAfter, this.paceMillis ?? Infinity)
  }

  /** Makes a renewal due immediately. */
  renewNow(now: Instant): void {
    this.requestedAt = now.monotonic
    this.nextRenewal = -Infinity
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
  shorten(usable: number, renewAfter: number): void {
    const { monotonic, wall } = this.renewed
    this.monotonicDeadline = Math.min(this.monotonicDeadline, monotonic + usable)
    this.wallDeadline = Math.min(this.wallDeadline, wall + usable)
    this.nextRenewal = Math.min(this.nextRenewal, monotonic + renewAfter)
    this.longestPace = Math.min(this.longestPace, renewAfter)
  }

  /**
   * Milliseconds until the deadline, by the clock that reaches it first. Setting a clock back does not extend the
   * leases.
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
  get adjustedRenewal(): Instant {
    const { leases: [lease], options: { maxHold, usable }, renewed: { monotonic, wall } } = this
    const { since } = lease!
    return {
      monotonic: monotonic + this.monotonicDeadline - Math.min(monotonic + usable, since.monotonic + maxHold),
      wall: wall + this.wallDeadline - Math.min(wall + usable, since.wall + maxHold)
    }
  }

  get deadline(): number {
    return this.monotonicDeadline
  }

  /** When the leases end unless they are renewed, in monotonic milliseconds. */
  endsAt(): number {
    return this.leases[0]!.endsAt()
  }

  /** Why the deadline passed. */
  expiry(): "BackendGone" | "Expired" {
    return this.isFailing || this.renewing ? "BackendGone" : "Expired"
  }

  /** Adds the leases of a group that was extended by the same renewal, if that made both groups equal. */
  join(other: RenewalGroup): boolean {
    const { isGroupable, renewAfter } = other.options
    const isEqual = this.options.isGroupable && isGroupable && this.options.renewAfter === renewAfter &&
      this.monotonicDeadline === other.monotonicDeadline && this.nextRenewal === other.nextRenewal
    if (!isEqual) return false
    this.sent = undefined
    for (const lease of other.leases.splice(0)) {
      lease.group = this
      lease.index = this.leases.push(lease) - 1
    }
    return true
  }

  /** Moves one of several leases into a group of its own, with the same deadline. */
  separate(lease: TrackedLease<Periods>): RenewalGroup {
    this.sent = undefined
    const last = this.leases.pop()!
    last.index = lease.index
    if (last !== lease) this.leases[lease.index] = last
    const own = lease.group = new RenewalGroup(lease, this.renewed)
    lease.index = 0
    own.monotonicDeadline = this.monotonicDeadline
    own.wallDeadline = this.wallDeadline
    own.nextRenewal = this.nextRenewal
    own.requestedAt = this.requestedAt
    own.renewing = this.renewing
    own.failure = this.failure
    return own
  }
}

/** A lease in a renewal group. */
export abstract class TrackedLease<P extends Periods> {
  readonly options: P
  /**
   * When the lease began: just before the granting request was sent, when another fiber handed it on, or at the
   * earliest possible time of a grant by message.
   */
  readonly since: Instant
  group: RenewalGroup
  /** The lease's position in its group. */
  index = 0

  constructor(options: P, sent: Instant) {
    this.options = options
    this.since = sent
    this.group = new RenewalGroup(this, sent)
  }

  /** Whether the lease is being renewed: it has neither been lost nor ended. */
  abstract isOpen(): boolean
  abstract get annotations(): Record<string, unknown>

  /** Milliseconds until the deadline. */
  left(now: Instant): number {
    return this.group.left(now)
  }

  /** When the lease ends unless it is renewed, in monotonic milliseconds. */
  endsAt(): number {
    return this.group.deadline
  }

  /** Why the deadline passed. */
  expiry(): "BackendGone" | "Expired" {
    return this.group.expiry()
  }

  /** The `problem` field of a loss: the error message, if the backend refused the last renewal. */
  protected problemOf(reason: LossReason["_tag"]): { readonly problem?: string } {
    const { failure } = this.group
    return reason === "BackendGone" && failure?.isRetryable === false ? { problem: failure.message } : {}
  }
}
