/**
 * The data streams that one client owns, and its free capacity. Renews the leases until they end or are lost.
 * `leaseTaker` adds leases, and `dueLeases` orders their deadlines.
 */
import * as Arr from "effect/Array"
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type { Instant } from "../../internal/lease/instant.ts"
import * as leaseRenewer from "../../internal/lease/leaseRenewer.ts"
import { LeaseTable } from "../../internal/lease/leaseTable.ts"
import type { Recorder } from "../../internal/lease/metricsRecorder.ts"
import { retrySchedule } from "../../internal/lease/storeRetries.ts"
import * as timerQueue from "../../internal/lease/timerQueue.ts"
import type { Slice, SlicedTasks } from "../../internal/lease/workSlices.ts"
import * as log from "../../internal/log.ts"
import { margin as marginOf } from "../../internal/optionChecks.ts"
import type { LeaseLost } from "../../SimbaError.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId, StreamName } from "../StreamName.ts"
import type { RenewResult, Service } from "../StreamStore.ts"
import type { StreamConfig } from "./config.ts"
import { annotations, type OwnedStream, type StreamPeriods } from "./ownedStream.ts"

type Lost = keyof typeof StreamMetrics.stream.losses

/** Maximum number of data streams named in a log message about losses. */
const namesLogged = 5

const periodsOf = ({ heartbeatInterval, leaseDuration, progressTimeout }: StreamConfig): StreamPeriods => {
  const margin = Duration.toMillis(marginOf(leaseDuration))
  const heartbeat = Duration.toMillis(heartbeatInterval)
  return {
    usable: Duration.toMillis(leaseDuration) - margin,
    margin,
    renewAfter: heartbeat,
    early: heartbeat / 2,
    maxHold: Infinity,
    // Each handler may stall at a different time
    isGroupable: false,
    progressTimeout: progressTimeout === undefined ? Infinity : Duration.toMillis(progressTimeout)
  }
}

export class StreamTable extends LeaseTable<OwnedStream, Lost> {
  private readonly entries = new Map<EntryId, OwnedStream>()
  private readonly streams = new Map<StreamName, OwnedStream>()
  private readonly config: StreamConfig
  private readonly metrics: Recorder
  readonly periods: StreamPeriods
  private reserved = 0
  /** Set when the client closes. Data streams taken after that are released. */
  isClosed = false
  /** Data streams that are no longer owned, but whose handlers are still running and use up capacity. */
  private readonly lingering = new Set<StreamName>()
  /** Losses that have not been logged yet. */
  private readonly losses: Array<LeaseLost> = []
  /** Open while there is free capacity. */
  readonly room = Latch.makeUnsafe(true)
  /** Called for every loss, after the handler was interrupted. */
  onLost: (owned: OwnedStream, reason: Lost) => void = () => {}

  constructor(clock: Clock.Clock, tasks: SlicedTasks, config: StreamConfig, metrics: Recorder) {
    super(clock, tasks)
    this.config = config
    this.metrics = metrics
    this.periods = periodsOf(config)
  }

  /** Renews the leases while the scope is open. */
  readonly renewing = Effect.fnUntraced({ self: this }, function*(this: StreamTable, store: Service) {
    const { config, deadlines, metrics } = this
    const fibers = yield* FiberSet.make()
    const fork = yield* FiberSet.runtime(fibers)()
    yield* leaseRenewer.start<OwnedStream, RenewResult>({
      deadlines,
      recorder: metrics,
      timers: yield* timerQueue.make,
      operation: "renew",
      span: "simba.streams.renew",
      what: "data stream",
      timeout: config.commandTimeout,
      batchSize: 200,
      schedule: retrySchedule("50 millis", Duration.divideUnsafe(config.heartbeatInterval, 8)),
      metrics: { ...StreamMetrics.stream.renewals, timeLeft: StreamMetrics.stream.timeLeftAtRenewal },
      send: (batch, done) => {
        const requests = batch.map((owned) => owned.renewal())
        const renewing = Effect.map(store.renew(requests, config.leaseDuration), (results) => {
          results.forEach(({ _tag }, i) => _tag === "Renewed" ? batch[i]!.renewedBy(requests[i]!) : undefined)
          return results
        })
        const fiber = fork(renewing)
        fiber.addObserver(done)
        return () => fiber.interruptUnsafe()
      },
      attributes: () => ({}),
      // An in-flight request to end the lease may have been processed before the renewal: wait for its reply
      lost: (owned, { reason }) => {
        if (!owned.isEnding) this.lose(owned, reason)
      }
    }, fibers)
  })

  get size(): number {
    return this.entries.size
  }

  /** The data streams that are currently owned. Marks a stream as lost if its deadline has passed. */
  owned(): ReadonlyArray<OwnedStream> {
    const now = this.now()
    return [...this.entries.values()].filter((owned) => this.isHeld(owned, now))
  }

  /** All data streams, in the order in which they were taken. */
  all(): IterableIterator<OwnedStream> {
    return this.entries.values()
  }

  has(entry: EntryId): boolean {
    return this.entries.has(entry)
  }

  get(stream: StreamName): OwnedStream | undefined {
    return this.streams.get(stream)
  }

