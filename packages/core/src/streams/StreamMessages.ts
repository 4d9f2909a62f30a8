/**
 * The messages of a data stream, decoded, in order, each at least once: what handlers of `StreamClient.run` do all day.
 *
 * **Guarantee.** Messages are given in the order of the data stream, from the one after the checkpoint on, or from the
 * first. The checkpoint is kept in the backend, moves forward only, and only at the word of the present owner. So when
 * the stream changes hands, the next owner begins after the last committed message: what was processed and not committed
 * is processed again, nothing is left out, and an owner that was replaced and does not know it moves nothing. What
 * happened twice shows by the id of the message; who is late shows by the token of the lease.
 *
 * A message that does not fit the schema goes to the dead letters of the data stream with the reason, when its turn has
 * come, and the next one follows.
 *
 * **Example** (Orders until the last one)
 *
 * ```ts
 *  * import { Effect, Schema } from "effect"
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
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { InvalidConfig, type StoreError } from "../SimbaError.ts"
import { MessageReader, persistently } from "./internal/messageReader.ts"
import type { StreamLost, StreamYielded } from "./StreamError.ts"
import { StreamLease } from "./StreamLease.ts"
import type { EntryId } from "./StreamName.ts"
import type { RawMessage } from "./StreamStore.ts"

/**
 * A message with what the schema made of it. As it has its id and fields, it can go to `lease.deadLetter` as it is.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface Message<out A> extends RawMessage {
  readonly value: A
}

/**
 * - `field` (default none): the field that holds the whole message as JSON, which the schema describes. Without it, the
 *   schema describes a record of all fields, whose values are strings; of a field that occurs twice, the last counts.
 * - `until` (default never): says of a message that it is the last one. It is given too; then the data stream is at its
 *   end. Where the last committed message was the last one and nothing follows it, there is nothing more to give.
 * - `moreWithin` (default 1 minute): in a data stream that is announced anew after its end, how long to wait for a first
 *   message before it is at its end again.
 * - `batch` (default 100): how many messages are read at once.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface ReadOptions<in A> {
  readonly field?: string | undefined
  readonly until?: ((message: Message<A>) => boolean) | undefined
  readonly moreWithin?: Duration.Input | undefined
  readonly batch?: number | undefined
}

/**
 * - `commitEvery` (default 1): commits after so many messages. More is faster, and as many may be processed again.
 * - `commitWithin` (default none): commits at the latest so long after the first uncommitted message, or when the message
 *   that is being processed then is through.
 *
 * @see {@link process}
 * @category models
 * @since 0.1.0
 */
export interface ProcessOptions<in A> extends ReadOptions<A> {
  readonly commitEvery?: number | undefined
  readonly commitWithin?: Duration.Input | undefined
}

/**
 * What ends the reading of messages, besides the last message: the loss of the lease, its return when it is asked back,
 * a backend that refuses.
 *
 * **Example** (Going on to something else when asked back)
 *
 * ```ts
 *  * import { Effect } from "effect"
 *
 * const noted = <A, R>(work: Effect.Effect<A, StreamMessages.MessagesError, R>) =>
 *   Effect.tapError(work, (error) =>
 *     error._tag === "StreamYielded" ? Effect.log(`${error.stream} goes on elsewhere`) : Effect.logWarning(error.message))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export type MessagesError = StreamLost | StreamYielded | StoreError | InvalidConfig

const check = (options: ProcessOptions<never> | undefined): Effect.Effect<void, InvalidConfig> => {
  for (const option of ["batch", "commitEvery"] as const) {
    const value = options?.[option] ?? 1
    if (!Number.isSafeInteger(value) || value < 1) {
      return Effect.fail(new InvalidConfig({ option, problem: `${value} is not a whole number of at least 1` }))
    }
  }
  const within = options?.commitWithin
  if (within !== undefined && Option.exists(Duration.fromInput(within), Duration.isPositive) === false) {
    return Effect.fail(new InvalidConfig({ option: "commitWithin", problem: "it must be a duration above zero" }))
  }
  const more = options?.moreWithin ?? 0
  // Not a number would be zero
  if (Number.isNaN(more) || !Option.exists(Duration.fromInput(more), (wait) => !Duration.isNegative(wait))) {
    return Effect.fail(new InvalidConfig({ option: "moreWithin", problem: "it must be a duration of zero or more" }))
  }
  return Effect.void
}

/**
 * The messages of the data stream of the `StreamLease` in context, from the checkpoint on, waiting for further ones; it
 * ends after the last one. Asked back, it ends by `lease.yield` before the next message.
 *
 * **Nothing is committed** but by you, with `lease.commit(message.id)`, and by a message that cannot be decoded: it moves
 * the checkpoint past itself when its turn has come, that is, when the reader asks for what follows the message before
 * it. So process one message after the other, and put nothing between that reads ahead (`buffer`, `grouped`,
 * `concurrency`), or commit nothing that way and expect nothing of the messages before an undecodable one.
 *
 * **Example** (Commits at one's own pace)
 *
 * ```ts
 * import { StreamLease } from "@effect-simba/core/streams"
 * import { Effect, Schema, Stream } from "effect"
 *
 * const Reading = Schema.Struct({ celsius: Schema.FiniteFromString })
 *
 * const handler = Effect.gen(function*() {
 *   const lease = yield* StreamLease.StreamLease
 *   yield* StreamMessages.messages(Reading).pipe(
 *     Stream.tap(({ value }) => Effect.log(value.celsius)),
 *     Stream.runForEach(({ id, value }) => Effect.when(lease.commit(id), Effect.succeed(value.celsius > 30)))
 *   )
 * })
 * ```
 *
 * @category streams
 * @since 0.1.0
 */
