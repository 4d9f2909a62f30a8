/**
 * Messages of a data stream, decoded, in order, each at least once.
 *
 * **Guarantee.** Messages come in the order of the data stream, from the one after the checkpoint on, or from the
 * first. The checkpoint is kept in the backend, moves forward only, and moves only for the present owner. So the next
 * owner begins after the last committed message: uncommitted messages are processed again, none is left out, and an
 * owner that was replaced without knowing it moves nothing. The id of a message shows repetitions, and the token of
 * the lease shows late owners.
 *
 * A message that does not fit the schema goes to the dead letters of the data stream with the reason, when its turn
 * has come, and the next one follows.
 *
 * **Example** (Orders until the last one)
 *
 * ```ts
 * import { StreamMessages } from "@effect-simba/core/streams"
 * import { Effect, Schema } from "effect"
 *
 * const Order = Schema.Struct({ customer: Schema.String, amount: Schema.FiniteFromString })
 *
 * const handler = StreamMessages.process(
 *   Schema.Union([Order, Schema.Struct({ end: Schema.Literal("true") })]),
 *   ({ id, value }) => "end" in value ? Effect.void : Effect.log(`${id}: ${value.amount} from ${value.customer}`),
 *   { until: ({ value }) => "end" in value }
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { HookServices } from "../internal/hookServices.ts"
import { entryProblem } from "../internal/nameRules.ts"
import { InvalidConfig, type LeaseLost, type StoreError } from "../SimbaError.ts"
import { concurrently } from "./internal/concurrentLoop.ts"
import * as messageAttempts from "./internal/messageAttempts.ts"
import { MessageCommits } from "./internal/messageCommits.ts"
import * as messageLoop from "./internal/messageLoop.ts"
import { MessageReader } from "./internal/messageReader.ts"
import { problemOf, type StartPosition } from "./internal/startPosition.ts"
import type { StreamYielded } from "./StreamError.ts"
import { StreamLease } from "./StreamLease.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { RawMessage } from "./StreamState.ts"

/**
 * A message and the value that the schema made of it.
 *
 * **Details**
 *
 * It has its id and fields, so it can go to `lease.deadLetter` as it is.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface Message<out A> extends RawMessage {
  readonly value: A
  /**
   * How many messages were added to the data stream up to this one, as far as the reader knows: the offset that other systems
   * have. Undefined before Redis 7.0, and after a checkpoint that has none until the reader comes to the end.
   */
  readonly offset: number | undefined
  /** Whether it ends the data stream. Say so when you commit it. */
  readonly isLast: boolean
}

/**
 * Options of `messages`.
 *
 * @see {@link messages}
 * @category options
 * @since 0.1.0
 */
export interface ReadOptions<in A, out R = never> {
  /**
   * The field with the whole message as JSON, which the schema describes. Default: the schema describes a record of all
   * fields, whose values are strings. Of a field that occurs twice, the last counts.
   */
  readonly field?: string | undefined
  /**
   * Whether a message is the last one. It is delivered, and ends the data stream. Announced again after its end, the data
   * stream goes on to the next last message, or until it is deleted. Default: never.
   */
  readonly until?: ((message: Omit<Message<A>, "isLast">) => boolean) | undefined
  /** How many messages are read at once, at most. Default: 100. */
  readonly batch?: number | undefined
  /**
   * About how many bytes are read at once: the number of messages of a read follows the size of those before it, and the
   * first read has 16. Counted as characters of names and values. Default: 1,048,576.
   */
  readonly batchBytes?: number | undefined
  /**
   * Runs where messages were deleted before they were read, where the data stream was deleted and written again, and where
   * the server lost messages that were read. The reader compares its position with the counters of the data stream at the start, at the end, once a second at most while
   * messages come, and within half a minute while none come. Default: log a warning.
   */
  readonly onGap?: ((gap: Gap) => Effect.Effect<void, never, R>) | undefined
  /**
   * Where to begin in a data stream without a checkpoint: at the first message, at the next one to come, at the message
   * with this id, or at the first message since a time (ids are times of the server). Deleted messages before it are no gap.
   * It is noted as the checkpoint. Default: "beginning".
   */
  readonly from?: StartPosition | undefined
  /**
   * For those who keep the id of the last processed message in their own database: reading begins after it, wherever the
   * checkpoint is. None: nothing was processed, so that it begins at the first message, or where `from` says. Default: the
   * checkpoint.
   */
  readonly after?: Option.Option<string> | undefined
}

