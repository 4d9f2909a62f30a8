/**
 * One owned data stream's state, without any fibers or timers. `streamTable` renews and ends it, `handlerRunner` runs
 * its handler, and `ownedStreamStates` defines its states.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import type { Periods } from "../../internal/lease/leaseDeadline.ts"
import { Listeners } from "../../internal/lease/observers.ts"
import { OwnedLease } from "../../internal/lease/ownedLease.ts"
import type { LossReason } from "../../SimbaError.ts"
import type * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import type { Announcement, ConsumerName, Epoch, Member, Ownership, RenewRequest } from "../StreamStore.ts"
import { after, type OwnedState, type transitions } from "./ownedStreamStates.ts"
import type { Arrival } from "./rebalancePlan.ts"

export const annotations = (
  { entry, stream, token }: { readonly stream: string; readonly entry: string; readonly token?: number }
) => token === undefined ? { stream, entry } : { stream, entry, token }

export type EndOutcome = keyof typeof StreamMetrics.stream.ends
export type Source = keyof typeof StreamMetrics.stream.acquisitions

/** A lease that was claimed or handed over, and how it was acquired. */
export type Acquisition = Ownership & Pick<OwnedStream, "info" | "failures" | "source" | "since" | "arrival">

export interface StreamPeriods extends Periods {
  /** How long a handler may go without progress. */
  readonly progressTimeout: number
}

export class OwnedStream extends OwnedLease<StreamPeriods> implements Ownership {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly consumer: ConsumerName
  readonly epoch: Epoch
  readonly token: FencingToken
  readonly info: Announcement["info"]
  readonly source: Source
  failures: number
  private state: OwnedState = "owned"
  /** Whether the stream was revoked before its lease ended or was lost. */
  private wasRevoked = false
  readonly onRevoked = new Listeners<void>()
  /** Notified when the lease ends or is lost. */
  readonly onEnd = new Listeners<void>()
  /** How the lease ended, unless it was lost. */
  outcome: EndOutcome | undefined
  /**
   * The number of requests in flight that end the lease. Their replies decide the outcome, not the reply to a renewal.
   */
  endings = 0
  /**
   * The last request to end the lease that failed without a reply, and the time of its failure. The lease may have
   * ended anyway.
   */
  attempted: { readonly how: EndOutcome; readonly at: number } | undefined
  /** Set when `done` is called outside the handler. The handler is stopped first. */
  isMarkedDone = false
  /** The member for which the stream was revoked. */
  receiver: Member | undefined
  /** Whether the handler was notified of the revocation. */
  hasHeard = false
  /**
   * Whether the handler's present run was notified of a revocation that has been withdrawn. If that run yields, the
   * handler runs again on this client.
   */
  isKept = false
  /** Whether another member handed the stream over to this one. */
  arrival: Arrival | undefined
  /** True from the delivery of the data stream until the handler ends. */
  hasHandler = false
  /** The handler's fiber, once it has started. */
  handler: Fiber.Fiber<unknown, unknown> | undefined
  /** How many requests to end the lease are in flight or waiting for protected work. */
  private workEndings = 0
  /** When the handler last made progress, in monotonic milliseconds. Undefined while no progress timeout applies. */
  progressedAt: number | undefined
  /** How many readers are waiting for messages. Waiting does not count as a lack of progress. */
  waiting = 0
  /** How many messages are being processed while the loop may be waiting for others. */
  inHand = 0
  /** How many message handlers are pausing between two attempts. Pausing does not count as a lack of progress. */
  pausing = 0
  /**
   * Whether the handler has read messages through the lease. If not, it is unknown whether it is processing a message.
   */
  hasRead = false
  /** Whether the handler reported progress that the backend has not confirmed yet. */
  hasProgressed = false
  /**
   * The value of `isBusy` that the backend has confirmed. Undefined while a renewal that reports a change has no reply.
   */
  private sentBusy: boolean | undefined = true

  constructor(acquisition: Acquisition, periods: StreamPeriods) {
    super(periods, acquisition.since)
    this.stream = acquisition.stream
    this.entry = acquisition.entry
    this.consumer = acquisition.consumer
    this.epoch = acquisition.epoch
    this.token = acquisition.token
    this.info = acquisition.info
    this.failures = acquisition.failures
    this.source = acquisition.source
    this.arrival = acquisition.arrival
  }

  get annotations() {
    return annotations(this)
  }

  protected get resource() {
    return { kind: "stream", resource: this.stream, id: this.entry } as const
  }

