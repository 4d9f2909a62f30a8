/** One owned data stream: plain data, no fiber and no timer of its own. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import type { Instant } from "../../internal/lease/instant.ts"
import { Listeners } from "../../internal/lease/observers.ts"
import { type Periods, TrackedLease } from "../../internal/lease/trackedLease.ts"
import { LeaseLost, type LossReason } from "../../SimbaError.ts"
import type * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import type { Announcement, ConsumerName, Epoch, Member, Ownership, RenewRequest } from "../StreamStore.ts"
import { after, type OwnedState, type transitions } from "./ownedState.ts"
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

export class OwnedStream extends TrackedLease<StreamPeriods> implements Ownership {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly consumer: ConsumerName
  readonly epoch: Epoch
  readonly token: FencingToken
  readonly info: Announcement["info"]
  readonly source: Source
  failures: number
  private state: OwnedState = "owned"
  /** It was asked back before its end. */
  private wasRevoked = false
  loss: LeaseLost | undefined
  readonly onLoss = new Listeners<LeaseLost>()
  readonly onRevoked = new Listeners<void>()
  /** However it ends. */
  readonly onEnd = new Listeners<void>()
  /** How it ended in order. */
  outcome: EndOutcome | undefined
  /** Requests under way that end it: their replies decide, not that of a renewal. */
  endings = 0
  /** A request that ends it was sent at `at` and got no reply: it may have ended by its owner's own act. */
  attempted: { readonly how: EndOutcome; readonly at: number } | undefined
  /** Its user marks it as done: its handler is stopped first. */
  isMarkedDone = false
  /** The member that it was asked back for. */
  receiver: Member | undefined
  /** Whether its handler knows that it is revoked. */
  hasHeard = false
  /** Its handler was asked back, and another one left instead: when it yields, it runs again here. */
  isKept = false
  /** Of one that came by a hand-over. */
  arrival: Arrival | undefined
  /** From its delivery to the end of the handler. */
  hasHandler = false
  /** The fiber of its handler, once that has begun. */
  handler: Fiber.Fiber<unknown, unknown> | undefined
  /** What runs in `protect`. */
  readonly works = new Set<Fiber.Fiber<unknown, unknown>>()
  /** The last progress of the handler, in monotonic milliseconds; undefined while nobody watches. */
  progressedAt: number | undefined
  /** How many readers wait for messages: no lack of progress. */
  waiting = 0
  /** How many messages are in hand while others are waited for. */
  inHand = 0
  /** Whether anybody read messages by the lease. Without that, nobody knows when its handler has one in hand. */
  hasRead = false
  /** Whether the handler reported progress that the backend does not know. */
  hasProgressed = false
  /** What the backend knows of `isBusy`; undefined while a renewal that says it is under way. */
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

  /** The request of a renewal, with what the backend does not know yet. */
  renewal(): RenewRequest {
    const { consumer, entry, epoch, hasProgressed, isBusy, stream, token } = this
    if (isBusy === this.sentBusy) return { stream, entry, consumer, epoch, token, hasProgressed }
    this.sentBusy = undefined
    return { stream, entry, consumer, epoch, token, hasProgressed, isBusy }
  }

  /** The backend knows what this request said. */
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
    // Renewed after the request without a reply, so that one did not end it
    if (this.attempted !== undefined && this.attempted.at < sent.monotonic) this.attempted = undefined
  }

  override endsAt(): number {
    return Math.min(super.endsAt(), this.stallsAt())
  }

  isOpen(): boolean {
    return this.state !== "ended" && this.state !== "lost"
  }

  /** It was asked back. */
  get isRevoked(): boolean {
    return this.state === "revoked" || this.state === "stopped" || this.wasRevoked
  }

  /** The grace period is over: the handler was interrupted, and nothing is tried again. */
  get isStopped(): boolean {
    return this.state === "stopped"
  }

  /** Returns whether it happened. */
  private move(transition: keyof typeof transitions): boolean {
    const next = after(this.state, transition)
    if (next === undefined) return false
    this.wasRevoked = (next === "ended" || next === "lost") && this.isRevoked
    this.state = next
    return true
  }

  /** Interrupts the handler and protected work. `notifyLoss` follows. */
  lose(reason: LossReason["_tag"]): void {
    this.move("lose")
    this.loss = this.lossOf(reason)
    this.handler?.interruptUnsafe()
    for (const work of this.works) work.interruptUnsafe()
  }

  notifyLoss(): void {
    if (this.loss !== undefined) this.onLoss.notify(this.loss)
    this.onEnd.notify()
  }

  /** Ends it in order. */
  end(how: EndOutcome): void {
    this.move("end")
    this.outcome = how
    this.onEnd.notify()
  }

  /** The error of operations after its end. */
  get over(): LeaseLost {
    return this.loss ?? this.lossOf("Released")
  }

  /** Waits for its end. */
  get ended(): Effect.Effect<void> {
    return this.onEnd.next(() => this.isOpen() ? undefined : Effect.void)
  }

  private lossOf(reason: LossReason["_tag"]): LeaseLost {
    const { entry, stream, token } = this
    return new LeaseLost({
      kind: "stream",
      resource: stream,
      id: entry,
      token,
      reason: { _tag: reason, ...this.problemOf(reason) }
    })
  }

  /** Waits for a revocation. */
  get revoked(): Effect.Effect<void> {
    return this.onRevoked.next(() => this.isRevoked ? Effect.void : undefined)
  }

  /** Asks for it back, for this member. */
  recall(receiver: Member): void {
    this.receiver = receiver
    this.revoke()
  }

  /** Takes the recall back. A handler that was interrupted cannot go on: its data stream is for any consumer. */
  keep(): void {
    this.receiver = undefined
    if (!this.move("keep")) return
    this.isKept = this.hasHeard
    this.hasHeard = false
  }

  revoke(): void {
    if (this.move("revoke")) this.onRevoked.notify()
  }

  /** After the grace. */
  stop(): void {
    this.revoke()
    if (this.move("stop")) this.handler?.interruptUnsafe()
  }
}