/**
 * Messages that are missing in a data stream.
 *
 * **Details**
 *
 * - `Deleted`: messages were deleted before they were read. They came after `after` and before `until`; some messages in
 *   between may have been read. Those that a former owner passed, and did not notice before its end, are counted too. `missed` is their number, by the counters of Redis 7.0. It is none after a checkpoint
 *   without an offset, of a commit by id alone. Before Redis 7.0 only a data stream that was trimmed to nothing shows a
 *   gap, without a number.
 * - `Rewritten`: the data stream was deleted and written again with smaller ids than the checkpoint. Its checkpoint went
 *   back to the beginning, and all its messages are read.
 * - `LostEnd`: a new primary lacks the newest messages, after `after` up to `until`. Reading goes on after the last message
 *   that is left, or after the checkpoint where the reader does not know that message. `missed` is how many of the lost
 *   messages had been read, if it is known. A producer can write them again.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface Gap {
  readonly stream: StreamName
  readonly after: EntryId
  readonly until: EntryId
  readonly missed: Option.Option<number>
  readonly reason: "Deleted" | "Rewritten" | "LostEnd"
}

/**
 * Options of `process`.
 *
 * @see {@link process}
 * @category options
 * @since 0.1.0
 */
export interface ProcessOptions<in A, out R = never> extends ReadOptions<A, R> {
  /** Commits after so many messages. A larger number is faster, and lets as many be processed again. Default: 1. */
  readonly commitEvery?: number | undefined
  /**
   * Commits at the latest so long after the first uncommitted message, or when the message in hand is done. Default: no
   * limit.
   */
  readonly commitWithin?: Duration.Input | undefined
  /**
   * How many messages are processed at once. The checkpoint never passes an unfinished message. At most 100 messages, or
   * four times as many as this, are processed beyond it, and may be processed again. Default: 1, all in order.
   */
  readonly concurrency?: number | undefined
  /**
   * Messages of the same key are processed in order, one at a time, regardless of `concurrency`. Default: the id of the
   * message, so that no order is kept.
   */
  readonly key?: ((message: Message<A>) => string) | undefined
  /**
   * How often the handler tries a message. After the last failure that message goes to the dead letters of its data stream,
   * and the next one follows. `Infinity`: a failure ends `process`, and `retry` of `StreamClient.run` decides.
   * Default: 10, with the default `backoff` within two and a half minutes.
   */
  readonly attempts?: number | undefined
  /**
   * The pauses between attempts. It gets the cause of each failure; where it ends, the message goes to the dead letters.
   * Default: a second, doubling up to half a minute.
   */
  readonly backoff?: Schedule.Schedule<unknown, Cause.Cause<unknown>> | undefined
}

/** Options of `processBatches`. Each batch has one commit, and one batch is processed at a time. */
interface BatchOptions<in A, out R = never> extends ReadOptions<A, R>, Pick<ProcessOptions<A>, "attempts" | "backoff"> {
  /** How long a batch waits after its first message to be full. Default: not at all, so that it is what one read found. */
  readonly batchWithin?: Duration.Input | undefined
}

/** Without `field`, a schema reads the values of fields, which are strings. */
type Fields<I> = object & { readonly [Field in keyof I]: string | undefined }

