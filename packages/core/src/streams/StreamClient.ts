/**
 * Stream ownership: a fleet of consumers shares many data streams, each owned by one consumer at a time, and taken over
 * within moments when its owner dies or hangs.
 *
 * Producers `announce` data streams. Consumers `run` a handler: one fiber for each data stream that this process owns.
 *
 * **Example** (A producer and a consumer)
 *
 * ```ts
 * import { StreamClient, StreamLease } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const producer = StreamClient.announce("orders:eu", { region: "eu" })
 *
 * const consumer = StreamClient.run(Effect.gen(function*() {
 *   const lease = yield* StreamLease.StreamLease
 *   yield* Effect.log(`processing ${lease.stream} with token ${lease.token}`)
 * }))
 * ```
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import type * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { FencingToken } from "../FencingToken.ts"
import type { BackendError, InvalidConfig, InvalidName, StoreError } from "../SimbaError.ts"
import { make } from "./internal/client.ts"
import * as StreamConfig from "./StreamConfig.ts"
import type { AlreadyClaimed, StreamLost, StreamNotFound } from "./StreamError.ts"
import type { StreamLease } from "./StreamLease.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { StreamNotification } from "./StreamNotification.ts"
import type { DeadLetter, ServiceState, StreamStore } from "./StreamStore.ts"

/**
 * The operations of this module, for one service and one consumer.
 *
 * **Example** (A consumer that knows its own name)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const program = StreamClient.StreamClient.use(({ id, run }) => run((lease) => Effect.log(`${lease.stream} is at ${id}`)))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class StreamClient extends Context.Service<StreamClient, {
  /** The consumer as the backend knows it. */
  readonly id: string
  readonly run: <A, E, R, R2 = never>(
    handler: Handler<A, E, R>,
    options?: RunOptions<R2>
  ) => Effect.Effect<never, RunError, Exclude<R, StreamLease> | R2>
  readonly notifications: Stream.Stream<StreamNotification, InvalidConfig>
  readonly announceAll: (
    announcements: ReadonlyArray<Announcing>
  ) => Effect.Effect<ReadonlyArray<Announced>, InvalidName | StoreError>
  readonly claim: (stream: string) => Effect.Effect<StreamLease["Service"], ClaimError>
  readonly doneStream: (stream: string) => Effect.Effect<void, EndError>
  readonly release: (stream: string) => Effect.Effect<void, EndError>
  readonly owned: Effect.Effect<ReadonlyArray<StreamLease["Service"]>>
  readonly inspect: Effect.Effect<ServiceState, StoreError>
  readonly deadLetters: (options?: {
    readonly after?: EntryId | undefined
    readonly count?: number | undefined
  }) => Effect.Effect<ReadonlyArray<DeadLetter>, StoreError>
  readonly redrive: (id: EntryId) => Effect.Effect<boolean, StoreError>
}>()("@effect-simba/core/StreamClient") {}

