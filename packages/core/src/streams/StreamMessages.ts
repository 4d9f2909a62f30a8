/**
 * Reads and decodes a data stream's messages, in order, each at least once.
 *
 * **Guarantee.** Messages arrive in the order of the data stream, starting after the checkpoint, or with the first
 * message if there is none. The checkpoint is kept in the backend. Only the current owner can commit, and commits only
 * move the checkpoint forward. The next owner starts after the last committed message: uncommitted messages are
 * processed again, and none are skipped. An owner that was replaced without noticing cannot move the checkpoint. Use
 * message ids to detect repetitions, and the lease's token to detect a replaced owner.
 *
 * A message that does not match the schema is moved to the data stream's dead letters with the reason, and processing
 * continues with the next message. The same happens if the schema, `until` or `key` throws on a message.
 *
 * **Example** (Processing orders until the last one)
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
 * A message and the value that the schema decoded from it.
 *
 * **Details**
 *
 * It contains the message's id and fields, so it can be passed to `lease.deadLetter` unchanged.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface Message<out A> extends RawMessage {
  readonly value: A
  /**
   * How many messages had been added to the data stream, up to and including this one, as far as the reader knows.
   * Other systems call this the offset. Undefined before Redis 7.0, and after a checkpoint without an offset until the
   * reader has counted the messages after that checkpoint.
   */
  readonly offset: number | undefined
  /** Whether the data stream ends with this message. Pass it on when you commit. */
  readonly isLast: boolean
}

/**
 * Options for `messages`.
 *
 * @see {@link messages}
 * @category options
 * @since 0.1.0
 */
export interface ReadOptions<in A, out R = never> {
  /**
   * The field that contains the whole message as JSON, which the schema decodes. By default the schema decodes a record
   * of all fields, whose values are strings. If a field occurs more than once, its last value is used.
   */
  readonly field?: string | undefined
  /**
   * Decides whether a message is the last one. The last message is delivered, and ends the data stream. If the stream
   * is announced again after its end, reading continues up to the next last message, or until the stream is deleted.
   * Default: none.
   */
  readonly until?: ((message: Omit<Message<A>, "isLast">) => boolean) | undefined
  /** Maximum number of messages in one read. Default: 100. */
  readonly batch?: number | undefined
  /**
   * Approximate number of bytes in one read. The number of messages depends on the average size in the previous read;
   * the first read has up to 16. Sizes are counted in characters of field names and values. Default: 1,048,576.
   */
  readonly batchBytes?: number | undefined
  /**
   * Runs if messages were deleted before they were read, if the data stream was deleted and recreated, or if the server
   * lost messages that had been read. The reader compares its position with the data stream's counters at the start, at
   * the end, at most once a second while messages arrive, and every 30 seconds while none arrive. Default: log a
   * warning.
   */
  readonly onGap?: ((gap: Gap) => Effect.Effect<void, never, R>) | undefined
  /**
   * Where to start in a data stream without a checkpoint: at the first message, at the next one to arrive, at the
   * message with this id, or at the first message at or after a time (ids contain the server's time). A position other
   * than "beginning" is stored as the checkpoint, and deleted messages before it are not reported as a gap. Default:
   * "beginning".
   */
  readonly from?: StartPosition | undefined
  /**
   * For applications that keep the id of the last processed message in their own database: reading starts after it,
   * regardless of the checkpoint. `None` means that nothing has been processed yet: reading starts at the first
   * message, or as specified by `from`. Default: the checkpoint.
   */
  readonly after?: Option.Option<string> | undefined
}

/**
 * Messages that are missing from a data stream.
 *
 * **Details**
 *
 * - `Deleted`: messages were deleted before they were read. The deleted messages came after `after` and no later than
 *   `until`; some messages in this range may have been read. `missed` is the number of missed messages, according to
 *   the counters in Redis 7.0 and later. It includes messages that an earlier owner missed without noticing, which may
 *   come before `after`. It is `None` after a checkpoint without an offset, which results from a commit by id alone.
 *   Before Redis 7.0, a gap is found only if all messages were trimmed, and `missed` is `None`.
 * - `Rewritten`: the data stream was deleted and recreated with ids smaller than the checkpoint. The checkpoint was
 *   moved back to the beginning, and all messages are read.
 * - `LostEnd`: after a failover, the new primary lacks the newest messages: those after `after`, up to and including
 *   `until`. Reading continues after the last remaining message, or after the checkpoint if the reader does not know
 *   the last remaining message. `missed` is the number of lost messages that had been read, if known. A producer can
 *   write the lost messages again.
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
 * Options for `process`.
 *
 * @see {@link process}
 * @category options
 * @since 0.1.0
 */
