/**
 * Reads a data stream's messages one by one, starting after the checkpoint. `StreamMessages` creates a reader for each
 * handler. `readPosition` decides whether messages are missing.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { instant } from "../../internal/lease/instant.ts"
import * as log from "../../internal/log.ts"
import type { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Gap, Message, ReadOptions } from "../StreamMessages.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent, RawMessage } from "../StreamState.ts"
import { compareEntryIds } from "../StreamStore.ts"
import { LatestIds } from "./latestIds.ts"
import { type LeaseError, messagesIfAny, retryOutages } from "./leaseRequests.ts"
import { type Decoder, decoderOf } from "./messageDecoder.ts"
import * as readPosition from "./readPosition.ts"
import { startOf } from "./startPosition.ts"

/**
 * Minimum time between two reads of the extent while messages arrive. The extent is also read when no message has
 * arrived for this long.
 */
const checkAfterMillis = 1000

const monotonic = Clock.clockWith((clock) => Effect.succeed(instant(clock).monotonic))

/**
 * How often the extent is read while no messages arrive. An idle reader cannot otherwise notice that the data stream
 * was deleted and recreated.
 */
const idleCheck = Duration.seconds(30)

const textOf = ({ missed, reason }: Gap): string => {
  const count = Option.getOrElse(missed, () => "Some")
  if (reason === "Deleted") return `${count} message(s) were deleted before they were read`
  return reason === "Rewritten"
    ? "The data stream was deleted and written again; reading from its beginning"
    : `The server lost ${
      Option.isSome(missed) ? `${count} message(s)` : "messages"
    } that had been read; continuing after the last remaining one`
}

const warnOfGap = (gap: Gap) =>
  Effect.annotateLogs(log.warning(textOf(gap)), { stream: gap.stream, after: gap.after, until: gap.until })

/**
 * - `Message`: a message.
 * - `Dead`: a message that could not be decoded and was dead-lettered.
 * - `Waited`: `meanwhile` ended the wait.
 * - `Rewritten`: the data stream was deleted and recreated. The reader is back at the beginning.
 * - `LostEnd`: a failover lost the newest messages. The reader is back at the last delivered message that still exists,
 *   or at the checkpoint if that message is unknown.
 *
 * After `Rewritten` and `LostEnd`, the loop calls `turnBack`.
 */
export type Delivery<A> =
  | { readonly _tag: "Message"; readonly message: Message<A> }
  | { readonly _tag: "Dead"; readonly id: EntryId; readonly offset: number | undefined }
  | { readonly _tag: "Waited" }
  | { readonly _tag: "Rewritten" }
  | { readonly _tag: "LostEnd"; readonly left: Checkpoint }

/** The size of a message in bytes, if its text is ASCII. */
export const sizeOf = ({ fields }: RawMessage): number =>
  fields.reduce((sum, [name, value]) => sum + name.length + value.length, 0)

/**
 * The position in a data stream, and the messages that were read ahead. `R`: the services that the decoder and `onGap`
 * need.
 */
export class MessageReader<A, R> {
  private readonly lease: StreamLease
  private readonly options: ReadOptions<A, R>
  private readonly decode: Decoder<A, R>
  /** Where the next read starts: after the messages that were read ahead. */
  private position: readPosition.ReadPosition | undefined
  private origin: readPosition.Origin | undefined
  private ahead: ReadonlyArray<RawMessage> = []
  private readonly latestIds = new LatestIds()
  private index = 0
  /** In monotonic milliseconds: setting back the wall clock must not delay the next check. */
  private checkedAt = -Infinity
  /** Whether messages have arrived since the last check. */
  private isUnchecked = true
  private isOver = false
  /**
   * Whether the data stream was announced again after its end. If so, reading ends when the stream is deleted, unless a
   * message arrives first.
   */
  private isReopened = false
  /** The average message size in the last read, in bytes. */
  private messageSize: number | undefined
  /**
   * Completes when no delivered message can be committed any more. Set by the loops. In `concurrentLoop`, handlers may
   * run during a read.
   */
  settled: Effect.Effect<void> = Effect.void