/**
 * A client on whatever store is provided. Invalid options are refused when the layer is built. Building it joins
 * nothing: a producer needs no more than this.
 *
 * Closing it asks for everything back that is owned, waits for the grace, and gives the rest back; nothing that is
 * unfinished is acknowledged.
 *
 * **Example** (A consumer as a layer of its own)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Layer } from "effect"
 *
 * const failed = (error: StreamClient.RunError) => Effect.logFatal(error.message)
 *
 * const Consumer = Layer.effectDiscard(Effect.forkScoped(
 *   Effect.tapError(StreamClient.run(({ stream }) => Effect.log(stream)), failed)
 * )).pipe(Layer.provideMerge(StreamClient.layer({ service: "orders", capacity: 100 })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: StreamConfig.Options
): Layer.Layer<StreamClient, InvalidConfig | BackendError, StreamStore> => Layer.effect(StreamClient, make(options))

/**
 * Like `layer`, with the consumer's id from `POD_NAME`, else from `POD_IP`, unless it is given here.
 *
 * **Example** (In Kubernetes)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 *
 * // POD_NAME comes from the field metadata.name of the pod
 * const Orders = StreamClient.layerFromEnv({ service: "orders" })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFromEnv = (
  options: StreamConfig.Options
): Layer.Layer<StreamClient, InvalidConfig | BackendError | Config.ConfigError, StreamStore> =>
  Layer.effect(
    StreamClient,
    Effect.flatMap(
      StreamConfig.config,
      ({ consumer }) => make({ ...options, consumer: options.consumer ?? consumer })
    )
  )

/**
 * Takes part in the service, until interrupted: takes data streams as there is room for them (new ones, and those whose
 * owner died, hangs or gave them back), and runs the handler for each, in a fiber of its own.
 *
 * - The handler succeeds: the data stream is done, and its announcement is removed.
 * - It fails: see `RunOptions`. `StreamLease.handBack` is no failure; it gives the data stream to others.
 * - The data stream is lost: the handler is interrupted, no later than the local deadline.
 * - It is asked back, for a consumer with more room: `StreamLease.revoked` completes. After the grace the
 *   handler is interrupted, and the data stream goes on to the other one after the handler, its finalizers included, has
 *   ended.
 *
 * Interrupting it asks everything back in the same way, and returns when all handlers have ended and everything is given
 * back. Handlers run at least once: a successor may begin with what its predecessor had not committed.
 *
 * One consumption at a time: another `run`, or reading `notifications`, fails with `InvalidConfig`. Outages of the
 * backend are waited for; a refusal for good (permissions, a key of the wrong type) fails with its error.
 *
 * **Example** (A handler that comes to a good point when it is asked back)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Schedule } from "effect"
 *
 * const step = Effect.sleep("100 millis")
 *
 * const consumer = StreamClient.run((lease) =>
 *   Effect.forever(Effect.gen(function*() {
 *     yield* step
 *     yield* lease.progress
 *     if (yield* lease.isRevoked) return yield* lease.yield
 *   })), { retry: Schedule.spaced("5 seconds") })
 * ```
 *
 * @category consuming
 * @since 0.1.0
 */
export const run = <A, E, R, R2 = never>(
  handler: Handler<A, E, R>,
  options?: RunOptions<R2>
): Effect.Effect<never, RunError, StreamClient | Exclude<R, StreamLease> | R2> =>
  StreamClient.use((client) => client.run(handler, options))

/**
 * Takes part in the service for as long as it is read, and tells what happens: the lower-level way, for those who run
 * handlers themselves. New data streams and orphans are taken as there is room, and said to be added; `owned` has their
 * leases. Where the backend publishes expiries, `StreamExpired` says at once what a sweep would take a moment later:
 * `claim` it, or wait.
 *
 * Nothing is dropped: while too many are unread, no more data streams are taken. It ends with `StreamTerminated` when the
 * client closes, or when the backend refuses for good. Who stops reading leaves the service: what it was brought is asked
 * back, and given back after the grace.
 *
 * **Example** (What comes and goes)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Stream } from "effect"
 *
 * const watch = Stream.runForEach(StreamClient.notifications, (notification) =>
 *   notification._tag === "StreamTerminated" ? Effect.log(notification.reason) : Effect.log(notification.stream))
 * ```
 *
 * @category consuming
 * @since 0.1.0
 */
export const notifications: Stream.Stream<StreamNotification, InvalidConfig, StreamClient> = Stream.unwrap(
  Effect.map(StreamClient, (client) => client.notifications)
)

/**
 * Announces a data stream to the consumers of the service, now or later. Announcing one twice is harmless while the first
 * announcement is unfinished. A name that cannot be used fails with `InvalidName` before anything is sent.
 *
 * **Example** (Only the first time)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const announced = Effect.map(StreamClient.announce("orders:eu"), ({ entry, isNew }) => isNew ? entry : undefined)
 * ```
 *
 * @category producing
 * @since 0.1.0
 */