export interface ProcessOptions<in A, out R = never> extends ReadOptions<A, R> {
  /**
   * Commits after this many messages. A larger number is faster, but up to that many messages may be processed again.
   * Default: 1.
   */
  readonly commitEvery?: number | undefined
  /**
   * Maximum time from the first uncommitted message to its commit. Without `concurrency`, a message that is being
   * processed delays the commit. Default: no limit.
   */
  readonly commitWithin?: Duration.Input | undefined
  /**
   * How many messages are processed concurrently. The checkpoint never passes an unfinished message. Up to 100
   * messages, or four times this number if that is more, are processed ahead of the checkpoint, and may be processed
   * again. Default: 1 (in order).
   */
  readonly concurrency?: number | undefined
  /**
   * Messages with the same key are processed in order, one at a time, regardless of `concurrency`. Default: the message
   * id, so messages are processed in no particular order.
   */
  readonly key?: ((message: Message<A>) => string) | undefined
  /**
   * How many times the handler tries a message. After the last failure, the message is dead-lettered and processing
   * continues with the next one. With `Infinity`, a failure ends `process`, and the `retry` option of
   * `StreamClient.run` decides what happens. Default: 10, which takes about two and a half minutes with the default
   * `backoff`.
   */
  readonly attempts?: number | undefined
  /**
   * The pauses between attempts. The schedule receives the cause of each failure. When it ends, the message is
   * dead-lettered. Default: one second, doubling up to 30 seconds.
   */
  readonly backoff?: Schedule.Schedule<unknown, Cause.Cause<unknown>> | undefined
}

/**
 * Options for `processBatches`. Batches are processed one at a time, and each is committed once, unless its messages
 * are retried one by one.
 */
interface BatchOptions<in A, out R = never> extends ReadOptions<A, R>, Pick<ProcessOptions<A>, "attempts" | "backoff"> {
  /**
   * How long a batch waits for more messages after its first one. Default: it does not wait, and contains the messages
   * from one read.
   */
  readonly batchWithin?: Duration.Input | undefined
}

/** Without `field`, a schema decodes the record of all fields, whose values are strings. */
type Fields<I> = object & { readonly [Field in keyof I]: string | undefined }

/**
 * The errors that can end reading before the last message.
 *
 * **Details**
 *
 * The lease is lost, the handler yields the data stream after a revocation, the backend refuses a request, or an option
 * is invalid.
 *
 * **Example** (Handling a revocation differently)
 *
 * ```ts
 * import type { StreamMessages } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const noted = <A, R>(work: Effect.Effect<A, StreamMessages.MessagesError, R>) =>
 *   Effect.tapError(work, (error) =>
 *     error._tag === "StreamYielded" ? Effect.log(`${error.stream} continues elsewhere`) : Effect.logWarning(error.message))
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
 * Reads messages from the data stream whose `StreamLease` is in the context, starting after the checkpoint.
 *
 * **Details**
 *
 * The stream waits for further messages, and ends after the last one. After a revocation it ends with `lease.yield`
 * before the next message.
 *
 * **Gotchas**
 *
 * You commit messages yourself, so you can group, buffer or process them in parallel. To commit, call
 * `lease.commit(message.id, message)`, which also records whether the message is the last one. Commit a message once it
 * and all messages before it have been processed. Your next commit covers messages that could not be decoded. Until
 * then, a successor decodes them again, but does not add second dead letters.
 *
 * **Example** (Committing at your own pace)
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
 * Runs `handler` on one message after another, and commits the processed messages.
 *
 * **Details**
 *
 * Succeeds after the last message, as determined by `until`, and `StreamClient.run` then marks the data stream as done.
 * Without `until` it never succeeds.
 *
 * - After a revocation it stops between two messages, commits, and ends with `lease.yield`.
 * - A message whose handler fails is retried according to `attempts` and `backoff`, while later messages wait. After
 *   the last attempt, the message is dead-lettered with the cause as its reason, and the next message follows.
 * - One of this library's errors (`LeaseLost`, `StreamYielded`, `StaleToken`, `BackendError`, `ProtocolError`,
 *   `AcquireTimeout`) does not count as a failure of the message. It ends `process` after committing the earlier
 *   messages. The next run of the handler starts with the same message.
 * - It waits out backend outages while the lease lasts.
 *
 * **Gotchas**
 *
 * Attempts are counted in memory, so a message that kills its process never reaches the limit. The failure counts
 * against its announcement instead, which is dead-lettered after `maxFailures` and `deadLetterAfter`. If a system that
 * the handler depends on is down for longer than all attempts take, good messages are dead-lettered. To avoid that,
 * retry the call in the handler until the outage is over.
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
      ? messageLoop.inBatches(loop, { count: 1, bytes: Infinity, waitMillis: 0 }, ([message]) => handler(message))
      : concurrently(loop, { concurrency, key }, handler)
    yield* Effect.onError(run, () => loop.commits.atLast)
  })

/** The types of all operations already require the hook's services. */
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
      // With concurrency, a single loop commits for all handlers
      attempt: messageAttempts.make(lease, options ?? {}, isOne ? commits.whenDue : Effect.never)
    }
  })

/**
 * Runs `handler` on one batch of messages after another, and commits once after each batch.
 *
 * **When to use**
 *
 * Use it when processing many messages together costs little more than processing one, as with a multi-row insert.
 *
 * **Details**
 *
 * A batch has up to `batch` messages or about `batchBytes`, and waits for at most `batchWithin` after its first
 * message. Everything else works as in `process`. If a batch fails on all `attempts`, its messages are processed one by
 * one, each with as many attempts and its own commit. Messages that still fail are dead-lettered.
 *
 * **Example** (Inserting many rows at a time)
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
    const limits = { count: batch, bytes: batchBytes, waitMillis: Duration.toMillis(batchWithin) }
    yield* Effect.onError(messageLoop.inBatches(loop, limits, handler), () => loop.commits.atLast)
  })
