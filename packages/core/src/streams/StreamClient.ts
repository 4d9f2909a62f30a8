/**
 * Data streams shared by a fleet of consumers, each owned by one consumer at a time.
 *
 * A producer announces data streams to a service. The service's consumers share them evenly, and take over the streams
 * of consumers that die, hang or leave.
 *
 * **Example** (A handler that owns one data stream at a time)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const producer = StreamClient.announce("orders:eu", { region: "eu" })
 *
 * const consumer = StreamClient.run((lease) => Effect.log(`${lease.stream} is ours, with token ${lease.token}`))
 * ```
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FencingToken } from "../FencingToken.ts"
import type { HookServices } from "../internal/hookServices.ts"
import type { BackendError, InvalidConfig, InvalidName, StoreError } from "../SimbaError.ts"
import { make } from "./internal/client.ts"
import type { StartPosition } from "./internal/startPosition.ts"
import type { AlreadyOwned, StreamNotFound } from "./StreamError.ts"
import type { StreamLease } from "./StreamLease.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { StreamNotification } from "./StreamNotification.ts"
import type { DeadLetter, DeadMessage, Lag, ServiceState } from "./StreamState.ts"
import type { StreamStore } from "./StreamStore.ts"

type Announcing = {
  readonly stream: string
  /** What consumers should know about the data stream, as a JSON object. */
  readonly info?: Readonly<Record<string, unknown>> | undefined
}

/**
 * The result of an announcement.
 *
 * @see {@link announce}
 * @category models
 * @since 0.1.0
 */
export interface Announced {
  readonly stream: StreamName
  readonly entry: EntryId
  /**
   * False if the data stream was already announced and is not finished yet. If messages were written since then, the
   * existing announcement is repeated: it then covers messages after the stream's end too.
   */
  readonly isNew: boolean
}

type PageOptions = {
  /** Lists only items with larger ids. */
  readonly after?: EntryId | undefined
  /** Maximum number of items. Default: 100. */
  readonly limit?: number | undefined
}

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
  /** The consumer's name in the consumer group. */
  readonly id: string
  readonly run: <A, E, R, RS = never, RH = never>(
    handler: Handler<A, E, R>,
    options?: RunOptions<RS, RH>
  ) => Effect.Effect<never, InvalidConfig | StoreError, Exclude<R | HookServices<RS | RH>, StreamLease>>
  readonly notifications: Stream.Stream<StreamNotification, InvalidConfig>
  readonly announce: (
    stream: string,
    info?: Readonly<Record<string, unknown>>
  ) => Effect.Effect<Announced, InvalidName | StoreError>
  readonly announceAll: (
    announcements: ReadonlyArray<Announcing>
  ) => Effect.Effect<ReadonlyArray<Announced>, InvalidName | StoreError>
  readonly acquireIfAvailable: (
    stream: string
  ) => Effect.Effect<Option.Option<StreamLease>, StreamNotFound | InvalidName | StoreError, Scope.Scope>
  readonly owned: Effect.Effect<ReadonlyArray<StreamLease>>
  readonly inspect: Effect.Effect<ServiceState, StoreError>
  readonly deadLetters: (options?: PageOptions) => Effect.Effect<ReadonlyArray<DeadLetter>, StoreError>
  readonly redrive: (id: string) => Effect.Effect<boolean, InvalidName | StoreError>
  readonly redriveAll: (options?: RedriveOptions) => Effect.Effect<number, StoreError>
  readonly deadMessages: (
    stream: string,
    options?: PageOptions
  ) => Effect.Effect<ReadonlyArray<DeadMessage>, InvalidName | StoreError>
  readonly redriveMessage: (stream: string, id: string) => Effect.Effect<boolean, InvalidName | StoreError>
  readonly seek: (
    stream: string,
    to: StartPosition,
    options?: SeekOptions
  ) => Effect.Effect<EntryId, AlreadyOwned | InvalidConfig | InvalidName | StoreError>
  readonly lag: (stream: string) => Effect.Effect<Lag, InvalidName | StoreError>
  readonly trim: (
    stream: string,
    options?: TrimOptions
  ) => Effect.Effect<number, InvalidConfig | InvalidName | StoreError>
  readonly pause: (stream?: string) => Effect.Effect<boolean, InvalidName | StoreError>
  readonly resume: (stream?: string) => Effect.Effect<boolean, InvalidName | StoreError>
}>()("@effect-simba/core/StreamClient") {}

