/** Reads the messages of a data stream one by one, from the checkpoint on. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as log from "../../internal/log.ts"
import type { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Gap, Message, ReadOptions } from "../StreamMessages.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import { compareEntryIds, type EntryId } from "../StreamName.ts"
import type { Checkpoint, Extent, RawMessage } from "../StreamStore.ts"
import { type LeaseError, reasonOf, retryOutages } from "./leaseRequests.ts"
import * as readPosition from "./readPosition.ts"

const problemOf = (error: Schema.SchemaError): string => reasonOf(error.message)

const decoderOf = <A, RD>(schema: Schema.Codec<A, unknown, RD, unknown>, field: string | undefined) => {
  if (field === undefined) {
    const decode = Schema.decodeUnknownEffect(schema)
    return ({ fields }: RawMessage) => Effect.mapError(decode(Object.fromEntries(fields)), problemOf)
  }
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return ({ fields }: RawMessage) => {
    const text = fields.findLast(([name]) => name === field)?.[1]
    return text === undefined
      ? Effect.fail(`there is no field ${JSON.stringify(field)}`)
      : Effect.mapError(decode(text), problemOf)
  }
}

/** The extent is read once a second at most while messages come, and after so long without one. Milliseconds. */
const checkAfter = 1000

/** How often the extent is read while no message comes: nothing else shows that the data stream was written again. */
const idleCheck = Duration.seconds(30)

const warnOfGap = ({ after, isRestarted, missed, stream, until }: Gap) =>
  Effect.annotateLogs(
    log.warning(
      isRestarted
        ? "The data stream was deleted and written again; reading from its beginning"
        : `${Option.getOrElse(missed, () => "Some")} message(s) were deleted before they were read`
    ),
    { stream, after, until }
  )

/** Ids that look like times: older ones were given by hand. */
const isTime = (millis: number) => millis > 1e12

const timeOf = (id: EntryId) => Number(id.split("-")[0])

/** A message, one that cannot be decoded and is in the dead letters now, or the beginning of another data stream. */
export type Delivery<A> =
  | { readonly _tag: "Message"; readonly message: Message<A> }
  | { readonly _tag: "Dead"; readonly id: EntryId; readonly offset: number | undefined }
  | { readonly _tag: "Restarted" }

/** The position in a data stream, and the messages that are read ahead. */
export class MessageReader<A, RD> {
  private readonly lease: StreamLease
  private readonly options: ReadOptions<A>
  private readonly decode: (message: RawMessage) => Effect.Effect<A, string, RD>
  /** After all messages that were read ahead. */
  private position: readPosition.ReadPosition | undefined
  private ahead: ReadonlyArray<RawMessage> = []
  private index = 0
  private checkedAt = -Infinity
  /** Messages came since the last check. */
  private isUnchecked = true
  private isOver = false
  /** Ended before and announced again: it is over if it is deleted before a message comes. */
  private isReopened = false

  constructor(
    lease: StreamLease,
    schema: Schema.Codec<A, unknown, RD, unknown>,
    options: ReadOptions<A> = {}
  ) {
    this.lease = lease
    this.options = options
    this.decode = decoderOf(schema, options.field)
  }