/**
 * What ends the reading of messages before the last one.
 *
 * **Details**
 *
 * The lease is lost, the handler yields the data stream after it was revoked, or the backend refuses.
 *
 * **Example** (Going on to something else when asked back)
 *
 * ```ts
 * import type { StreamMessages } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const noted = <A, R>(work: Effect.Effect<A, StreamMessages.MessagesError, R>) =>
 *   Effect.tapError(work, (error) =>
 *     error._tag === "StreamYielded" ? Effect.log(`${error.stream} goes on elsewhere`) : Effect.logWarning(error.message))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export type MessagesError = LeaseLost | StreamYielded | StoreError | InvalidConfig

const check = (
  options: ProcessOptions<never, unknown> & BatchOptions<never, unknown> | undefined
): Effect.Effect<void, InvalidConfig> => {
  for (const option of ["batch", "batchBytes", "commitEvery", "concurrency"] as const) {
    const value = options?.[option] ?? 1
    if (!Number.isSafeInteger(value) || value < 1) {
      return Effect.fail(new InvalidConfig({ option, problem: `${value} is not a whole number of at least 1` }))
    }
  }
  const from = problemOf(options?.from ?? "now")
  if (from !== undefined) return Effect.fail(new InvalidConfig({ option: "from", problem: from }))
  const after = Option.flatMapNullishOr(options?.after ?? Option.none(), entryProblem)
  if (Option.isSome(after)) return Effect.fail(new InvalidConfig({ option: "after", problem: after.value }))
  const attempts = options?.attempts ?? 1
  if (attempts !== Infinity && (!Number.isSafeInteger(attempts) || attempts < 1)) {
    return Effect.fail(
      new InvalidConfig({
        option: "attempts",
        problem: `${attempts} is neither a whole number of at least 1 nor Infinity`
      })
    )
  }
  for (const option of ["batchWithin", "commitWithin"] as const) {
    const within = options?.[option]
    if (within !== undefined && !Option.exists(Duration.fromInput(within), Duration.isPositive)) {
      return Effect.fail(new InvalidConfig({ option, problem: "it must be a duration above zero" }))
    }
  }
  return Effect.void
}

/**
 * Reads the messages of the data stream of the `StreamLease` in context, from the checkpoint on.
 *
 * **Details**
 *
 * It waits for further messages, and ends after the last one. Revoked, it ends by `lease.yield` before the next
 * message.
 *
 * **Gotchas**
 *
 * Only you commit, with `lease.commit(message.id, message)`, which also says whether it is the last one. So group, buffer
 * or process in parallel as you like, and commit a message when it and all before it are processed. A message that cannot
 * be decoded is passed by your next commit. Until then a successor decodes it again, and it has one dead letter.
 *
 * **Example** (Commits at one's own pace)
 *
 * ```ts
 * import { StreamLease, StreamMessages } from "@effect-simba/core/streams"
 * import { Effect, Schema, Stream } from "effect"
 *
 * const Reading = Schema.Struct({ celsius: Schema.FiniteFromString })
 *
 * const handler = Effect.gen(function*() {
 *   const lease = yield* StreamLease.StreamLease
 *   yield* StreamMessages.messages(Reading).pipe(
 *     Stream.tap(({ value }) => Effect.log(value.celsius)),
 *     Stream.runForEach((message) =>
 *       Effect.when(lease.commit(message.id, message), Effect.succeed(message.value.celsius > 30))
 *     )
 *   )
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const messages: {
  <A, I extends Fields<I>, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    options?: ReadOptions<A, RG>
  ): Stream.Stream<Message<A>, MessagesError, StreamLease | RD | HookServices<RG>>
  <A, I, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    options: ReadOptions<A, RG> & { readonly field: string }
  ): Stream.Stream<Message<A>, MessagesError, StreamLease | RD | HookServices<RG>>
} = <A, RD = never>(
  schema: Schema.Codec<A, unknown, RD, unknown>,
  options?: ReadOptions<A, unknown>
): Stream.Stream<Message<A>, MessagesError, StreamLease | RD> =>
  Stream.unwrap(Effect.gen(function*() {
    yield* check(options)
    const reading = readerOf(yield* StreamLease, schema, options)
    return Stream.fromPull(Effect.succeed(
      Effect.flatMap(
        reading.nextMessage,
        (message) => message === undefined ? Cause.done() : Effect.succeed(Arr.of(message))
      )
    ))
  }))

/**
 * Runs `handler` on one message after the other, and commits the processed ones.
 *
 * **Details**
 *
 * Succeeds after the last message, as `until` says, so that `StreamClient.run` marks the data stream as done. Without
 * `until` it never succeeds.
 *
 * - Revoked, it stops between two messages, commits, and ends by `lease.yield`.
 * - A message whose handler fails is tried again, as `attempts` and `backoff` say, while the next ones wait. Then it goes to
 *   the dead letters with the cause as its reason, and the next one follows.
 * - An error of this library (`LeaseLost`, `StreamYielded`, `StaleToken`, `BackendError`, `ProtocolError`,
 *   `AcquireTimeout`) is no failure of the message. It ends `process`, after a commit of the messages before. The next run of
 *   the handler begins with the same message.
 * - An outage of the backend is waited out while the lease lasts.
 *
 * **Gotchas**
 *
 * Attempts are counted in this process. A message that ends its process is never counted: its announcement fails, and goes
 * to the dead letters after `maxFailures` and `deadLetterAfter`. An outage of what the handler needs, longer than all
 * attempts, sends good messages to the dead letters: retry that call in the handler until the outage is over.
 *
 * **Example** (A handler that commits less often)
 *
 * ```ts
 * import { StreamMessages } from "@effect-simba/core/streams"
 * import { Effect, Schema } from "effect"
 *
 * const Event = Schema.Struct({ kind: Schema.Literals(["opened", "closed"]), at: Schema.DateTimeUtcFromString })
 *
 * const handler = StreamMessages.process(Event, ({ value }) => Effect.log(value.kind), {
 *   field: "json",
 *   commitEvery: 100,
 *   commitWithin: "1 second",
 *   until: ({ value }) => value.kind === "closed"
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const process: {
  <A, I extends Fields<I>, X, E, R, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    handler: (message: Message<A>) => Effect.Effect<X, E, R>,
    options?: ProcessOptions<A, RG>
  ): Effect.Effect<void, E | MessagesError, R | RD | HookServices<RG> | StreamLease>
  <A, I, X, E, R, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    handler: (message: Message<A>) => Effect.Effect<X, E, R>,
    options: ProcessOptions<A, RG> & { readonly field: string }
  ): Effect.Effect<void, E | MessagesError, R | RD | HookServices<RG> | StreamLease>
} = <A, X, E, R, RD = never>(
  schema: Schema.Codec<A, unknown, RD, unknown>,
  handler: (message: Message<A>) => Effect.Effect<X, E, R>,
  options?: ProcessOptions<A, unknown>
): Effect.Effect<void, E | MessagesError, R | RD | StreamLease> =>
  Effect.gen(function*() {
    yield* check(options)
    const { concurrency = 1, key = ({ id }: Message<A>): string => id } = options ?? {}
    const loop = yield* loopOf(schema, options)
    const run = concurrency === 1
      ? messageLoop.inBatches(loop, { count: 1, bytes: Infinity, wait: 0 }, ([message]) => handler(message))
      : concurrently(loop, { concurrency, key }, handler)
    yield* Effect.onError(run, () => loop.commits.atLast)
  })

/** The types of all operations ask for the services of the hook. */
const readerOf = <A, RD>(
  lease: StreamLease,
  schema: Schema.Codec<A, unknown, RD, unknown>,
  options: ReadOptions<A, unknown> | undefined
) => new MessageReader<A, RD>(lease, schema, options as ReadOptions<A, RD> | undefined)