/**
 * Options for `StreamClient.layer`.
 *
 * **Example** (A consumer with few data streams)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 *
 * const options: StreamClient.Options = { service: "orders", capacity: 8, gracePeriod: "30 seconds" }
 *
 * const Orders = StreamClient.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The service whose data streams the consumers share. Its load-balancer stream is `<service>-input`. */
  readonly service: string
  /**
   * The name of this process. Its consumer is called `simba-consumer-<name>`. Running clients of the same service must
   * not share a name. Default: `<pid>@<host>`.
   */
  readonly processName?: string | undefined
  /**
   * Maximum number of data streams that the client owns. Acquiring a data stream by name ignores the limit, but the
   * stream counts towards it. Default: 64.
   */
  readonly capacity?: number | undefined
  /** How long an owner keeps a data stream without renewing its lease. Default: 2 seconds. */
  readonly leaseDuration?: Duration.Input | undefined
  /**
   * How often an owner renews its leases. The sum of this interval, `commandTimeout` and the safety margin (5% of
   * `leaseDuration`, at least 100 milliseconds) must be less than `leaseDuration`. Default: 1 second.
   */
  readonly heartbeatInterval?: Duration.Input | undefined
  /** Timeout for a single request to the backend, such as a renewal or a claim. Default: 500 milliseconds. */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How often the client sweeps for data streams without an owner. The interval varies randomly by up to 20%. A
   * consumer with free capacity therefore takes an orphan within `leaseDuration` plus 1.2 times `sweepInterval`.
   * Default: 2 seconds.
   */
  readonly sweepInterval?: Duration.Input | undefined
  /** How long a handler may continue after its data stream has been revoked. Default: 5 seconds. */
  readonly gracePeriod?: Duration.Input | undefined
  /**
   * When the client closes and all handlers have ended, it releases data streams without a handler in batches of 200.
   * This is the timeout for each batch; the client gives up after the first batch that exceeds it. It also limits how
   * long `onError` may run for a handler that failed while it was being interrupted. Default: 2 seconds.
   */
  readonly releaseTimeout?: Duration.Input | undefined
  /**
   * An announcement is dead-lettered after this many consecutive handler failures, without a commit or a progress
   * report between them, if the failures have also lasted for `deadLetterAfter`. Default: 10.
   */
  readonly maxFailures?: number | undefined
  /**
   * How long consecutive failures must last before an announcement is dead-lettered. It should exceed any outage of the
   * systems that the handlers depend on. The count is reset after an hour without a failure, or after `deadLetterAfter`
   * if that is longer. Default: 1 hour.
   */
  readonly deadLetterAfter?: Duration.Input | undefined
  /**
   * Whether the client exchanges data streams with other consumers, until each has a share in proportion to its
   * capacity. If false, the client still takes orphans and new data streams. Default: true.
   */
  readonly rebalance?: boolean | undefined
  /**
   * How long a consumer has to confirm a data stream that was handed over to it. It must exceed `commandTimeout`.
   * Default: 1.5 seconds.
   */
  readonly confirmTimeout?: Duration.Input | undefined
  /**
   * How long a handler with work may go without a commit or a progress report before it loses its data stream. Time
   * spent waiting in `messagesAfter` does not count. Default: no limit.
   */
  readonly progressTimeout?: Duration.Input | undefined
  /**
   * Whether to enable expiry events in the server's keyspace notification setting. Consumers that run
   * redis-stream-client-go receive these events too. Without them, only sweeps find data streams whose lease has
   * expired. Default: false.
   */
  readonly enableEvents?: boolean | undefined
  /**
   * How long a consumer with nothing pending may be silent before it is removed from the consumer group. Default: 10
   * minutes.
   */
  readonly reapAfter?: Duration.Input | undefined
  /**
   * How long a data stream's checkpoint is kept after its last commit and after the last day on which it was owned. It
   * should exceed the time between two announcements of a data stream: without a checkpoint, the handler starts at the
   * first message. The minimum and the default are 7 days.
   */
  readonly checkpointRetention?: Duration.Input | undefined
}

