/** One owned data stream as the table keeps it: plain data, no fiber and no timer of its own. */
import * as Duration from "effect/Duration"
import type * as Fiber from "effect/Fiber"
import type { FencingToken } from "../../FencingToken.ts"
import { Deadline, type Instant } from "../../internal/lease/deadline.ts"
import { margin } from "../../internal/optionChecks.ts"
import { type StreamLossReason, StreamLost } from "../StreamError.ts"
import type * as StreamMetrics from "../StreamMetrics.ts"
import type { ConsumerName, EntryId, Epoch, StreamName } from "../StreamName.ts"
import type { Announcement, Held, Member } from "../StreamStore.ts"
import type { Arrival } from "./rebalancePlan.ts"

export const annotations = ({ entry, stream, token }: Pick<Held, "entry" | "stream" | "token">) => ({
  stream,
  entry,
  token
})

type EndOutcome = keyof typeof StreamMetrics.ends
type Source = keyof typeof StreamMetrics.acquisitions

export class OwnedStream extends Deadline implements Held {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly consumer: ConsumerName
  readonly epoch: Epoch
  readonly token: FencingToken
  readonly info: Announcement["info"]
  readonly source: Source
  /** Just before the taking request was sent. */
  readonly since: Instant
  /** What is left of the lease after the safety margin, in milliseconds. */
  private readonly usable: number
  failures: number
  /** Monotonic milliseconds. */
  nextRenewal = 0
  renewing = false
  failing = false
  state: "held" | "lost" | "released" = "held"
  loss: StreamLost | undefined
  /** How it ended in order. */
  outcome: EndOutcome | undefined
  /** What ends it was sent, and may have been done: the answer decides, not a renewal. */
  ending = false
  isAskedBack = false
  /** The grace is over, or it is being closed: the handler was interrupted, and nothing is tried again. */
  isStopped = false
  /** Somebody else than its handler says that it is done: its handler is stopped, and then it is. */
  isFinished = false
  /** Who gets it, where it was asked back for somebody. */
  heir: Member | undefined
  /** Set where it came by a hand-over. */
  arrival: Arrival | undefined
  /** The fiber of its handler. */
  work: Fiber.Fiber<unknown, unknown> | undefined
  /** When the handler last got on, in monotonic milliseconds; undefined while nobody watches. */
  progressed: number | undefined
  /** How many readers wait for messages: no lack of progress. */
  waiting = 0
  private lossListeners: Set<(loss: StreamLost) => void> | undefined
  private askListeners: Set<() => void> | undefined
  private endListeners: Set<() => void> | undefined

  constructor(
    fields: Held & {
      readonly info: Announcement["info"]
      readonly failures: number
      readonly source: Source
      readonly lease: Duration.Duration
      readonly heartbeat: number
      readonly sent: Instant
    }
  ) {
    super()
    this.stream = fields.stream
    this.entry = fields.entry
    this.consumer = fields.consumer
    this.epoch = fields.epoch
    this.token = fields.token
    this.info = fields.info
    this.failures = fields.failures
    this.source = fields.source
    this.since = fields.sent
    this.usable = Duration.toMillis(fields.lease) - Duration.toMillis(margin(fields.lease))
    this.extend(fields.sent)
    this.nextRenewal = fields.sent.monotonic + fields.heartbeat
  }

  /** Counts from the instant before the taking or renewing command was sent, never from its reply. */
  extend(sent: Instant): void {
    this.endAt(sent.monotonic + this.usable, sent.wall + this.usable)
  }

  isOpen(): boolean {
    return this.state === "held"
  }

  /** Ends it as lost: tells all who listen, and interrupts the handler. */
  lose(reason: StreamLossReason): StreamLost {
    const loss = this.loss = this.lossOf(reason)
    this.state = "lost"
    this.work?.interruptUnsafe()
    const listeners = this.lossListeners
    this.lossListeners = undefined
    this.askListeners = undefined
    listeners?.forEach((listener) => listener(loss))
    this.ended()
    return loss
  }

  /** Ends it in order. */
  finish(how: EndOutcome): void {
    this.state = "released"
    this.outcome = how
    this.lossListeners = undefined
    this.askListeners = undefined
    this.ended()
  }

  private ended(): void {
    const listeners = this.endListeners
    this.endListeners = undefined
    listeners?.forEach((listener) => listener())
  }

  /** What somebody is told who uses it after its end. */
  lossOf(reason: StreamLossReason): StreamLost {
    return new StreamLost({ stream: this.stream, entry: this.entry, token: this.token, reason })
  }

  askBack(): void {
    if (this.isAskedBack) return
    this.isAskedBack = true
    const listeners = this.askListeners
    this.askListeners = undefined
    listeners?.forEach((listener) => listener())
  }

  /** After the grace. */
  stop(): void {
    this.askBack()
    this.isStopped = true
    this.work?.interruptUnsafe()
  }

  onLoss(listener: (loss: StreamLost) => void): () => void {
    const listeners = this.lossListeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  /** However it ends. */
  onEnd(listener: () => void): () => void {
    const listeners = this.endListeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  onAsked(listener: () => void): () => void {
    const listeners = this.askListeners ??= new Set()
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
}