  /** Whether this client owns the data stream, or is still running a handler from an earlier lease. */
  isInUse(stream: StreamName): boolean {
    return this.streams.has(stream) || this.lingering.has(stream)
  }

  slice(previous?: Slice): Slice {
    return this.deadlines.slice(previous)
  }

  free(): number {
    return Math.max(0, this.config.capacity - this.entries.size - this.lingering.size - this.reserved)
  }

  /** Reserves capacity for up to `wanted` data streams, and returns how many fit. Claims by name ignore capacity. */
  reserve(wanted: number, isClaimed: boolean): number {
    const kept = isClaimed ? wanted : Math.min(wanted, this.free())
    this.reserved += kept
    this.roomChanged()
    return kept
  }

  unreserve(kept: number): void {
    this.reserved -= kept
    this.roomChanged()
  }

  private roomChanged(): void {
    if (this.free() > 0) this.room.openUnsafe()
    else this.room.closeUnsafe()
  }

  /**
   * Adds a lease and returns true. Returns false and refuses the lease if its deadline has passed, the client is
   * closed, or an earlier lease of the data stream is ending or still has a running handler. The caller releases a
   * refused lease.
   */
  add(owned: OwnedStream): boolean {
    const former = this.streams.get(owned.stream)
    // The backend has granted a newer lease, so this one is lost, unless a request to end it is still without a reply
    if (former !== undefined && !former.isEnding) this.lose(former, "TakenOver")
    if (this.isClosed || this.isInUse(owned.stream) || owned.left(this.now()) <= 0) return false
    this.entries.set(owned.entry, owned)
    this.streams.set(owned.stream, owned)
    this.roomChanged()
    this.metrics.modify(StreamMetrics.stream.owned, 1)
    this.metrics.update(StreamMetrics.stream.acquisitions[owned.source], 1)
    this.deadlines.place(owned.group)
    return true
  }

  /** Starts watching the handler's progress. */
  watch(owned: OwnedStream): void {
    if (owned.isOpen() && owned.progressedAt !== undefined) this.deadlines.place(owned.group)
  }

  /** Removes this lease, but not a newer lease of the same data stream. Returns whether it was in the table. */
  protected override remove(owned: OwnedStream): boolean {
    if (this.entries.get(owned.entry) !== owned) return false
    this.entries.delete(owned.entry)
    super.remove(owned)
    if (this.streams.get(owned.stream) === owned) this.streams.delete(owned.stream)
    // Mark the stream as lingering before interrupting the handler, because the handler may end immediately
    if (owned.hasHandler) this.lingering.add(owned.stream)
    this.metrics.modify(StreamMetrics.stream.owned, -1)
    this.metrics.update(StreamMetrics.stream.holdTime, this.now().monotonic - owned.since.monotonic)
    return true
  }

  /** Ends the lease normally, at its owner's request. */
  end(owned: OwnedStream, how: keyof typeof StreamMetrics.stream.ends): void {
    if (!this.remove(owned)) return
    owned.end(how)
    this.metrics.update(StreamMetrics.stream.ends[how], 1)
    this.roomChanged()
  }

  protected overdue(owned: OwnedStream, now: Instant): Lost {
    return owned.left(now) <= 0 ? owned.expiry() : "Stalled"
  }

  protected reportLoss(owned: OwnedStream, reason: Lost): void {
    this.roomChanged()
    this.metrics.update(StreamMetrics.stream.losses[reason], 1)
    this.losses.push(owned.over)
    if (this.losses.length === 1) this.metrics.run(this.logLosses)
    this.onLost(owned, reason)
  }

  /** Logs one message for each reason, because under overload thousands of data streams may be lost within moments. */
  private readonly logLosses = Effect.gen({ self: this }, function*() {
    // Wait for more losses: data streams renewed in different batches have different deadlines
    yield* Effect.sleep("500 millis")
    const byReason = Arr.groupBy(this.losses.splice(0), ({ reason }) => reason._tag)
    for (const [reason, [loss, ...others]] of Object.entries(byReason)) {
      if (others.length === 0) {
        yield* Effect.annotateLogs(
          log.warning(loss.message),
          annotations({ stream: loss.resource, entry: loss.id, token: loss.token })
        )
        continue
      }
      const names = [loss, ...others.slice(0, namesLogged - 1)].map(({ resource }) => `"${resource}"`).join(", ")
      const more = others.length < namesLogged ? "" : ", ..."
      yield* log.warning(`${others.length + 1} data streams are lost (${reason}): ${names}${more}`)
    }
  })

  /** Called when the handler starts, with its fiber. */
  workBegan(owned: OwnedStream, work: NonNullable<OwnedStream["handler"]>): void {
    owned.handler = work
    // The lease may have ended, or the handler may have been stopped, before the fiber was known
    if (!owned.isOpen() || owned.isStopped) work.interruptUnsafe()
  }

  workEnded(owned: OwnedStream): void {
    owned.handler = undefined
    owned.hasHandler = false
    this.lingering.delete(owned.stream)
    this.roomChanged()
  }

  /** Fails with `LeaseLost` unless the data stream is currently owned. */
  ensure(owned: OwnedStream): Effect.Effect<void, LeaseLost> {
    return Effect.suspend(() => this.isHeld(owned) ? Effect.void : Effect.fail(owned.over))
  }
}