/**
 * Provides `StreamClient` using the current `StreamStore`.
 *
 * **Details**
 *
 * Building the layer fails if an option is invalid. It does not join the service, so producers can use it too. Closing
 * it revokes all data streams that the client owns, waits for the grace period, and releases the rest. Unfinished
 * announcements are not acknowledged.
 *
 * **Gotchas**
 *
 * A process with clients for two services needs two service classes: see `Service`.
 *
 * **Example** (A consumer as a layer)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Layer } from "effect"
 *
 * const Consumer = Layer.effectDiscard(
 *   StreamClient.run(({ stream }) => Effect.log(stream)).pipe(
 *     Effect.tapError((error) => Effect.logFatal(error.message)),
 *     Effect.forkScoped
 *   )
 * ).pipe(Layer.provideMerge(StreamClient.layer({ service: "orders", capacity: 100 })))
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<StreamClient, InvalidConfig | BackendError, StreamStore> => Layer.effect(StreamClient, make(options))

/**
 * Like `layer`, but reads the options from `Config`.
 *
 * **Example** (Options under names chosen by the application)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Config } from "effect"
 *
 * const Orders = StreamClient.layerConfig({
 *   service: Config.succeed("orders"),
 *   capacity: Config.Int("ORDERS_CAPACITY")
 * })
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<StreamClient, InvalidConfig | BackendError | Config.ConfigError, StreamStore> =>
  Layer.effect(StreamClient, Effect.flatMap(Config.unwrap(options), make))

/**
 * Creates a service class for one service's client, with its layers.
 *
 * **When to use**
 *
 * Use it when a process has clients for several services. If you merge two `StreamClient.layer`s, one replaces the
 * other, because both provide `StreamClient`.
 *
 * **Example** (Two services in one process, which share one `IoRedis` layer)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { RedisStreams } from "@effect-simba/redis/streams"
 * import { Effect, Layer } from "effect"
 *
 * class Orders extends StreamClient.Service<Orders>()("app/Orders") {}
 * class Refunds extends StreamClient.Service<Refunds>()("app/Refunds") {}
 *
 * const consumers = Effect.all([
 *   Orders.use(({ run }) => run(({ stream }) => Effect.log(`an order in ${stream}`))),
 *   Refunds.use(({ run }) => run(({ stream }) => Effect.log(`a refund in ${stream}`)))
 * ], { concurrency: "unbounded" })
 *
 * const ClientsLive = Layer.mergeAll(Orders.layer({ service: "orders" }), Refunds.layer({ service: "refunds" })).pipe(
 *   Layer.provide(RedisStreams.layerStore)
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const Service = <Self>() =>
<const Key extends string>(
  key: Key
):
  & Context.ServiceClass<Self, Key, StreamClient["Service"]>
  & {
    readonly layer: (options: Options) => Layer.Layer<Self, InvalidConfig | BackendError, StreamStore>
    readonly layerConfig: (
      options: Config.Wrap<Options>
    ) => Layer.Layer<Self, InvalidConfig | BackendError | Config.ConfigError, StreamStore>
  } =>
  class extends Context.Service<Self, StreamClient["Service"]>()(key) {
    static readonly layer = (options: Options) => Layer.effect(this, make(options))
    static readonly layerConfig = (options: Config.Wrap<Options>) =>
      Layer.effect(this, Effect.flatMap(Config.unwrap(options), make))
  }

/**
 * Joins the service until interrupted, and runs the handler for each data stream that it takes, each in a separate
 * fiber.
 *
 * **Details**
 *
 * While the client has free capacity, it takes new data streams, and data streams whose owner has died, is hanging, or
 * has yielded them. Then one of the following happens to each data stream:
 *
 * - Its handler succeeds: the data stream is done, and its announcement is removed.
 * - Its handler fails: the handler runs again, or the announcement is dead-lettered (see `RunOptions`).
 * - Its handler yields with `StreamLease.yield`, which is not a failure: the data stream is left to other consumers.
 * - Its lease is lost: the handler is interrupted, no later than the local deadline.
 * - It is revoked in favor of a consumer that owns less than its share: `StreamLease.revoked` completes. After the
 *   grace period, the handler is interrupted unless it is processing a message that it read through the lease. The
 *   other consumer gets the data stream once the handler and its finalizers have ended.
 *
 * Interrupting `run` revokes all its data streams, and interrupts every handler that is still running after the grace
 * period. The interruption completes when all handlers have ended. `run` waits out backend outages. It fails if the
 * backend permanently refuses a request, for example because of missing permissions or a key of the wrong type.
 *
 * **Gotchas**
 *
 * Handlers run at least once: a successor may repeat work that its predecessor did not commit. A client can join only
 * once at a time: until it has left, another `run` or reader of `notifications` fails with `InvalidConfig`. But if the
 * first one was interrupted and its handlers are still ending, the second one waits for them.
 *
 * **Example** (A handler that stops at a safe point when it is revoked)
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
 * @category running
 * @since 0.1.0
 */