export const announce = (
  stream: string,
  info?: Readonly<Record<string, unknown>>
): Effect.Effect<Announced, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => Effect.map(client.announceAll([{ stream, info }]), ([announced]) => announced!))

/**
 * Announces many data streams in one call, in order.
 *
 * **Example** (A day's work)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 *
 * const day = StreamClient.announceAll(
 *   ["eu", "us", "asia"].map((region) => ({ stream: `orders:${region}`, info: { region } }))
 * )
 * ```
 *
 * @category producing
 * @since 0.1.0
 */
export const announceAll = (
  announcements: ReadonlyArray<Announcing>
): Effect.Effect<ReadonlyArray<Announced>, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.announceAll(announcements))

/**
 * Takes one data stream by name, whether there is room or not, without joining the service. It stays owned until it is
 * done, released or lost, or the client closes. Fails with `AlreadyClaimed` if anybody owns it, this client included; with
 * `StreamNotFound` if it is not announced, or no consumer was ever given it. Interrupted, it leaves nothing behind.
 *
 * **Example** (One data stream, by hand)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const work = Effect.succeed(true)
 *
 * const byHand: Effect.Effect<void, StreamClient.ClaimError | StreamClient.EndError, StreamClient.StreamClient> = Effect
 *   .gen(function*() {
 *     const { stream } = yield* StreamClient.claim("orders:eu")
 *     const isFinished = yield* work
 *     yield* isFinished ? StreamClient.doneStream(stream) : StreamClient.release(stream)
 *   })
 * ```
 *
 * @category claiming
 * @since 0.1.0
 */
export const claim = (stream: string): Effect.Effect<StreamLease["Service"], ClaimError, StreamClient> =>
  StreamClient.use((client) => client.claim(stream))

/**
 * Finishes an owned data stream: its announcement is removed for good. A handler of `run` is interrupted first, and
 * awaited, unless it or its `onError` is the caller. If it fails with a `BackendError`, the data stream may still be
 * owned: try again. Fails with `StreamLost` where it ends otherwise before that: lost, given back or buried.
 *
 * @see {@link claim}
 * @category claiming
 * @since 0.1.0
 */
export const doneStream = (stream: string): Effect.Effect<void, EndError, StreamClient> =>
  StreamClient.use((client) => client.doneStream(stream))

/**
 * Gives an owned data stream back, unfinished, for others to take at once. A handler of `run` is interrupted first, and
 * awaited, unless it or its `onError` is the caller: then it is given back when that has ended.
 *
 * @see {@link claim}
 * @category claiming
 * @since 0.1.0
 */
export const release = (stream: string): Effect.Effect<void, EndError, StreamClient> =>
  StreamClient.use((client) => client.release(stream))

/**
 * The leases of all data streams that this client owns at this instant.
 *
 * **Example** (The one with the least time left)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const least = Effect.map(
 *   Effect.flatMap(StreamClient.owned, Effect.forEach(({ timeLeft }) => timeLeft)),
 *   (all) => all.reduce(Duration.min, Duration.infinity)
 * )
 * ```
 *
 * @category claiming
 * @since 0.1.0
 */
export const owned: Effect.Effect<ReadonlyArray<StreamLease["Service"]>, never, StreamClient> = StreamClient.use(
  (client) => client.owned
)

/**
 * How the service is doing: see `ServiceState`.
 *
 * @see {@link StreamStore.ServiceState}
 * @category operating
 * @since 0.1.0
 */
export const inspect: Effect.Effect<ServiceState, StoreError, StreamClient> = StreamClient.use(
  (client) => client.inspect
)

/**
 * Announcements that could not be read, or whose handlers failed too often, the oldest first, at most `count` (default
 * 100), after the id `after`.
 *
 * @see {@link StreamStore.DeadLetter}
 * @category operating
 * @since 0.1.0
 */
