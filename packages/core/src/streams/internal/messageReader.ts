/** Reads the messages of a data stream one by one, from the checkpoint on. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isTransient, retrySchedule } from "../../internal/lease/storeFailure.ts"
import * as log from "../../internal/log.ts"
import type { StoreError } from "../../SimbaError.ts"
import type { StreamLost, StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Gap, Message, ReadOptions } from "../StreamMessages.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import { EntryId } from "../StreamName.ts"
import type { RawMessage } from "../StreamStore.ts"

type LeaseError = StreamLost | StoreError

const start = EntryId.make("0-0")

const retry = retrySchedule("20 millis", "500 millis")

/** Retries through an outage. The loss of the lease ends it at the latest. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: isTransient })

const reasonOf = (error: Schema.SchemaError): string => error.message.slice(0, 1000)

const decoderOf = <A, RD>(schema: Schema.Codec<A, unknown, RD, unknown>, field: string | undefined) => {
  if (field === undefined) {
    const decode = Schema.decodeUnknownEffect(schema)
    return ({ fields }: RawMessage) => Effect.mapError(decode(Object.fromEntries(fields)), reasonOf)
  }
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return ({ fields }: RawMessage) => {
    const text = fields.findLast(([name]) => name === field)?.[1]
    return text === undefined
      ? Effect.fail(`there is no field ${JSON.stringify(field)}`)
      : Effect.mapError(decode(text), reasonOf)
  }
}

/** A batch that is processed faster is hardly overtaken by a producer that trims. Milliseconds. */
const slowBatch = 1000

const warnOfGap = ({ after, stream, until }: Gap) =>
  Effect.annotateLogs(log.warning("Messages were deleted before they were read"), { stream, after, until })

/** A message, or one that cannot be decoded and is in the dead letters now. */
export type Delivery<A> =
  | { readonly _tag: "Message"; readonly message: Message<A> }
  | { readonly _tag: "Dead"; readonly id: EntryId }

/** The position in a data stream, and the messages that are read ahead. */
export class MessageReader<A, RD> {
  private readonly lease: StreamLease
  private readonly options: ReadOptions<A>
  private readonly decode: (message: RawMessage) => Effect.Effect<A, string, RD>
  private after: EntryId | undefined
  private ahead: ReadonlyArray<RawMessage> = []
  private index = 0
  private filledAt = -Infinity
  private isOver = false
  /** Ended before and announced anew: it is over if it is deleted before a message comes. */
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
        if (this.isOver) return undefined
        yield* this.lease.ensure
        if (yield* this.lease.isRevoked) return yield* this.lease.yield
        if (this.index === this.ahead.length) {
          yield* this.refill(meanwhile)
          continue
        }
        const raw = this.ahead[this.index++]!
        const decoded = yield* Effect.result(this.decode(raw))
        if (decoded._tag === "Success") {
          const message = { ...raw, value: decoded.success }
          this.isOver = this.options.until?.(message) ?? false
          return { _tag: "Message", message: { ...message, isLast: this.isOver } }
        }
        yield* log.warning(`A message cannot be decoded, and goes to the dead letters: ${decoded.failure}`).pipe(
          Effect.annotateLogs({ stream: this.lease.stream, message: raw.id })
        )
        yield* retryOutages(this.lease.deadLetter(raw, decoded.failure))
        return { _tag: "Dead", id: raw.id }
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

  private refill(meanwhile: Effect.Effect<never, LeaseError>): Effect.Effect<void, LeaseError | StreamYielded, RD> {
    return Effect.gen({ self: this }, function*() {
      if (this.after === undefined) yield* this.begin
      if (this.isOver) return
      this.ahead = yield* Effect.raceAllFirst([
        Effect.andThen(
          this.gap(this.after!),
          retryOutages(Effect.suspend(() => this.lease.messagesAfter(this.after!, this.options.batch ?? 100)))
        ),
        Effect.andThen(this.lease.revoked, this.lease.yield),
        meanwhile,
        this.isReopened ? this.deletion : Effect.never
      ])
      this.index = 0
      this.filledAt = yield* Clock.currentTimeMillis
      this.isReopened = false
      this.after = this.ahead[this.ahead.length - 1]?.id ?? this.after
    })
  }

  /** Tells of messages that were deleted after the last one. */
  private gap(after: EntryId) {
    return Effect.gen({ self: this }, function*() {
      if ((yield* Clock.currentTimeMillis) - this.filledAt < slowBatch) return
      const until = yield* retryOutages(this.lease.deletedAfter(after))
      if (Option.isNone(until)) return
      yield* Metric.update(StreamMetrics.gaps, 1)
      yield* (this.options.onGap ?? warnOfGap)({ stream: this.lease.stream, after, until: until.value })
    })
  }

  /** Starts after the checkpoint. */
  private get begin() {
    return Effect.gen({ self: this }, function*() {
      const checkpoint = yield* retryOutages(this.lease.checkpoint)
      if (Option.isSome(checkpoint) && this.options.until !== undefined) {
        const end = yield* retryOutages(this.lease.end)
        this.isOver = end === "Ended"
        this.isReopened = end === "Reopened"
      }
      this.after = Option.getOrElse(checkpoint, () => start)
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