export const run = <A, E, R, RS = never, RH = never>(
  handler: Handler<A, E, R>,
  options?: RunOptions<RS, RH>
): Effect.Effect<never, InvalidConfig | StoreError, StreamClient | Exclude<R | HookServices<RS | RH>, StreamLease>> =>
  StreamClient.use((client) => client.run(handler, options))

/**
 * Joins the service while the stream is read, and emits changes of ownership.
 *
 * **When to use**
 *
 * Use it instead of `run` to start and stop the work on data streams yourself. `owned` returns the leases.
 *
 * **Details**
 *
 * If the backend publishes expired leases, `StreamExpired` arrives before the next sweep: acquire the data stream, or
 * leave it to the sweep. Notifications are never dropped: while too many are unread, the client does not read new
 * announcements. The stream ends with `StreamTerminated` when the client closes or the backend permanently refuses a
 * request. When the program stops reading the stream, the client leaves the service: the data streams that it took are
 * revoked, and released after the grace period.
 *
 * **Example** (Logging changes of ownership)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Stream } from "effect"
 *
 * const watch = Stream.runForEach(StreamClient.notifications, (notification) =>
 *   notification._tag === "StreamTerminated" ? Effect.log(notification.reason) : Effect.log(notification.stream))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const notifications: Stream.Stream<StreamNotification, InvalidConfig, StreamClient> = Stream.unwrap(
  Effect.map(StreamClient, (client) => client.notifications)
)

/**
 * Announces a data stream to the service's consumers, present and future.
 *
 * **Details**
 *
 * An announcement covers the messages that were written before it, up to the last message as defined by `until` (see
 * `StreamMessages`). Announcing again after a last message starts another round of messages, whether or not the first
 * round is finished. Announcing again without new messages changes nothing, unless the data stream has no messages at
 * all: then its handler runs once more.
 *
 * `info` is a JSON object for the consumers. An invalid name fails with `InvalidName` before anything is sent.
 *
 * **Example** (Getting the entry of a new announcement)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const announced = Effect.map(StreamClient.announce("orders:eu"), ({ entry, isNew }) => isNew ? entry : undefined)
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const announce = (
  stream: string,
  info?: Readonly<Record<string, unknown>>
): Effect.Effect<Announced, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.announce(stream, info))

/**
 * Announces many data streams in one call, in order.
 *
 * **Example** (Announcing a day's data streams)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 *
 * const day = StreamClient.announceAll(
 *   ["eu", "us", "asia"].map((region) => ({ stream: `orders:${region}`, info: { region } }))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const announceAll = (
  announcements: ReadonlyArray<Announcing>
): Effect.Effect<ReadonlyArray<Announced>, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.announceAll(announcements))

/**
 * Takes one data stream by name and owns it while the scope is open, without joining the service. Ignores `capacity`.
 *
 * **Details**
 *
 * Returns `None` if a consumer, including this client, owns it or may be about to take it. When the scope closes, the
 * data stream is yielded unless it is already done or released. Closing the scope waits at most `releaseTimeout` for
 * the backend.
 *
 * Fails with `StreamNotFound` if the data stream has not been announced, if it is finished or dead-lettered, if its
 * announcement has not been delivered to a consumer yet, or if the client is closed. If the acquisition is interrupted,
 * the data stream is yielded.
 *
 * **Example** (Acquiring one data stream by name)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Option } from "effect"
 *
 * const byHand = Effect.scoped(Effect.gen(function*() {
 *   const lease = yield* StreamClient.acquireIfAvailable("orders:eu")
 *   if (Option.isNone(lease)) return
 *   yield* lease.value.protect(Effect.log("reading what is left"))
 *   yield* lease.value.done
 * }))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const acquireIfAvailable = (
  stream: string
): Effect.Effect<
  Option.Option<StreamLease>,
  StreamNotFound | InvalidName | StoreError,
  StreamClient | Scope.Scope
> => StreamClient.use((client) => client.acquireIfAvailable(stream))

/**
 * Returns the leases of all data streams that this client owns at this instant.
 *
 * **Example** (Finding the shortest time left)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const least = Effect.map(
 *   Effect.flatMap(StreamClient.owned, Effect.forEach(({ timeLeft }) => timeLeft)),
 *   (all) => all.reduce(Duration.min, Duration.infinity)
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const owned: Effect.Effect<ReadonlyArray<StreamLease>, never, StreamClient> = StreamClient.use(
  (client) => client.owned
)

/**
 * Reads the service's state.
 *
 * **Example** (Checking whether anything was dead-lettered)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const isHealthy = Effect.map(StreamClient.inspect, ({ deadLetters }) => deadLetters === 0)
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const inspect: Effect.Effect<ServiceState, StoreError, StreamClient> = StreamClient.use(
  (client) => client.inspect
)

/**
 * Lists announcements that could not be read or whose handlers failed too often, oldest first.
 *
 * **Example** (Reading why announcements were dead-lettered)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const reasons = Effect.map(
 *   StreamClient.deadLetters({ limit: 20 }),
 *   (letters) => letters.map(({ reason, stream }) => `${stream}: ${reason}`)
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const deadLetters = (
  options?: PageOptions
): Effect.Effect<ReadonlyArray<DeadLetter>, StoreError, StreamClient> =>
  StreamClient.use((client) => client.deadLetters(options))

/**
 * Announces a dead letter again, with its failures reset, and returns whether it existed. If its data stream has been
 * announced again in the meantime, only removes the dead letter.
 *
 * **Example** (Redriving the oldest dead letter)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const redriveFirst = Effect.flatMap(
 *   StreamClient.deadLetters({ limit: 1 }),
 *   Effect.forEach(({ id }) => StreamClient.redrive(id))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const redrive = (id: string): Effect.Effect<boolean, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.redrive(id))

type RedriveOptions = {
  /** Default: all. */
  readonly filter?: ((letter: DeadLetter) => boolean) | undefined
  /** Maximum number of dead letters. Default: no limit. */
  readonly limit?: number | undefined
}