const loopOf = <A, RD>(
  schema: Schema.Codec<A, unknown, RD, unknown>,
  options: ProcessOptions<A, unknown> | undefined
): Effect.Effect<messageLoop.Loop<A, RD>, never, StreamLease> =>
  Effect.gen(function*() {
    const lease = yield* StreamLease
    const commits = new MessageCommits(lease, yield* Clock.Clock, options)
    const isOne = (options?.concurrency ?? 1) === 1
    return {
      lease,
      reading: readerOf(lease, schema, options),
      commits,
      // Several at once have timers
      attempt: messageAttempts.make(lease, options ?? {}, isOne ? commits.whenDue : Effect.never)
    }
  })

/**
 * Runs `handler` on batches of messages, one after the other, and commits once after each.
 *
 * **When to use**
 *
 * Use it where many messages cost little more than one, such as rows of one insert.
 *
 * **Details**
 *
 * A batch has up to `batch` messages and about `batchBytes`, and waits for at most `batchWithin` after its first message. All
 * else is as in `process`. A batch that fails in all `attempts` is tried message by message, each as often: those that fail
 * then go to the dead letters.
 *
 * **Example** (Rows of one insert)
 *
 * ```ts
 * import { StreamMessages } from "@effect-simba/core/streams"
 * import { Effect, Schema } from "effect"
 *
 * const Reading = Schema.Struct({ celsius: Schema.FiniteFromString })
 *
 * const insert = (rows: ReadonlyArray<{ readonly id: string; readonly celsius: number }>) => Effect.log(rows.length)
 *
 * const handler = StreamMessages.processBatches(
 *   Reading,
 *   (messages) => insert(messages.map(({ id, value }) => ({ id, ...value }))),
 *   { batch: 500, batchWithin: "1 second" }
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const processBatches: {
  <A, I extends Fields<I>, X, E, R, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    handler: (messages: Arr.NonEmptyReadonlyArray<Message<A>>) => Effect.Effect<X, E, R>,
    options?: BatchOptions<A, RG>
  ): Effect.Effect<void, E | MessagesError, R | RD | HookServices<RG> | StreamLease>
  <A, I, X, E, R, RD = never, RG = never>(
    schema: Schema.Codec<A, I, RD, unknown>,
    handler: (messages: Arr.NonEmptyReadonlyArray<Message<A>>) => Effect.Effect<X, E, R>,
    options: BatchOptions<A, RG> & { readonly field: string }
  ): Effect.Effect<void, E | MessagesError, R | RD | HookServices<RG> | StreamLease>
} = <A, X, E, R, RD = never>(
  schema: Schema.Codec<A, unknown, RD, unknown>,
  handler: (messages: Arr.NonEmptyReadonlyArray<Message<A>>) => Effect.Effect<X, E, R>,
  options?: BatchOptions<A, unknown>
): Effect.Effect<void, E | MessagesError, R | RD | StreamLease> =>
  Effect.gen(function*() {
    yield* check(options)
    const loop = yield* loopOf(schema, options)
    const { batch = 100, batchBytes = 1_048_576, batchWithin = 0 } = options ?? {}
    const limits = { count: batch, bytes: batchBytes, wait: Duration.toMillis(batchWithin) }
    yield* Effect.onError(messageLoop.inBatches(loop, limits, handler), () => loop.commits.atLast)
  })
