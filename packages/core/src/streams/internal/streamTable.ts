/** All data streams that this client owns, and how much room is left. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { type Instant, instant } from "../../internal/lease/deadline.ts"
import type { StreamConfig } from "../StreamConfig.ts"
import type { StreamLossReason } from "../StreamError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import type { MetricsRecorder } from "./metricsRecorder.ts"
import { annotations, type OwnedStream } from "./ownedStream.ts"

type Lost = Exclude<StreamLossReason, "Released">

export class StreamTable {
  private readonly entries = new Map<EntryId, OwnedStream>()
  private readonly streams = new Map<StreamName, OwnedStream>()
  private readonly clock: Clock.Clock
  private readonly config: StreamConfig
  private readonly meter: MetricsRecorder
  private reserved = 0
  /** Handlers that have not ended yet, of data streams that are not owned any more: they take up room. */
  private lingering = 0
  /** Open while there is room. */
  readonly room = Latch.makeUnsafe(true)
  /** Opened by what is due earlier than those who sleep think. */
  readonly renewalChanged = Latch.makeUnsafe(false)
  readonly deadlineChanged = Latch.makeUnsafe(false)
  nextRenewal = Infinity
  nextDeadline = Infinity
  /** Hears of every loss, after the handler was interrupted. */
  onLost: (owned: OwnedStream, reason: Lost) => void = () => {}

  constructor(clock: Clock.Clock, config: StreamConfig, meter: MetricsRecorder) {
    this.clock = clock
    this.config = config
    this.meter = meter
  }

  get size(): number {
    return this.entries.size
  }

  /** In the order in which they were taken. */
  all(): IterableIterator<OwnedStream> {
    return this.entries.values()
  }

  has(entry: EntryId): boolean {
    return this.entries.has(entry)
  }

  get(stream: StreamName): OwnedStream | undefined {
    return this.streams.get(stream)
  }

  now(): Instant {
    return instant(this.clock)
  }

  free(): number {
    return Math.max(0, this.config.capacity - this.entries.size - this.lingering - this.reserved)
  }

  /** Keeps room for at most `wanted`, and answers for how many. */
  reserve(wanted: number): number {
    const kept = Math.min(wanted, this.free())
    this.reserved += kept
    this.roomChanged()
    return kept
  }

  /** Room for one that was asked for by name, whether there is any or not. */
  reserveAnyway(): number {
    this.reserved++
    this.roomChanged()
    return 1
  }

  unreserve(kept: number): void {
    this.reserved -= kept
    this.roomChanged()
  }

  private roomChanged(): void {
    if (this.free() > 0) this.room.openUnsafe()
    else this.room.closeUnsafe()
  }

  add(owned: OwnedStream): void {
    this.entries.set(owned.entry, owned)
    this.streams.set(owned.stream, owned)
    this.roomChanged()
    this.meter.modify(StreamMetrics.owned, 1)
    this.meter.update(StreamMetrics.acquisitions[owned.source], 1)
    if (owned.nextRenewal < this.nextRenewal) this.renewalChanged.openUnsafe()
    if (owned.deadline() < this.nextDeadline) this.deadlineChanged.openUnsafe()
  }

  /** Identity is the holding, never the name: a later holding of the same data stream stays. */
  private drop(owned: OwnedStream): boolean {
    if (this.entries.get(owned.entry) !== owned) return false
    this.entries.delete(owned.entry)
    if (this.streams.get(owned.stream) === owned) this.streams.delete(owned.stream)
    // Before the handler is interrupted, which may end it in the same moment
    if (owned.work !== undefined) this.lingering++
    this.meter.modify(StreamMetrics.owned, -1)
    this.meter.update(StreamMetrics.holdTime, this.now().monotonic - owned.since.monotonic)
    return true
  }

  /** It ended in order. */
  end(owned: OwnedStream, how: keyof typeof StreamMetrics.ends): void {
    if (!this.drop(owned)) return
    owned.finish(how)
    this.meter.update(StreamMetrics.ends[how], 1)
    this.roomChanged()
  }

  lose(owned: OwnedStream, reason: Lost): void {
    if (!this.drop(owned)) return
    const loss = owned.lose(reason)
    this.roomChanged()
    this.meter.update(StreamMetrics.losses[reason], 1)
    this.meter.run(Effect.annotateLogs(Effect.logWarning(loss.message), annotations(owned)))
    this.onLost(owned, reason)
  }

  /** Its handler runs in this fiber, from now on. */
  workBegan(owned: OwnedStream, work: NonNullable<OwnedStream["work"]>): void {
    owned.work = work
    // It may have ended or been stopped before the fiber could be known
    if (!owned.isOpen()) {
      this.lingering++
      this.roomChanged()
    }
    if (!owned.isOpen() || owned.isStopped) work.interruptUnsafe()
  }

  workEnded(owned: OwnedStream): void {
    if (owned.work === undefined) return
    owned.work = undefined
    if (!owned.isOpen()) this.lingering--
    this.roomChanged()
  }

  /** Loses it if its deadline has passed by the clock, whatever the timers have done so far. */
  check(owned: OwnedStream, now: Instant): void {
    if (owned.isOpen() && owned.left(now) <= 0) {
      this.lose(owned, owned.failing || owned.renewing ? "BackendGone" : "Expired")
    }
  }
}