/**
 * Announces the service's dead letters again, with their failures reset, and returns how many were announced.
 *
 * **Details**
 *
 * Dead letters added during the call are left alone.
 *
 * **Example** (Redriving after an outage)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 *
 * const redriven = StreamClient.redriveAll({ filter: ({ reason }) => reason.includes("ECONNREFUSED"), limit: 1000 })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const redriveAll = (options?: RedriveOptions): Effect.Effect<number, StoreError, StreamClient> =>
  StreamClient.use((client) => client.redriveAll(options))

/**
 * Lists a data stream's dead messages, oldest first: messages that could not be decoded, that failed on every attempt,
 * or that a handler dead-lettered.
 *
 * **Example** (Reading why messages were dead-lettered)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const reasons = Effect.map(StreamClient.deadMessages("orders:eu"), (messages) => messages.map(({ reason }) => reason))
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const deadMessages = (
  stream: string,
  options?: PageOptions
): Effect.Effect<ReadonlyArray<DeadMessage>, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.deadMessages(stream, options))

/**
 * Moves a dead message to the end of its data stream, with a new id, and returns whether it existed.
 *
 * **Details**
 *
 * Two redrives add the message only once, whether they are concurrent or the second follows a failed one. But a message
 * with more than 3,500 fields is moved in several steps. If that call fails or is interrupted, the message may be both
 * in the data stream and in the dead letters, and another redrive adds it a second time. Of two concurrent redrives of
 * such a message, one fails. A redrive within a minute of a failed one fails too.
 *
 * **Gotchas**
 *
 * If the data stream is finished, announce it again, or nobody will read the message.
 *
 * **Example** (Redriving dead messages)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const redriven = StreamClient.deadMessages("orders:eu").pipe(
 *   Effect.flatMap(Effect.forEach(({ id }) => StreamClient.redriveMessage("orders:eu", id))),
 *   Effect.andThen(StreamClient.announce("orders:eu"))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const redriveMessage = (
  stream: string,
  id: string
): Effect.Effect<boolean, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.redriveMessage(stream, id))

type SeekOptions = {
  /** Whether to take the data stream from its owner, if it has one. Default: false. */
  readonly force?: boolean | undefined
}

