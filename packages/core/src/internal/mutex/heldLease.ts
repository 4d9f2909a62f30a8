/**
 * One lease of a mutex: its data, its states, and the work that it protects. `heldLeases` renews and ends it, and
 * `leaseHandle` is what users see of it.
 */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FencingToken } from "../../FencingToken.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { GuardRequest, Released, ReleaseRequest } from "../../MutexStore.ts"
import type { LossReason } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { OwnedLease } from "../lease/ownedLease.ts"
import type { LeaseSettings } from "./leaseOptions.ts"
import { spareTokens } from "./tokenStride.ts"

/** What else a release does, for the fibers that wait for the same mutex. */
export interface Parting {
  readonly requeue?: ReleaseRequest["requeue"]
  /** Called once with the outcome of `requeue`: the reply to the first attempt, or undefined. */
  readonly settled?: ((released: Released | undefined) => void) | undefined
}

export class HeldLease extends OwnedLease<LeaseSettings> implements GuardRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly token: FencingToken
  /** `ending`: its scope is closing, and the release is not sent yet. Still renewed, but protects no more work. */
  state: "held" | "ending" | "lost" | "released" = "held"
  /** The result of `isAlive` applies to one renewal. */
  probe: "unasked" | "asking" | "alive" = "unasked"
  /** The last result of `isAlive` was not `true`. */
  dead = false
  /** When a message last reported that the lease was taken by force. The reply to the next renewal decides. */
  forcedAt: number | undefined
  /** The remaining tokens of its grant, for the next holders in this process. */
  private spare: number
  /** Granted by a message for a period other than its lease, mostly a confirm period. No reply has extended it yet. */
  isUnconfirmed = false

  constructor(
    mutex: MutexName,
    id: LeaseId,
    token: FencingToken,
    options: LeaseSettings,
    sent: Instant
  ) {
    super(options, sent)
    this.mutex = mutex
    this.id = id
    this.token = token
    this.spare = spareTokens(token)
  }

  /** The length of the lease, which renewals send. */
  get lease(): Duration.Duration {
    return this.options.lease
  }

  protected get resource() {
    return { kind: "mutex", resource: this.mutex, id: this.id } as const
  }

  get annotations() {
    return { mutex: this.mutex, lease: this.id, token: this.token }
  }

  /**
   * A message granted it for `period` milliseconds, of which `usable` can be used. If that is not a whole lease,
   * `localQueue` confirms the grant before work starts.
   */
  grantedFor(period: number, usable: number): void {
    this.isUnconfirmed = period !== this.options.leaseMillis
    this.shorten(usable, this.isUnconfirmed ? usable * 0.75 : Infinity)
  }

  override extend(sent: Instant): void {
    super.extend(sent)
    this.isUnconfirmed = false
    // A renewal that was sent before the report may have been executed before the lease was taken by force
    if (this.forcedAt !== undefined && this.forcedAt > sent.monotonic) this.nextRenewal = -Infinity
    else this.forcedAt = undefined
  }

  override expiry() {
    return this.dead ? "Expired" : this.isUnconfirmed ? "BackendGone" : super.expiry()
  }

  /** Whether the next holder in this process can take it over unchanged: it is sound, and not due for renewal. */
  isFresh(now: Instant): boolean {
    const { margin, renewAfter } = this.options
    return this.spare > 0 && !this.isUnconfirmed && !this.renewing && !this.isFailing && !this.dead &&
      this.forcedAt === undefined && this.probe === "unasked" &&
      now.monotonic < this.renewed.monotonic + renewAfter && this.left(now) > margin
  }

  fits({ lease, ttl }: LeaseSettings): boolean {
    return Duration.equals(ttl, this.options.ttl) && Duration.equals(lease, this.options.lease)
  }

  /** Takes over the server's lease of `previous`: ends no later, and is renewed no later. */
  inherit(previous: HeldLease): void {
    this.spare = previous.spare - 1
    this.extend(previous.adjustedRenewal)
  }

  /** Milliseconds until the server's lease ends without another renewal. */
  serverLeft(now: Instant): number {
    const { leaseMillis } = this.options
    return Math.min(
      this.renewed.monotonic + leaseMillis - now.monotonic,
      this.renewed.wall + leaseMillis - now.wall
    )
  }

  override lose(reason: LossReason["_tag"], owner?: string): void {
    this.state = "lost"
    super.lose(reason, owner)
  }

  isOpen(): boolean {
    return this.state === "held" || this.state === "ending"
  }

  override isHeld(): boolean {
    return this.state === "held"
  }

  /**
   * Interrupts the lease's work and waits until the work has ended, before the release (L4, docs/protocol.md).
   * Undefined if there is no work. From here on no work begins, because the release is a later step.
   */
  endWork(): Effect.Effect<void> | undefined {
    if (this.state === "held") this.state = "ending"
    return this.hasWork ? this.work.end() : undefined
  }
}