  /**
   * The next message; undefined after the last one. Asks the lease each time: the handler of the message before may have
   * blocked the process beyond it. `meanwhile` runs during the wait.
   */
  next(meanwhile: Effect.Effect<never, LeaseError> = Effect.never): Effect.Effect<
    Delivery<A> | undefined,
    LeaseError | StreamYielded,
    RD
  > {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        if (this.isOver) return yield* this.end
        yield* this.lease.ensure
        if (yield* this.lease.isRevoked) return yield* this.lease.yield
        if (this.index === this.ahead.length) {
          if (yield* this.refill(meanwhile)) return { _tag: "Restarted" }
          continue
        }
        const raw = this.ahead[this.index++]!
        const offset = this.offsetAt(this.index)
        const decoded = yield* Effect.result(this.decode(raw))
        if (decoded._tag === "Success") {
          const message = { ...raw, offset, value: decoded.success }
          this.isOver = this.options.until?.(message) ?? false
          return { _tag: "Message", message: { ...message, isLast: this.isOver } }
        }
        yield* log.warning(`A message cannot be decoded, and goes to the dead letters: ${decoded.failure}`).pipe(
          Effect.annotateLogs({ stream: this.lease.stream, message: raw.id })
        )
        yield* retryOutages(this.lease.deadLetter(raw, decoded.failure))
        yield* Metric.update(StreamMetrics.deadMessages.undecodable, 1)
        return { _tag: "Dead", id: raw.id, offset }
      }
    })
  }

  /** The next message that can be decoded; undefined after the last one. */
  get nextMessage(): Effect.Effect<Message<A> | undefined, LeaseError | StreamYielded, RD> {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        const delivery = yield* this.next()
        if (delivery === undefined) return undefined
        if (delivery._tag === "Message") return delivery.message
      }
    })
  }

  /** Returns whether the position went back to the beginning. */
  private refill(
    meanwhile: Effect.Effect<never, LeaseError>
  ): Effect.Effect<boolean, LeaseError | StreamYielded, RD> {
    return Effect.gen({ self: this }, function*() {
      if (this.position === undefined) yield* this.begin
      if (this.isOver) return false
      if (this.isUnchecked && (yield* Clock.currentTimeMillis) - this.checkedAt >= checkAfter) {
        if (yield* this.check) return true
      }
      const { after } = this.position!
      const found = yield* Effect.raceAllFirst([
        retryOutages(Effect.suspend(() => this.lease.messagesAfter(after, this.options.batch ?? 100))),
        Effect.andThen(this.lease.revoked, this.lease.yield),
        meanwhile,
        this.watch,
        this.isReopened ? this.deletion : Effect.never
      ])
      const count = found.length
      if (count === 0) return false
      this.ahead = found
      this.index = 0
      this.isUnchecked = true
      this.isReopened = false
      const { checked, offset } = this.position!
      this.position = {
        after: found[count - 1]!.id,
        offset: offset === undefined ? offset : offset + count,
        checked
      }
      return false
    })
  }

  /** Compares the position with the extent, while no read is under way. Returns whether it went back to the beginning. */
  private get check(): Effect.Effect<boolean, LeaseError> {
    return Effect.gen({ self: this }, function*() {
      const extent = yield* retryOutages(this.lease.extent)
      this.checkedAt = yield* Clock.currentTimeMillis
      this.isUnchecked = false
      if (Option.isNone(extent)) return false
      const position = this.position!
      if (!readPosition.isPast(position.after, extent.value)) {
        yield* this.judge(extent.value)
        return false
      }
      // A server that lost its latest writes lost messages with their commits, or commits were sent again
      const checkpoint = Option.getOrUndefined(yield* retryOutages(this.lease.checkpoint))
      if (checkpoint !== undefined && !readPosition.isPast(checkpoint.id, extent.value)) {
        this.position = readPosition.at(checkpoint)
        return true
      }
      const end = this.knownEnd(extent.value)
      if (end !== undefined) {
        yield* retryOutages(this.lease.seek(end))
        this.position = readPosition.at(end)
        return true
      }
      yield* retryOutages(this.lease.seek(readPosition.beginning))
      this.position = readPosition.at(readPosition.beginning)
      const { first, last } = extent.value
      yield* this.report({ after: position.after, until: first ?? last, missed: Option.none(), isRestarted: true })
      return true
    })
  }

  /** The end of the data stream, if it is a message of the last read with the same number. Ids given by hand may recur. */
  private knownEnd({ added, last }: Extent): Checkpoint | undefined {
    const index = this.ahead.findIndex(({ id }) => id === last)
    const offset = this.offsetAt(index + 1)
    return index >= 0 && offset !== undefined && offset === added && isTime(timeOf(last))
      ? { id: last, offset }
      : undefined
  }

  /** The offset of the n-th message that was read ahead. */
  private offsetAt(n: number): number | undefined {
    const offset = this.position?.offset
    return offset === undefined ? undefined : offset - this.ahead.length + n
  }

  private judge(extent: Extent) {
    const { missing, position } = readPosition.check(this.position!, extent)
    this.position = position
    if (missing === undefined) return Effect.void
    const { after, count, until } = missing
    return this.report({ after, until, missed: count, isRestarted: false })
  }

  private report(gap: Omit<Gap, "stream">) {
    return Effect.andThen(
      Metric.update(StreamMetrics.gaps, 1),
      (this.options.onGap ?? warnOfGap)({ ...gap, stream: this.lease.stream })
    )
  }

  /**
   * Reads the extent during a wait. Messages beyond the position may be on their way, so it judges only where there are none,
   * and ends the wait where none can come.
   */
  private get watch(): Effect.Effect<ReadonlyArray<RawMessage>, LeaseError> {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        yield* Effect.sleep(this.isUnchecked ? Duration.millis(checkAfter) : idleCheck)
        const extent = Option.getOrUndefined(yield* retryOutages(this.lease.extent))
        if (extent === undefined) continue
        const order = compareEntryIds(extent.last, this.position!.after)
        if (order < 0 || order > 0 && extent.length === 0) {
          this.isUnchecked = true
          this.checkedAt = -Infinity
          return []
        }
        if (order > 0) continue
        this.checkedAt = yield* Clock.currentTimeMillis
        this.isUnchecked = false
        yield* this.judge(extent)
      }
    })
  }

  /** Checks once more: no later read does. It is over even where the backend does not reply. */
  private get end() {
    return Effect.gen({ self: this }, function*() {
      if (this.position === undefined || !this.isUnchecked) return undefined
      this.isUnchecked = false
      const extent = yield* Effect.option(this.lease.extent)
      const found = Option.getOrUndefined(Option.flatten(extent))
      if (found !== undefined && !readPosition.isPast(this.position.after, found)) yield* this.judge(found)
      return undefined
    })
  }

  /** Starts after the checkpoint. */
  private get begin() {
    return Effect.gen({ self: this }, function*() {
      const checkpoint = yield* retryOutages(this.lease.checkpoint)
      if (Option.isNone(checkpoint)) yield* this.warnOfExpiry
      else if (this.options.until !== undefined) {
        const end = yield* retryOutages(this.lease.end)
        this.isOver = end === "Ended"
        this.isReopened = end === "Reopened"
        // Nothing was read
        if (this.isOver) return
      }
      this.position = readPosition.at(Option.getOrElse(checkpoint, () => readPosition.beginning))
    })
  }

  /** A data stream that is older than any checkpoint lasts unused may have had one. */
  private get warnOfExpiry() {
    return Effect.gen({ self: this }, function*() {
      const extent = yield* retryOutages(this.lease.extent)
      const first = Option.getOrUndefined(extent)?.first
      if (first === undefined) return
      const [written, now] = [timeOf(first), yield* Clock.currentTimeMillis]
      if (!isTime(written) || now - written < Duration.toMillis(this.lease.checkpointRetention)) return
      yield* log.warning(
        "There is no checkpoint, or it has expired: reading an old data stream from its first message. " +
          "Raise checkpointRetention above the longest pause between two announcements"
      ).pipe(Effect.annotateLogs({ stream: this.lease.stream, message: first }))
    })
  }

  /** Is over, without messages, when the data stream is deleted. No event tells. */
  private get deletion() {
    const end = Effect.delay(retryOutages(this.lease.end), "10 seconds")
    return Effect.map(Effect.repeat(end, { until: (end) => end === "Ended" }), (): ReadonlyArray<RawMessage> => {
      this.isOver = true
      return []
    })
  }
}