/**
 * Moves a data stream's checkpoint, forward or back, and returns the id after which reading continues.
 *
 * **When to use**
 *
 * Use it to process messages again, or to skip some. A handler moves its own checkpoint with `StreamLease.seek`.
 *
 * **Details**
 *
 * `to` names the next message to read: the first remaining one (`"beginning"`), the next one to arrive (`"now"`), the
 * message with the given id, or the first one at or after a time. Fails with `AlreadyOwned` while a consumer owns the
 * data stream.
 *
 * With `force`, the owner loses the data stream in the same step. The backend rejects all later requests from the old
 * owner's handler, and the next owner has a larger token. The handler is interrupted at its next renewal (`Vanished`).
 * The data stream can be taken again when its announcement's lease has expired, after at most `leaseDuration`.
 *
 * **Gotchas**
 *
 * Until it is interrupted, the old owner's handler may still write to other systems, so let them check its token. If
 * the data stream is finished, announce it again, or nobody will read it. A handler that stores its own offsets
 * (`after`) starts from those.
 *
 * **Example** (Processing all orders since yesterday again)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { DateTime, Effect } from "effect"
 *
 * const again = Effect.gen(function*() {
 *   const yesterday = DateTime.subtract(yield* DateTime.now, { days: 1 })
 *   yield* StreamClient.seek("orders:eu", yesterday, { force: true })
 *   yield* StreamClient.announce("orders:eu")
 * })
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const seek = (
  stream: string,
  to: StartPosition,
  options?: SeekOptions
): Effect.Effect<EntryId, AlreadyOwned | InvalidConfig | InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.seek(stream, to, options))

/**
 * Reads how far a data stream's checkpoint is behind its end.
 *
 * **Details**
 *
 * Messages that have been processed but not committed count towards the lag. If a handler never commits, the lag is the
 * whole data stream.
 *
 * **Example** (Adding up the lag of the data streams that this client owns)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const behind = StreamClient.owned.pipe(
 *   Effect.flatMap(Effect.forEach(({ stream }) => StreamClient.lag(stream), { concurrency: "unbounded" })),
 *   Effect.map((lags) => lags.reduce((sum, { messages }) => sum + messages, 0))
 * )
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const lag = (stream: string): Effect.Effect<Lag, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.lag(stream))

type TrimOptions = {
  /** Messages younger than this are kept, for a later `seek`. Default: none. */
  readonly keep?: Duration.Input | undefined
}