  override get takesWork(): boolean {
    return this.isOpen() && this.workEndings === 0
  }

  /** Runs `end`, a request to end the lease, after protected work has ended (L4 in docs/protocol.md). */
  afterWork<A, E>(end: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.uninterruptibleMask((restore) => {
      this.workEndings++
      const ending = this.hasWork ? Effect.andThen(this.work.end({ spared: true }), end) : end
      return Effect.ensuring(restore(ending), Effect.sync(() => this.workEndings--))
    })
  }

  /** When the handler counts as stalled, in monotonic milliseconds. */
  stallsAt(): number {
    return this.progressedAt === undefined || !this.isBusy || this.pausing >= Math.max(1, this.inHand)
      ? Infinity
      : this.progressedAt + this.options.progressTimeout
  }

  /** Whether the handler may be processing a message. */
  get isBusy(): boolean {
    return this.waiting === 0 || this.inHand > 0
  }

  /** The request to renew the lease. It includes changes that the backend has not confirmed yet. */
  renewal(): RenewRequest {
    const { consumer, entry, epoch, hasProgressed, isBusy, stream, token } = this
    if (isBusy === this.sentBusy) return { stream, entry, consumer, epoch, token, hasProgressed }
    this.sentBusy = undefined
    return { stream, entry, consumer, epoch, token, hasProgressed, isBusy }
  }

  /** Called when the backend has confirmed this renewal. */
  renewedBy({ hasProgressed, isBusy }: RenewRequest): void {
    if (isBusy !== undefined) this.sentBusy = isBusy
    if (hasProgressed === true) {
      this.hasProgressed = false
      this.failures = 0
    }
  }

  get isEnding(): boolean {
    return this.endings > 0 || this.mayHaveEnded !== undefined
  }

  /** How `attempted` may have ended the lease. Undefined if a renewal that was sent later has succeeded. */
  get mayHaveEnded(): EndOutcome | undefined {
    return this.attempted !== undefined && this.attempted.at >= this.group.renewed.monotonic
      ? this.attempted.how
      : undefined
  }

  override endsAt(): number {
    return Math.min(super.endsAt(), this.stallsAt())
  }

  isOpen(): boolean {
    return this.state !== "ended" && this.state !== "lost"
  }

  /** Whether the data stream is revoked, or was when its lease ended. */
  get isRevoked(): boolean {
    return this.state === "revoked" || this.state === "stopped" || this.wasRevoked
  }

  /** Whether the handler was stopped: after the grace period, or by `done` or `release`. */
  get isStopped(): boolean {
    return this.state === "stopped"
  }

  /** Makes the transition if the state allows it. Returns whether it was allowed. */
  private move(transition: keyof typeof transitions): boolean {
    const next = after(this.state, transition)
    if (next === undefined) return false
    this.wasRevoked = (next === "ended" || next === "lost") && this.isRevoked
    this.state = next
    return true
  }

  override lose(reason: LossReason["_tag"]): void {
    this.move("lose")
    super.lose(reason)
  }

  /**
   * Interrupts the handler before the protected work: a handler that waits for the work must not continue when the work
   * ends.
   */
  protected override interruptWork(): void {
    this.handler?.interruptUnsafe()
    super.interruptWork()
  }

  override notifyLoss(): void {
    super.notifyLoss()
    this.onEnd.notify()
  }

  /** Ends the lease normally, at its owner's request. */
  end(how: EndOutcome): void {
    this.move("end")
    this.outcome = how
    this.onEnd.notify()
  }

  /** Waits until the lease has ended or is lost. */
  get ended(): Effect.Effect<void> {
    return this.onEnd.next(() => this.isOpen() ? undefined : Effect.void)
  }

  /** Waits for a revocation. */
  get revoked(): Effect.Effect<void> {
    return this.onRevoked.next(() => this.isRevoked ? Effect.void : undefined)
  }

  /** Revokes the data stream in order to hand it over to `receiver`. */
  recall(receiver: Member): void {
    this.receiver = receiver
    this.revoke()
  }

  /**
   * Withdraws the revocation, unless the handler has already been interrupted. In that case any consumer may take the
   * data stream.
   */
  keep(): void {
    this.receiver = undefined
    if (!this.move("keep")) return
    this.isKept = this.hasHeard
    this.hasHeard = false
  }

  revoke(): void {
    if (this.move("revoke")) this.onRevoked.notify()
  }

  /** Revokes the data stream and interrupts its handler. */
  stop(): void {
    this.revoke()
    if (this.move("stop")) this.handler?.interruptUnsafe()
  }
}