  constructor(
    lease: StreamLease,
    schema: Schema.Codec<A, unknown, R, unknown>,
    options: ReadOptions<A, R> = {}
  ) {
    this.lease = lease
    this.options = options
    this.decode = decoderOf(schema, options)
  }

  /**
   * Returns the next message, or undefined after the last one. Checks the lease each time, because the previous
   * message's handler may have blocked the process until the lease expired. `meanwhile` runs while the reader waits,
   * and ends the wait when it completes.
   */
  next(meanwhile: Effect.Effect<void, LeaseError> = Effect.never): Effect.Effect<
    Delivery<A> | undefined,
    LeaseError | StreamYielded,
    R
  > {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        if (this.isOver) return undefined
        yield* this.lease.ensure
        if (yield* this.lease.isRevoked) return yield* this.lease.yield
        if (this.isEmpty) {
          const turn = yield* this.refill(meanwhile)
          if (turn !== undefined) return turn
          continue
        }
        // Increment the index last: if this call is interrupted before, the next one returns the same message
        const raw = this.ahead[this.index]!
        const decoded = yield* Effect.result(this.decode(raw, this.offsetBefore(this.index + 1)))
        if (decoded._tag === "Success") {
          const message = decoded.success
          if (message.isLast && this.isUnchecked) yield* this.checkLast
          this.isOver = message.isLast
          return { _tag: "Message", message: { ...message, offset: this.offsetBefore(++this.index) } }
        }
        yield* this.reject(raw, decoded.failure)
        return { _tag: "Dead", id: raw.id, offset: this.offsetBefore(++this.index) }
      }
    })
  }

  /** Dead-letters a message that cannot be decoded, or whose key cannot be computed. */
  reject(raw: RawMessage, reason: string): Effect.Effect<void, LeaseError> {
    return log.warning(`A message cannot be decoded; moving it to the dead letters: ${reason}`).pipe(
      Effect.annotateLogs({ stream: this.lease.stream, message: raw.id }),
      Effect.andThen(retryOutages(this.lease.deadLetter(raw, reason))),
      Effect.andThen(Metric.update(StreamMetrics.stream.deadMessages.undecodable, 1))
    )
  }

  /** Returns the next message that can be decoded, or undefined after the last one. */
  get nextMessage(): Effect.Effect<Message<A> | undefined, LeaseError | StreamYielded, R> {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        const delivery = yield* this.next()
        if (delivery === undefined) return undefined
        if (delivery._tag === "Message") return delivery.message
      }
    })
  }

  /** Reads more messages and returns undefined, or returns `Waited`, `Rewritten` or `LostEnd`. */
  private refill(
    meanwhile: Effect.Effect<void, LeaseError>
  ): Effect.Effect<Delivery<never> | undefined, LeaseError | StreamYielded, R> {
    return Effect.gen({ self: this }, function*() {
      if (this.position === undefined) yield* this.begin
      if (this.isOver) return undefined
      if (this.isUnchecked && (yield* monotonic) - this.checkedAt >= checkAfterMillis) {
        const turn = yield* this.check
        if (turn !== undefined) return turn
      }
      const { after } = this.position!
      const found = yield* Effect.raceAllFirst([
        retryOutages(Effect.suspend(() => this.lease.messagesAfter(after, this.readSize))),
        Effect.andThen(this.lease.revoked, this.lease.yield),
        Effect.as(meanwhile, undefined),
        this.watch,
        this.isReopened ? this.deletion : Effect.never
      ])
      if (found === undefined) return { _tag: "Waited" }
      const count = found.length
      if (count === 0) return undefined
      this.messageSize = found.reduce((sum, message) => sum + sizeOf(message), 0) / count
      this.ahead = found
      this.latestIds.add(found)
      this.index = 0
      this.isUnchecked = true
      this.isReopened = false
      const { offset } = this.position!
      this.position = {
        ...this.position!,
        after: found[count - 1]!.id,
        offset: offset === undefined ? offset : offset + count
      }
      return undefined
    })
  }

  /** Whether every message that was read ahead has been delivered. */
  get isEmpty(): boolean {
    return this.index === this.ahead.length
  }

  /** How many messages to read: at most 16 as long as their size is unknown. */
  private get readSize(): number {
    const { batch = 100, batchBytes = 1_048_576 } = this.options
    const fitting = this.messageSize === undefined ? 16 : Math.floor(batchBytes / Math.max(1, this.messageSize))
    return Math.max(1, Math.min(batch, fitting))
  }

  /**
   * Compares the position with the extent while no read is in flight. Returns `Rewritten` or `LostEnd` if the reader
   * had to move back.
   */
  private get check(): Effect.Effect<Delivery<never> | undefined, LeaseError, R> {
    return Effect.gen({ self: this }, function*() {
      const position = this.position!
      const extent = Option.getOrUndefined(
        yield* retryOutages(position.offset === undefined ? this.lease.count(position.after) : this.lease.extent)
      )
      this.checkedAt = yield* monotonic
      this.isUnchecked = false
      if (extent === undefined) return undefined
      if (!readPosition.isPast(position.after, extent)) {
        yield* this.judge(extent)
        return undefined
      }
      yield* this.settled
      const checkpoint = Option.getOrUndefined(yield* retryOutages(this.lease.checkpoint))
      if (readPosition.isRewritten(this.origin, checkpoint, extent)) {
        this.latestIds.keep(0)
        yield* retryOutages(this.lease.seek(readPosition.beginning))
        this.position = readPosition.at(readPosition.beginning)
        const { first, last } = extent
        yield* this.report({ after: position.after, until: first ?? last, missed: Option.none(), reason: "Rewritten" })
        return { _tag: "Rewritten" }
      }
      const left = (yield* this.lastLeft(extent)) ?? checkpoint ?? readPosition.beginning
      const missed = position.offset === undefined || left.offset === undefined
        ? Option.none()
        : Option.some(position.offset - left.offset)
      this.position = readPosition.at(left)
      this.isUnchecked = left.offset === undefined
      yield* this.report({ after: left.id, until: position.after, missed, reason: "LostEnd" })
      return { _tag: "LostEnd", left }
    })
  }

  /**
   * The last delivered message that still exists in the data stream. Undefined if the known ids do not show which one
   * that is.
   */
  private lastLeft(extent: Extent): Effect.Effect<Checkpoint | undefined, LeaseError> {
    return Effect.gen({ self: this }, function*() {
      const range = this.latestIds.range(extent)
      const found: Array<Pick<RawMessage, "id">> = []
      while (range !== undefined && found.length < range.count) {
        const after = found.at(-1)?.id ?? range.after
        if (compareEntryIds(after, extent.last) >= 0) break
        const size = Math.min(this.readSize, range.count - found.length)
        // The messages up to the end may have been deleted in the meantime: do not wait for new ones
        const more = yield* messagesIfAny(this.lease, after, size)
        if (more.length === 0) break
        for (const { id } of more) found.push({ id })
      }
      const count = this.latestIds.countRead(found)
      this.latestIds.keep(count)
      if (range === undefined || count === 0) return undefined
      const isToEnd = found.length < range.count && found.at(-1)!.id === extent.last
      return {
        id: found[count - 1]!.id,
        offset: extent.added !== undefined && isToEnd ? extent.added - found.length + count : undefined
      }
    })
  }

  /** The offset of the last message before this index. */
  private offsetBefore(index: number): number | undefined {
    const offset = this.position?.offset
    return offset === undefined ? undefined : offset - this.ahead.length + index
  }

  private judge(extent: Extent) {
    this.origin = readPosition.originOf(extent)
    const { missing, position } = readPosition.check(this.position!, extent)
    this.position = position
    if (missing === undefined) return Effect.void
    const { after, count, until } = missing
    return this.report({ after, until, missed: count, reason: "Deleted" })
  }

  private report(gap: Omit<Gap, "stream">) {
    return Effect.andThen(
      Metric.update(StreamMetrics.stream.gaps, 1),
      (this.options.onGap ?? warnOfGap)({ ...gap, stream: this.lease.stream })
    )
  }

  /**
   * Reads the extent while the reader waits. Messages after the position prove nothing, because they may still be on
   * their way to this reader. Ends the wait if the data stream now ends before the position, if everything after the
   * position was deleted, or if messages are missing: during the wait, an arriving message could interrupt `onGap`.
   */
  private get watch(): Effect.Effect<ReadonlyArray<RawMessage>, LeaseError, R> {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        yield* Effect.sleep(this.isUnchecked ? Duration.millis(checkAfterMillis) : idleCheck)
        const extent = Option.getOrUndefined(yield* retryOutages(this.lease.extent))
        if (extent === undefined) continue
        const order = compareEntryIds(extent.last, this.position!.after)
        const isMissing = order === 0 && readPosition.check(this.position!, extent).missing !== undefined
        if (order < 0 || order > 0 && extent.length === 0 || isMissing) {
          this.isUnchecked = true
          this.checkedAt = -Infinity
          return []
        }
        if (order > 0) continue
        this.isUnchecked = false
        yield* this.judge(extent)
      }
    })
  }

  /**
   * Checks for gaps before the last message is delivered, because no read follows. The last message's commit then has
   * the right offset.
   */
  private get checkLast() {
    return Effect.gen({ self: this }, function*() {
      const { after } = this.position!
      const extent = Option.getOrUndefined(yield* retryOutages(this.lease.count(after)))
      this.isUnchecked = false
      if (extent !== undefined && !readPosition.isPast(after, extent)) yield* this.judge(extent)
    })
  }

  private get begin() {
    return Effect.gen({ self: this }, function*() {
      const { checkpoint, end, processed, start } = yield* startOf(this.lease, this.options)
      this.isOver = end === "Ended" || processed !== undefined && (yield* this.isLast(processed, start))
      this.isReopened = end === "Reopened"
      // A finished data stream is not read
      if (!this.isOver) this.position = yield* this.positionAt(start, checkpoint)
    })
  }

  /**
   * Derives the starting offset from the checkpoint's. If that is not possible, the first check counts the remaining
   * messages.
   */
  private positionAt(start: Checkpoint, checkpoint: Checkpoint | undefined) {
    if (start.offset !== undefined || checkpoint?.offset === undefined) return Effect.succeed(readPosition.at(start))
    const [after, last] = compareEntryIds(checkpoint.id, start.id) < 0
      ? [checkpoint.id, start.id]
      : [start.id, checkpoint.id]
    return Effect.map(
      retryOutages(this.lease.count(after, last)),
      Option.match({
        onNone: () => readPosition.at(start),
        onSome: (extent) => readPosition.beside(start.id, checkpoint, extent)
      })
    )
  }

  /**
   * Whether the message at the application's position is the last one. If so, commits it, because the earlier commit
   * may have been lost.
   */
  private isLast(processed: RawMessage, { id, offset }: Checkpoint) {
    return Effect.gen({ self: this }, function*() {
      const decoded = yield* Effect.result(this.decode(processed, offset))
      const isLast = decoded._tag === "Success" && decoded.success.isLast
      if (isLast) yield* retryOutages(this.lease.commit(id, { isLast, offset }))
      return isLast
    })
  }

  /**
   * If a reopened data stream has no new messages, reading ends when the stream is deleted. No event reports the
   * deletion, so this polls for it.
   */
  private get deletion() {
    const end = Effect.delay(retryOutages(this.lease.end), "10 seconds")
    return Effect.map(Effect.repeat(end, { until: (end) => end === "Ended" }), (): ReadonlyArray<RawMessage> => {
      this.isOver = true
      return []
    })
  }
}