export const messages = <A, I, RD = never>(
  schema: Schema.Codec<A, I, RD, unknown>,
  options?: ReadOptions<A>
): Stream.Stream<Message<A>, MessagesError, StreamLease | RD> =>
  Stream.unwrap(Effect.gen(function*() {
    yield* check(options)
    const reading = new MessageReader(yield* StreamLease, schema, options)
    return Stream.fromPull(Effect.succeed(
      // One at a time: to ask for the next is to be done with the last
      Effect.flatMap(
        reading.next(),
        (message) => message === undefined ? Cause.done() : Effect.succeed(Arr.of(message))
      )
    ))
  }))

/**
 * Runs `handler` on one message after the other, and commits what was processed. Succeeds after the last message, which
 * `until` tells, so that `StreamClient.run` marks the data stream as done; without `until` it never succeeds.
 *
 * - Asked back, it stops between two messages, commits, and ends by `lease.yield`.
 * - A failure of the handler ends it, after a commit of the messages before. Which message failed is processed again by
 *   whoever tries next. A handler that knows that it will never succeed gives the message to `lease.deadLetter` and succeeds.
 * - An outage of the backend is waited out for as long as the lease lasts.
 *
 * **Example** (A handler that commits less often)
 *
 * ```ts
 *  * import { Effect, Schema } from "effect"
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
export const process = <A, I, X, E, R, RD = never>(
  schema: Schema.Codec<A, I, RD, unknown>,
  handler: (message: Message<A>) => Effect.Effect<X, E, R>,
  options?: ProcessOptions<A>
): Effect.Effect<void, E | MessagesError, R | RD | StreamLease> =>
  Effect.gen(function*() {
    yield* check(options)
    const lease = yield* StreamLease
    const clock = yield* Clock.Clock
    const reading = new MessageReader(lease, schema, options)
    const every = options?.commitEvery ?? 1
    const within = options?.commitWithin === undefined
      ? Infinity
      : Duration.toMillis(Duration.fromInputUnsafe(options.commitWithin))
    const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
    let processed: { readonly id: EntryId; readonly count: number; readonly since: number } | undefined

    const flush = Effect.suspend(() => {
      if (processed === undefined) return Effect.void
      const { id } = processed
      return Effect.andThen(lease.commit(id), Effect.sync(() => processed = undefined))
    })
    const flushWhenDue = Effect.suspend(() =>
      processed === undefined || within === Infinity
        ? Effect.never
        : Effect.sleep(Duration.millis(Math.max(0, processed.since + within - now()))).pipe(
          Effect.andThen(persistently(flush)),
          Effect.andThen(Effect.never)
        )
    )
    // What is not committed here is processed again: no reason to hide why it ended, or to outlast the lease
    const flushAtLast = Effect.flatMap(lease.timeLeft, (left) =>
      Duration.isPositive(left) ? Effect.timeout(flush, left) : Effect.void).pipe(
        Effect.catchCause((cause) =>
          Effect.logDebug("What was processed could not be committed, and will be processed again", cause)
        )
      )

    const loop = Effect.gen(function*() {
      for (;;) {
        const message = yield* reading.next(flushWhenDue)
        if (message === undefined) {
          return yield* persistently(flush)
        }
        yield* handler(message)
        processed = { id: message.id, count: (processed?.count ?? 0) + 1, since: processed?.since ?? now() }
        if (processed.count >= every || now() - processed.since >= within) {
          yield* persistently(flush)
        } else yield* lease.progress
      }
    })
    yield* Effect.onError(loop, () =>
      flushAtLast)
  })