/**
 * Removes the processed messages from a data stream, and returns how many it removed.
 *
 * **Details**
 *
 * Removes the messages up to the checkpoint, or none if there is no checkpoint. Keeps messages that another program's
 * consumer group on this data stream has not yet read or acknowledged. Works in steps of about 10,000 messages, so it
 * can run alongside consumers.
 *
 * **Gotchas**
 *
 * `seek` cannot return to removed messages. Removed messages are not reported as a gap. Readers without a consumer
 * group are not taken into account.
 *
 * **Example** (Trimming every hour, on one node)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Schedule } from "effect"
 *
 * const trimming = StreamClient.trim("orders:eu", { keep: "7 days" }).pipe(Effect.repeat(Schedule.spaced("1 hour")))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const trim = (
  stream: string,
  options?: TrimOptions
): Effect.Effect<number, InvalidConfig | InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.trim(stream, options))

/**
 * Pauses a data stream, or the whole service if no name is passed, until `resume`. Returns whether this changed
 * anything.
 *
 * **Details**
 *
 * The pause is kept in the backend and does not expire, so it survives restarts. Consumers notice it at their next
 * heartbeat. Data streams are revoked as if a client were closing: handlers have the grace period to commit and yield,
 * which does not count as a failure. Announcements wait, and are taken within a heartbeat and a sweep after `resume`.
 * `inspect` lists the pauses.
 *
 * **Gotchas**
 *
 * Data streams that were acquired by name stay with their owner. Consumers that run redis-stream-client-go ignore
 * pauses. During a pause, `oldest` in `inspect`'s result grows.
 *
 * **Example** (Pausing during a migration)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const during = <A, E, R>(move: Effect.Effect<A, E, R>) =>
 *   Effect.acquireUseRelease(StreamClient.pause(), () => move, () => StreamClient.resume())
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const pause = (stream?: string): Effect.Effect<boolean, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.pause(stream))

/**
 * Ends the pause of a data stream, or of the service if no name is passed. Returns whether it was paused. Data streams
 * that were paused by name stay paused when the service resumes.
 *
 * **Example** (Resuming everything that is paused by name)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const resumeAll = Effect.flatMap(
 *   StreamClient.inspect,
 *   ({ paused }) => Effect.forEach(paused.streams, (stream) => StreamClient.resume(stream))
 * )
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const resume = (stream?: string): Effect.Effect<boolean, InvalidName | StoreError, StreamClient> =>
  StreamClient.use((client) => client.resume(stream))

/**
 * A handler's failure.
 *
 * @see {@link RunOptions}
 * @category models
 * @since 0.1.0
 */
export interface HandlerFailure {
  /** The handler's lease. `onError` may end it. */
  readonly lease: StreamLease
  readonly stream: StreamName
  readonly entry: EntryId
  readonly token: FencingToken
  readonly cause: Cause.Cause<unknown>
  /**
   * How many times in succession this announcement's handler failed or its lease expired, across all consumers. A
   * commit or a progress report resets the count.
   */
  readonly failures: number
}

/**
 * Options for `run`.
 *
 * **Example** (Counting failures, and limiting attempts to five)
 *
 * ```ts
 * import type { StreamClient } from "@effect-simba/core/streams"
 * import { Metric, Schedule } from "effect"
 *
 * const failed = Metric.counter("handlers_failed")
 *
 * const options: StreamClient.RunOptions = {
 *   retry: Schedule.recurs(4),
 *   onError: ({ failures }) => Metric.update(failed, failures === 1 ? 1 : 0)
 * }
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface RunOptions<RS = never, RH = never> {
  /**
   * The schedule on which a failed handler runs again. The data stream stays owned in the meantime. When the schedule
   * ends, or after `maxFailures` consecutive failures that last for `deadLetterAfter`, the announcement is
   * dead-lettered with the cause as its reason. Default: one second after the first failure, doubling up to 30 seconds,
   * indefinitely. With the other defaults, the announcement is dead-lettered after an hour and about 125 failures.
   */
  readonly retry?: Schedule.Schedule<unknown, HandlerFailure, never, RS> | undefined
  /** Runs after each failure, with the services of the program that calls `run`. Default: log an error. */
  readonly onError?: ((failure: HandlerFailure) => Effect.Effect<void, never, RH>) | undefined
}

/**
 * Work on one data stream: an effect with the lease in its context, or a function from the lease to an effect.
 *
 * **Example** (Logging before and after a handler)
 *
 * ```ts
 * import type { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const noted = <A, E, R>(handler: Effect.Effect<A, E, R>): StreamClient.Handler<A, E, R> => ({ stream }) =>
 *   Effect.log(`starting on ${stream}`).pipe(
 *     Effect.andThen(handler),
 *     Effect.ensuring(Effect.log(`finished with ${stream}`))
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Handler<A, E, R> = Effect.Effect<A, E, R> | ((lease: StreamLease) => Effect.Effect<A, E, R>)
