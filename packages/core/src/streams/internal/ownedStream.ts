/**
 * One owned data stream: plain data, without a fiber or timer of its own. `streamTable` renews and ends it,
 * `handlerRunner` runs its handler, and `ownedStreamStates` has its states.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import type { Instant } from "../../internal/lease/instant.ts"
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

/** A lease that was taken or handed over, and how. */
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
  /** Whether an ended or lost stream was revoked before. */
  private wasRevoked = false
  readonly onRevoked = new Listeners<void>()
  /** Notified when the lease ends or is lost. */
  readonly onEnd = new Listeners<void>()
  /** How the lease ended, unless it was lost. */
  outcome: EndOutcome | undefined
  /** The number of requests in flight that end the lease. Their replies decide, not a renewal's. */
  endings = 0
  /** A request to end the lease failed at `at`, without a reply: the lease may have ended as its owner asked. */
  attempted: { readonly how: EndOutcome; readonly at: number } | undefined
  /** Its user has called `done` outside the handler, which is stopped first. */
  isMarkedDone = false
  /** The member for which it was revoked. */
  receiver: Member | undefined
  /** Whether its handler was notified of the revocation. */
  hasHeard = false
  /**
   * Its handler was notified of a revocation, and another stream was handed over instead: if it yields, it runs again
   * here.
   */
  isKept = false
  /** Set if it was handed over. */
  arrival: Arrival | undefined
  /** True from the delivery of the data stream to the end of the handler. */
  hasHandler = false
  /** The fiber of its handler, once started. */
  handler: Fiber.Fiber<unknown, unknown> | undefined
  /** The number of ends in flight, or waiting for protected work. */
  private workEndings = 0
  /** The last progress of the handler, in monotonic milliseconds. Undefined while it has no progress timeout. */
  progressedAt: number | undefined
  /** How many readers wait for messages, which is not a lack of progress. */
  waiting = 0
  /** How many messages are being processed while the loop waits for others. */
  inHand = 0
  /** Whether the handler read messages through the lease. If not, it is unknown when it is processing one. */
  hasRead = false
  /** Whether the handler reported progress that the backend does not know yet. */
  hasProgressed = false
  /** The `isBusy` that the backend knows. Undefined while it is uncertain, from the renewal that reports it on. */
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

  /** Runs an end of the lease after its protected work has ended (L4, docs/protocol.md). */
  afterWork<A, E>(end: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.uninterruptibleMask((restore) => {
      this.workEndings++
      const ending = this.hasWork ? Effect.andThen(this.work.end({ spared: true }), end) : end
      return Effect.ensuring(restore(ending), Effect.sync(() => this.workEndings--))
    })
  }

  /** The monotonic instant at which its handler counts as stalled. */
  stallsAt(): number {
    return this.progressedAt === undefined || !this.isBusy
      ? Infinity
      : this.progressedAt + this.options.progressTimeout
  }

  /** Whether its handler may have a message in hand. */
  get isBusy(): boolean {
    return this.waiting === 0 || this.inHand > 0
  }

  /** The request to renew the lease, with what the backend does not know yet. */
  renewal(): RenewRequest {
    const { consumer, entry, epoch, hasProgressed, isBusy, stream, token } = this
    if (isBusy === this.sentBusy) return { stream, entry, consumer, epoch, token, hasProgressed }
    this.sentBusy = undefined
    return { stream, entry, consumer, epoch, token, hasProgressed, isBusy }
  }

  /** The backend has received what this request reported. */
  renewedBy({ hasProgressed, isBusy }: RenewRequest): void {
    if (isBusy !== undefined) this.sentBusy = isBusy
    if (hasProgressed === true) {
      this.hasProgressed = false
      this.failures = 0
    }
  }

  get isEnding(): boolean {
    return this.endings > 0 || this.attempted !== undefined
  }

  override extend(sent: Instant): void {
    super.extend(sent)
    // Renewed after the request without a reply, so that request did not end it
    if (this.attempted !== undefined && this.attempted.at < sent.monotonic) this.attempted = undefined
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

  /** Whether the handler was stopped: after the grace period, by an operator, or by `done` or `release`. */
  get isStopped(): boolean {
    return this.state === "stopped"
  }

  /** Returns whether the transition took place. */
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

  /** Interrupts the handler first: it must not continue after protected work that it waits for has ended. */
  protected override interruptWork(): void {
    this.handler?.interruptUnsafe()
    super.interruptWork()
  }

  override notifyLoss(): void {
    super.notifyLoss()
    this.onEnd.notify()
  }

  /** Ends the lease as its owner asked. */
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

  /** Revokes the data stream, to hand it over to this member. */
  recall(receiver: Member): void {
    this.receiver = receiver
    this.revoke()
  }

  /**
   * Withdraws the revocation. A handler that was interrupted cannot continue: any consumer may take its data stream.
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

  /** Revokes the data stream, and interrupts its handler. */
  stop(): void {
    this.revoke()
    if (this.move("stop")) this.handler?.interruptUnsafe()
  }
}
