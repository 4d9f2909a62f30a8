/** Reads the messages of a data stream one by one, from the checkpoint on. */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as log from "../../internal/log.ts"
import type { BackendError, ProtocolError } from "../../SimbaError.ts"
import type { StreamLost, StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import type { Message, ReadOptions } from "../StreamMessages.ts"
import { EntryId } from "../StreamName.ts"
import type { RawMessage } from "../StreamStore.ts"
import { before } from "./previousEntryId.ts"

export type LeaseError = StreamLost | BackendError | ProtocolError

const start = EntryId.make("0-0")

const retry = Schedule.min([Schedule.exponential("20 millis"), Schedule.spaced("500 millis")]).pipe(Schedule.jittered)

/** Retries through an outage. The loss of the lease ends it at the latest. */
export const retryOutages = <A>(effect: Effect.Effect<A, LeaseError>): Effect.Effect<A, LeaseError> =>
  Effect.retry(effect, { schedule: retry, while: (error) => error._tag === "BackendError" && error.retryable })

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

/** The position in a data stream, and the messages that are read ahead. */
export class MessageReader<A, RD> {
  private readonly lease: StreamLease
  private readonly options: ReadOptions<A>
  private readonly decode: (message: RawMessage) => Effect.Effect<A, string, RD>
  private after: EntryId | undefined
  private ahead: ReadonlyArray<RawMessage> = []
  private index = 0
  private isOver = false
  /** The stream is finished if the next read gets nothing within this time. */
  private patience: Duration.Input | undefined

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
   * The next message; undefined after the last one. The caller has processed all messages before: a message that cannot be
   * decoded goes to the dead letters, which moves the checkpoint past them. `meanwhile` runs during the wait.
   */
  next(meanwhile: Effect.Effect<never, LeaseError> = Effect.never): Effect.Effect<
    Message<A> | undefined,
    LeaseError | StreamYielded,
    RD
  > {
    return Effect.gen({ self: this }, function*() {
      for (;;) {
        if (this.isOver) return undefined
        if (yield* this.lease.isRevoked) return yield* this.lease.yield
        if (this.index === this.ahead.length) {
          yield* this.refill(meanwhile)
          continue
        }
        const raw = this.ahead[this.index++]!
        const decoded = yield* Effect.result(this.decode(raw))
        if (decoded._tag === "Success") {
          const message = { ...raw, value: decoded.success }
          this.isOver = this.isLast(message)
          return message
        }
        yield* log.warning(`A message cannot be decoded, and goes to the dead letters: ${decoded.failure}`).pipe(
          Effect.annotateLogs({ stream: this.lease.stream, message: raw.id })
        )
        yield* retryOutages(this.lease.deadLetter(raw, decoded.failure))
      }
    })
  }

  private isLast(message: Message<A>): boolean {
    return this.options.until?.(message) ?? false
  }

  private refill(meanwhile: Effect.Effect<never, LeaseError>): Effect.Effect<void, LeaseError | StreamYielded, RD> {
    return Effect.gen({ self: this }, function*() {
      const { checkpoint } = this.after === undefined ? yield* this.begin : { checkpoint: undefined }
      const reading = Effect.raceAllFirst([
        retryOutages(Effect.suspend(() => this.lease.messagesAfter(this.after!, this.batch))),
        Effect.andThen(this.lease.revoked, this.lease.yield),
        meanwhile
      ])
      const { patience } = this
      const messages = patience === undefined
        ? yield* reading
        : yield* Effect.timeoutOrElse(reading, { duration: patience, orElse: () => Effect.succeed([]) })
      this.patience = undefined
      this.isOver = patience !== undefined && messages.length === 0
      this.ahead = messages
      this.index = 0
      if (messages.length > 0) this.after = messages[messages.length - 1]!.id
      if (checkpoint === undefined || messages[0]?.id !== checkpoint) return
      this.index = 1
      if (messages.length > 1) return
      const value = yield* Effect.option(this.decode(messages[0]))
      if (value._tag === "None" || !this.isLast({ ...messages[0], value: value.value })) return
      // The former owner committed the last message and died before `done`; or the stream was announced again since
      if (yield* retryOutages(this.lease.hasCommitted)) this.isOver = true
      else this.patience = this.options.moreWithin ?? "1 minute"
    })
  }

  /** Starts after the checkpoint. With `until`, the committed message is read again: it may be the last one. */
  private get begin() {
    return Effect.map(retryOutages(this.lease.checkpoint), (checkpoint) => {
      const id = Option.getOrUndefined(checkpoint)
      this.after = id === undefined ? start : this.options.until === undefined ? id : before(id)
      return { checkpoint: id }
    })
  }

  private get batch() {
    // The committed message and at least one after it
    return Math.max(2, this.options.batch ?? 100)
  }
}
