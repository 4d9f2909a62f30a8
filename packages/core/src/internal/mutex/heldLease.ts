/**
 * One mutex lease: its data, its state, and the work that it protects. `heldLeases` renews and ends it, and
 * `leaseHandle` is the object that users see.
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

/** What a release also does for the fibers that wait for the same mutex. */
export interface Parting {
  readonly requeue?: ReleaseRequest["requeue"]
  /** Called once, with the reply to the first attempt, or with undefined if that attempt failed. */
  readonly settled?: ((released: Released | undefined) => void) | undefined
}

export class HeldLease extends OwnedLease<LeaseSettings> implements GuardRequest {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly token: FencingToken
  /**
   * `ending`: the scope is closing, but the release has not been sent yet. The lease is still renewed, but protects no
   * new work.
   */
  state: "held" | "ending" | "lost" | "released" = "held"
  /** Whether the `isAlive` probe has returned `true` for the next renewal. */
  isProbed = false
  /** Whether the last probe did not return `true`. */
  dead = false
  /**
   * When a message last reported a forced release of the lease. The reply to the next renewal decides whether the
   * report is true.
   */
  private forced: { readonly at: number; readonly renewed: Instant } | undefined
  /** The grant's remaining tokens, for the next holders in this process. */
  private spare: number
  /** How long a grant by message lasts, in milliseconds. */
  private grantedMillis = this.options.leaseMillis

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

  /** The full duration of the lease, which each renewal requests. */
  get lease(): Duration.Duration {
    return this.options.lease
  }

  protected get resource() {
    return { kind: "mutex", resource: this.mutex, id: this.id } as const
  }

  /**
   * Whether a message granted the mutex for a period other than the full lease, usually a confirm period, and no reply
   * has extended it yet.
   */
  get isUnconfirmed(): boolean {
    return this.serverMillis !== this.options.leaseMillis
  }

  /** How long the server's lease lasts from `renewed`, in milliseconds. */
  private get serverMillis(): number {
    return this.group.renewed === this.since ? this.grantedMillis : this.options.leaseMillis
  }

  get annotations() {
    return { mutex: this.mutex, lease: this.id, token: this.token }
  }

  /**
   * Records that a message granted the lease for `period` milliseconds, of which `usable` milliseconds can be used. If
   * `period` is not a whole lease, `localQueue` confirms the grant before work starts.
   */
  grantedFor(period: number, usable: number): void {
    this.grantedMillis = period
    this.group.shorten(usable, this.isUnconfirmed ? usable * 0.75 : Infinity)
  }

  /** Records a report of a forced release. */
  suspect(now: Instant): void {
    this.forced = { at: now.monotonic, renewed: this.group.renewed }
    this.group.renewNow(now)
  }

  /** A renewal sent before the report may have been executed before the forced release, so it decides nothing. */
  get isSuspected(): boolean {
    const { forced, group: { renewed } } = this
    return forced !== undefined && (forced.renewed === renewed || forced.at > renewed.monotonic)
  }

  override expiry() {
    return this.dead ? "Expired" : this.isUnconfirmed ? "BackendGone" : super.expiry()
  }

  /**
   * Whether the next holder in this process can take over the lease without a request: the lease is healthy, not due
   * for renewal, and has a token left.
   */
  isFresh(now: Instant): boolean {
    const { margin, renewAfter } = this.options
    const { isFailing, renewed, renewing } = this.group
    return this.spare > 0 && !this.isUnconfirmed && !renewing && !isFailing && !this.dead && !this.isSuspected &&
      now.monotonic < renewed.monotonic + renewAfter && this.left(now) > margin
  }

  fits({ lease, ttl }: LeaseSettings): boolean {
    return Duration.equals(ttl, this.options.ttl) && Duration.equals(lease, this.options.lease)
  }

  /** Takes over the server's lease from `previous`. The new lease is renewed no later and ends no later. */
  inherit(previous: HeldLease): void {
    this.spare = previous.spare - 1
    this.group.extend(previous.group.adjustedRenewal)
  }

  /** Milliseconds until the server's lease ends if it is not renewed. */
  serverLeft(now: Instant): number {
    const { group: { renewed }, serverMillis } = this
    return Math.min(renewed.monotonic + serverMillis - now.monotonic, renewed.wall + serverMillis - now.wall)
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
   * Before the release, interrupts the lease's work and waits until it has ended (L4, docs/protocol.md). Returns
   * undefined if there is no work. No work may start after this call, because the release follows in a later step.
   */
  endWork(): Effect.Effect<void> | undefined {
    if (this.state === "held") this.state = "ending"
    return this.hasWork ? this.work.end() : undefined
  }
}