export const deadLetters = (options?: {
  readonly after?: EntryId | undefined
  readonly count?: number | undefined
}): Effect.Effect<ReadonlyArray<DeadLetter>, StoreError, StreamClient> =>
  StreamClient.use((client) => client.deadLetters(options))

/**
 * Announces a dead letter again, with no failures counted. Answers whether it was there.
 *
 * @see {@link StreamStore.DeadLetter}
 * @category operating
 * @since 0.1.0
 */
export const redrive = (id: EntryId): Effect.Effect<boolean, StoreError, StreamClient> =>
  StreamClient.use((client) => client.redrive(id))

/**
 * A data stream to announce, and what its consumers should know about it: anything that JSON can say.
 *
 * @see {@link StreamClient.announceAll}
 * @category models
 * @since 0.1.0
 */
export interface Announcing {
  readonly stream: string
  readonly info?: Readonly<Record<string, unknown>> | undefined
}

/**
 * A data stream that is announced. `isNew` is false where it was announced before and is not finished yet.
 *
 * @see {@link StreamClient.announce}
 * @category models
 * @since 0.1.0
 */
export interface Announced {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly isNew: boolean
}

/**
 * A handler failed. `failures` counts, for this announcement and over all consumers, the failures of handlers and the
 * leases that ran out under one, since the last commit.
 *
 * @see {@link RunOptions}
 * @category models
 * @since 0.1.0
 */
export interface HandlerFailure {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly token: FencingToken
  readonly cause: Cause.Cause<unknown>
  readonly failures: number
}

/**
 * What is done about handlers that fail.
 *
 * - `retry` (default: a second after the first failure, doubling up to half a minute, without end): when the handler
 *   runs again, on the same data stream, which stays owned meanwhile. When the schedule ends, or after `maxFailures`
 *   failures without a commit in between, the announcement goes to the dead letters with the cause as its reason.
 * - `onError` (default: log an error): is told of each failure.
 *
 * **Example** (A counter, and five attempts)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Schedule } from "effect"
 *
 * const failed = Metric.counter("handlers_failed")
 *
 * const options: StreamClient.RunOptions = {
 *   retry: Schedule.recurs(4),
 *   onError: ({ failures }: StreamClient.HandlerFailure) => Metric.update(failed, failures === 1 ? 1 : 0)
 * }
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions<R = never> {
  readonly retry?: Schedule.Schedule<unknown, HandlerFailure, never, R> | undefined
  readonly onError?: ((failure: HandlerFailure) => Effect.Effect<void>) | undefined
}

/**
 * What runs for each data stream: an effect that finds its lease in its context, or a function of the lease.
 *
 * **Example** (A line before and after)
 *
 * ```ts
 * import type { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const noted = <A, E, R>(handler: Effect.Effect<A, E, R>): StreamClient.Handler<A, E, R> => ({ stream }) =>
 *   Effect.log(`begins with ${stream}`).pipe(
 *     Effect.andThen(handler),
 *     Effect.ensuring(Effect.log(`leaves ${stream}`))
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Handler<A, E, R> = Effect.Effect<A, E, R> | ((lease: StreamLease["Service"]) => Effect.Effect<A, E, R>)

/**
 * Why a consumer cannot go on. Outages are waited for and are none.
 *
 * @see {@link StreamClient.layer}
 * @category errors
 * @since 0.1.0
 */
export type RunError = InvalidConfig | StoreError

/**
 * Why a data stream could not be had.
 *
 * @see {@link StreamClient.claim}
 * @category errors
 * @since 0.1.0
 */
export type ClaimError = AlreadyClaimed | StreamNotFound | InvalidName | StoreError

/**
 * Why a data stream could not be ended.
 *
 * @see {@link StreamClient.claim}
 * @category errors
 * @since 0.1.0
 */
export type EndError = StreamNotFound | StreamLost | InvalidName | StoreError
