/**
 * Storage port behind `StreamClient`, with typed requests and results.
 *
 * This port is unstable: it may change in any release. The `streams` index does not export it, so import it by its
 * path.
 *
 * A store decides ownership by the backend's clock. Test a store with the contract suite in `@effect-simba/testkit`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Order from "effect/Order"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { FencingToken } from "../FencingToken.ts"
import * as names from "../internal/nameRules.ts"
import { nameSchema } from "../internal/nameSchema.ts"
import type { BackendError, InvalidConfig, StoreError } from "../SimbaError.ts"
import type { Subscription } from "../Subscriber.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { Checkpoint, DeadLetter, DeadMessage, Extent, Lag, RawMessage, ServiceState } from "./StreamState.ts"

/**
 * The name of a service, whose consumers share one load-balancer stream. It must not be blank.
 *
 * **Gotchas**
 *
 * On Redis Cluster a service must have the same hash tag as its data streams, such as `{orders}`.
 *
 * **Example** (Reading the name from the environment)
 *
 * ```ts
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Config } from "effect"
 *
 * const service = Config.schema(StreamStore.ServiceName, "STREAM_SERVICE")
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ServiceName = nameSchema("a service name", names.anyProblem).pipe(
  Schema.brand("@effect-simba/ServiceName")
)

/**
 * A validated service name.
 *
 * @category models
 * @since 0.1.0
 */
export type ServiceName = typeof ServiceName.Type

/**
 * The name of a consumer in the consumer group, `simba-consumer-<id>`. It must not contain `@@` or end with `@`.
 *
 * **Example** (Checking whether a name can belong to one of the fleet's consumers)
 *
 * ```ts
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Schema } from "effect"
 *
 * const isConsumer = Schema.is(StreamStore.ConsumerName)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const ConsumerName = nameSchema("a consumer name", names.consumerProblem).pipe(
  Schema.brand("@effect-simba/ConsumerName")
)

/**
 * A validated consumer name.
 *
 * @category models
 * @since 0.1.0
 */
export type ConsumerName = typeof ConsumerName.Type

/**
 * A consumer that runs this library, as registered in the fleet. `session` is the first part of its epochs.
 * @category models
 * @since 0.1.0
 */
export interface Member {
  readonly consumer: ConsumerName
  readonly session: string
  readonly capacity: number
  readonly owned: number
}

/**
 * Whether a data stream has ended at its checkpoint.
 *
 * **Details**
 *
 * - `Open`: it has not ended. Messages may follow.
 * - `Ended`: it ended under this announcement, or under an earlier one and has been deleted since.
 * - `Reopened`: it ended under an earlier announcement, and still exists. Messages may follow, up to the next end.
 * @category models
 * @since 0.1.0
 */
export type StreamEnd = "Open" | "Reopened" | "Ended"

/**
 * A store's operations on one service.
 *
 * **Example** (Finding consumers that have gone silent)
 *
 * ```ts
 * import type * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Duration, Effect } from "effect"
 *
 * const silent = (service: StreamStore.Service) =>
 *   Effect.map(
 *     service.pending({ minIdle: Duration.seconds(10), count: 100 }),
 *     ({ entries }) => new Set(entries.map(({ consumer }) => consumer))
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  /** Creates the consumer group, reading from the first entry, if it does not exist. Returns whether it was created. */
  readonly prepare: Effect.Effect<boolean, StoreError>
  /**
   * Announces data streams, in order, and returns the entry of each. An unfinished announcement is kept. It is repeated
   * unless the data stream has messages and none were written since the last announcement.
   */
  readonly announce: (
    announcements: ReadonlyArray<Announcement>
  ) => Effect.Effect<ReadonlyArray<{ readonly entry: EntryId; readonly isNew: boolean }>, StoreError>
  /**
   * Reads undelivered entries, at most `count` (at least 1), waiting for at most `block`, on a dedicated connection. An
   * empty result is not an error. Creates the group if it is gone.
   */
  readonly read: (options: {
    readonly consumer: ConsumerName
    readonly count: number
    readonly block: Duration.Duration
  }) => Effect.Effect<ReadonlyArray<Entry>, StoreError>
  /**
   * Lists up to `count` unfinished entries in id order, after the id `after`. Lists only entries that were delivered or
   * renewed at least `minIdle` ago and, if `consumer` is set, only that consumer's entries. `next` is the id to
   * continue after, or undefined at the end. Deleted entries are removed from the pending entries and not returned.
   * Entries with `known` contents are not read again.
   */
  readonly pending: (options: {
    readonly consumer?: ConsumerName | undefined
    readonly minIdle: Duration.Duration
    readonly after?: EntryId | undefined
    readonly count: number
    readonly known?: ((entry: EntryId) => Entry | undefined) | undefined
  }) => Effect.Effect<{ readonly entries: ReadonlyArray<Pending>; readonly next: EntryId | undefined }, StoreError>
  /** Finds the unfinished entry that announces this data stream, or the oldest one if there are several. */
  readonly find: (
    stream: StreamName
  ) => Effect.Effect<Option.Option<Announcement & { readonly entry: EntryId }>, StoreError>
  /**
   * Takes many data streams, and returns the results in order. A failure to take one does not affect the others. If a
   * reply was lost, repeating the request with the same epoch returns `Taken` with the same token and a full lease.
   */
  readonly take: (requests: ReadonlyArray<TakeRequest>) => Effect.Effect<ReadonlyArray<TakeResult>, StoreError>
  /** Renews many leases held by one consumer, and returns the results in order. */
  readonly renew: (
    holdings: ReadonlyArray<RenewRequest>,
    lease: Duration.Duration
  ) => Effect.Effect<ReadonlyArray<RenewResult>, StoreError>
  /**
   * If both leases are the caller's: acknowledges and deletes the entry, ends both leases, and ends the data stream at
   * its checkpoint. Returns `AlreadyDone` if the entry is gone. The entry becomes a new announcement if messages after
   * the end were announced, or if it was repeated after the end was written.
   */
  readonly done: (ownership: Ownership) => Effect.Effect<"Done" | "AlreadyDone" | "NotOwner", StoreError>
  /**
   * If both leases are the caller's: lets any consumer claim the entry immediately, deletes the stream lease, lets the
   * entry lease expire within milliseconds (with its event), and publishes a signal.
   */
  readonly release: (ownership: Ownership) => Effect.Effect<"Released" | "NotOwner", StoreError>
  /**
   * If both leases are the caller's: counts one failure of the entry, and returns the number of consecutive failures
   * and the time since the first. The count is reset by a commit that moves the checkpoint, by progress, and by
   * `streakEndsAfter` without a failure. If the increasing number `attempt` is set, a failure is counted only once, no
   * matter how often it is sent or how late it arrives.
   */
  readonly fail: (ownership: Ownership, options?: {
    readonly attempt?: number | undefined
    readonly hasProgressed?: boolean | undefined
    readonly streakEndsAfter?: Duration.Duration | undefined
  }) => Effect.Effect<{ readonly count: number; readonly period: Duration.Duration } | "NotOwner", StoreError>
  /** If both leases are the caller's: moves the entry to the service's dead letters. */
  readonly deadLetter: (ownership: Ownership, reason: string) => Effect.Effect<"DeadLettered" | "NotOwner", StoreError>
  /**
   * Dead-letters an unreadable entry on which nobody has a lease. Returns false if the entry is not pending for
   * `consumer` or no longer exists.
   */
  readonly deadLetterMalformed: (
    entry: EntryId,
    consumer: ConsumerName,
    reason: string
  ) => Effect.Effect<boolean, StoreError>
  /**
   * If the stream lease is the caller's: moves the data stream's checkpoint forward to `id`. Returns `Behind` if the
   * checkpoint is already at or past `id`, because a commit never moves it back. Returns `Beyond` if the data stream
   * exists but ends before `id`, which means that the backend lost the message. With `isLast` the data stream ends
   * there. `offset` is stored with the checkpoint.
   */
  readonly commit: (
    ownership: Ownership,
    id: EntryId,
    isLast?: boolean,
    offset?: number
  ) => Effect.Effect<"Committed" | "Behind" | "Beyond" | "NotOwner", StoreError>
  /**
   * If the stream lease is the caller's: adds the message with the reason to the data stream's dead letters, unless it
   * is already there. The dead letter contains the exact bytes from the data stream, or `fields` if the message was
   * deleted. The checkpoint does not move.
   */
  readonly deadLetterMessage: (
    ownership: Ownership,
    message: RawMessage,
    reason: string
  ) => Effect.Effect<"DeadLettered" | "NotOwner", StoreError>
  /**
   * Reads the checkpoint: the last committed message. It is kept for `checkpointRetention` after the last commit or
   * `keepCheckpoints`, for a week after the last `take`, `handedOver` or `done`, and for 30 days after the data stream
   * was dead-lettered.
   */
  readonly checkpoint: (stream: StreamName) => Effect.Effect<Option.Option<Checkpoint>, StoreError>
  /**
   * Moves the checkpoint to any message, forward or back. The owner can do this at any time, and an operator only while
   * nobody owns the data stream. With `force`, an operator ends the owner's lease, and the owner's later requests are
   * rejected. Removes the recorded end of the stream, except that a seek by the owner keeps an end from an earlier
   * announcement.
   *
   * The owner passes the checkpoint's current id as `from`, or undefined if there is none. The reply is `Changed` if
   * the checkpoint has a different id, so a late request cannot undo a later commit. For an operator, the store reads
   * the lease and the checkpoint itself.
   */
  readonly seek: (
    stream: StreamName,
    to: Checkpoint,
    options?: {
      readonly owner?: Ownership | undefined
      readonly from?: EntryId | undefined
      readonly force?: boolean | undefined
    }
  ) => Effect.Effect<"Moved" | "Changed" | "NotOwner" | "Owned", StoreError>
  /** Whether the data stream has ended at its checkpoint. */
  readonly end: (ownership: Pick<Ownership, "entry" | "stream">) => Effect.Effect<StreamEnd, StoreError>
  /** Counts the messages after the checkpoint, or all messages if there is none. Trimmed messages are not counted. */
  readonly lag: (stream: StreamName) => Effect.Effect<Lag, StoreError>
  /**
   * Removes messages up to the checkpoint, and returns how many it removed. Removes none if there is no checkpoint,
   * none younger than `keep`, and none that a consumer group of the data stream has not yet read or acknowledged.
   */
  readonly trim: (stream: StreamName, keep: Duration.Duration) => Effect.Effect<number, StoreError>
  /** Extends the retention of these data streams' checkpoints. Called by owners once a day. */
  readonly keepCheckpoints: (streams: ReadonlyArray<StreamName>) => Effect.Effect<void, StoreError>
  /** Reads up to `count` messages after `after`. */
  readonly messages: (
    stream: StreamName,
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, StoreError>
  /** Like `messages`, but waits until there is a message. All waiting readers in a service share a few connections. */
  readonly awaitMessages: (
    stream: StreamName,
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, StoreError>
  /** Reads the extent of the data stream; `None` if the stream does not exist. */
  readonly extent: (stream: StreamName) => Effect.Effect<Option.Option<Extent>, StoreError>
  /**
   * Counts the messages after `after`, up to `last` or to the end, and returns the extent at that instant. The count is
   * undefined if the backend does not count added messages, or if messages were deleted in the meantime.
   */
  readonly count: (
    stream: StreamName,
    after: EntryId,
    last?: EntryId
  ) => Effect.Effect<Option.Option<Extent & { readonly counted: number | undefined }>, StoreError>
  /**
   * If both leases are the caller's: makes `to` the owner for the `confirm` period, with an epoch in its session and a
   * new token, and publishes `HandedOver`.
   */
  readonly handOver: (
    ownership: Ownership,
    to: { readonly consumer: ConsumerName; readonly session: string },
    confirm: Duration.Duration
  ) => Effect.Effect<"HandedOver" | "NotOwner", StoreError>
  /**
   * Lists the data streams that were handed over to this member and that it may not have confirmed yet, with their
   * consecutive failures. Listing a data stream marks its handler as running. The list therefore omits data streams for
   * which `isAdopted` returns true: their handlers may be waiting for messages.
   */
  readonly handedOver: (
    consumer: ConsumerName,
    session: string,
    isAdopted?: (entry: EntryId) => boolean
  ) => Effect.Effect<
    ReadonlyArray<Ownership & { readonly failures: number; readonly info: Announcement["info"] }>,
    StoreError
  >
  /** Registers the member for the `expiry` period, and returns all registered members. */
  readonly heartbeat: (member: Member, expiry: Duration.Duration) => Effect.Effect<ReadonlyArray<Member>, StoreError>
  /** Removes the member. */
  readonly leave: (member: Pick<Member, "consumer" | "session">) => Effect.Effect<void, StoreError>
  /** Removes the consumer from the group if nothing is pending for it. Returns whether it is gone. */
  readonly removeConsumer: (consumer: ConsumerName) => Effect.Effect<boolean, StoreError>
  /**
   * Removes the group's consumers that have nothing pending and were idle for `idle`; entries that were acknowledged
   * but not deleted, if there is no other group; and records of entries that no longer exist. Returns how many
   * consumers and entries it removed.
   */
  readonly reap: (
    idle: Duration.Duration
  ) => Effect.Effect<{ readonly consumers: number; readonly entries: number }, StoreError>
  /** Subscribes to signals, and succeeds once the backend has acknowledged the subscription. */
  readonly signals: Effect.Effect<Subscription<Signal>, BackendError, Scope.Scope>
  /** Subscribes to lease expiries in the same way. Returns `None` if the backend is known not to publish them. */
  readonly expiries: Effect.Effect<Option.Option<Subscription<Expiry>>, BackendError, Scope.Scope>
  /**
   * Pauses or resumes a data stream, or the service. Returns whether this changed anything. A pause does not expire.
   */
  readonly setPaused: (stream: StreamName | undefined, isPaused: boolean) => Effect.Effect<boolean, StoreError>
  /** Reads the pauses. Consumers call it at each heartbeat. */
  readonly paused: Effect.Effect<ServiceState["paused"], StoreError>
  readonly inspect: Effect.Effect<ServiceState, StoreError>
  readonly deadLetters: (
    after: EntryId | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<DeadLetter>, StoreError>
  /**
   * Announces a dead letter again, with its failures reset. If its data stream has an unfinished announcement, only
   * removes the dead letter. Returns whether the dead letter existed.
   */
  readonly redrive: (id: EntryId) => Effect.Effect<boolean, StoreError>
  /** Lists up to `count` of the data stream's dead messages, in id order, after the id `after`. */
  readonly deadMessages: (
    stream: StreamName,
    after: EntryId | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<DeadMessage>, StoreError>
  /**
   * Moves a dead message to the end of its data stream, with its exact bytes. Returns whether it existed. A message
   * with more than 3,500 fields is read as UTF-8. Of two concurrent calls for such a message, one fails, and a retry
   * after a failure may add the message a second time.
   */
  readonly redriveMessage: (stream: StreamName, id: EntryId) => Effect.Effect<boolean, StoreError>
}

/**
 * Opens a service's store on a backend.
 *
 * **Details**
 *
 * Fails with `InvalidConfig` if the backend cannot support the service: on Redis Cluster, if the name has no hash tag.
 * A call that names a data stream without the same tag fails with a non-retryable `BackendError`. `enableEvents`
 * enables expiry events in the server's keyspace notification setting. `checkpointRetention` is a week by default.
 *
 * **Example** (Reading a data stream's checkpoint)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Effect } from "effect"
 *
 * const checkpoint = Effect.fn(function*(service: string, stream: string) {
 *   const store = yield* StreamStore.StreamStore
 *   const opened = yield* store.open(StreamStore.ServiceName.make(service))
 *   return yield* opened.checkpoint(StreamName.StreamName.make(stream))
 * }, Effect.scoped)
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class StreamStore extends Context.Service<StreamStore, {
  readonly open: (
    service: ServiceName,
    options?: {
      readonly enableEvents?: boolean | undefined
      readonly checkpointRetention?: Duration.Duration | undefined
    }
  ) => Effect.Effect<Service, BackendError | InvalidConfig, Scope.Scope>
}>()("@effect-simba/core/StreamStore") {}

/**
 * A data stream and the information attached by its producer.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export interface Announcement {
  readonly stream: StreamName
  readonly info: Readonly<Record<string, unknown>>
}

/**
 * An entry in the load-balancer stream: an announcement, or the reason why the entry cannot be read.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type Entry =
  | ({ readonly _tag: "Announced"; readonly entry: EntryId } & Announcement)
  | { readonly _tag: "Malformed"; readonly entry: EntryId; readonly problem: string }

/**
 * An unfinished entry that was delivered to a consumer.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export interface Pending {
  readonly consumer: ConsumerName
  /** Time since the entry was last delivered or renewed. */
  readonly idle: Duration.Duration
  /** How often the entry was delivered, not counting claims and renewals by this library. */
  readonly deliveries: number
  /**
   * The value of the entry's lease, if the consumer is a Go consumer. Some time after the delivery, a Go consumer locks
   * the entry with its own name. It does not reset the idle time, and unlocks the entry before acknowledging it.
   */
  readonly goConsumer: { readonly lease: string | undefined } | undefined
  readonly content: Entry
}

/**
 * One period of ownership of a data stream. `consumer` and `epoch` together form the value of both its leases.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export interface Ownership {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly consumer: ConsumerName
  readonly epoch: Epoch
  readonly token: FencingToken
}

/**
 * A request to own a data stream.
 *
 * **Example** (Requesting the orphans that a sweep found)
 *
 * ```ts
 * import type * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Duration } from "effect"
 *
 * const lease = Duration.seconds(2)
 *
 * const requests = (
 *   consumer: StreamStore.ConsumerName,
 *   pending: ReadonlyArray<StreamStore.Pending>,
 *   nextEpoch: () => StreamStore.Epoch
 * ) =>
 *   pending.flatMap(({ content }): ReadonlyArray<StreamStore.TakeRequest> =>
 *     content._tag === "Malformed" ? [] : [{
 *       stream: content.stream,
 *       entry: content.entry,
 *       consumer,
 *       epoch: nextEpoch(),
 *       lease,
 *       minIdle: lease,
 *       maxFailures: 10,
 *       deadLetterAfter: Duration.hours(1),
 *       streakEndsAfter: Duration.hours(1)
 *     }]
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface TakeRequest extends Omit<Ownership, "token"> {
  /** How long a grant lasts unless it is renewed. */
  readonly lease: Duration.Duration
  /** Skips another consumer's entry if it was delivered or renewed less than this long ago. */
  readonly minIdle: Duration.Duration
  /** Dead-letters an entry with this many consecutive failures instead. */
  readonly maxFailures: number
  /** Dead-letters the entry only if the failures have lasted this long. Default: any duration. */
  readonly deadLetterAfter?: Duration.Duration | undefined
  /** The failure count is reset after this time without a failure. Default: never. */
  readonly streakEndsAfter?: Duration.Duration | undefined
}

/**
 * The reply to a `TakeRequest`.
 *
 * **Details**
 *
 * - `Taken`: both leases and the entry are the caller's, for the whole lease. `failures` counts consecutive handler
 *   failures and expired leases, including the lease that just expired.
 * - `Occupied`: another consumer has a lease on the entry or on the data stream. Nothing was changed.
 * - `NotIdle`: the entry is pending elsewhere and was idle for less than `minIdle`, or the request was sent before this
 *   session released the data stream. Nothing was changed.
 * - `Undelivered`: the entry has not been delivered yet, so `read` will return it. Nothing was changed.
 * - `Gone`: the entry is finished or deleted. A deleted entry is removed from the pending entries.
 * - `DeadLettered`: the entry had too many failures for too long, and has been dead-lettered.
 * - `Failed`: the backend refused this request. The other requests in the call are not affected.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type TakeResult =
  | { readonly _tag: "Taken"; readonly token: FencingToken; readonly failures: number }
  | { readonly _tag: "Occupied"; readonly owner: string; readonly timeLeft: Duration.Duration }
  | { readonly _tag: "NotIdle" }
  | { readonly _tag: "Undelivered" }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "DeadLettered"; readonly failures: number }
  | { readonly _tag: "Failed"; readonly error: StoreError }

/**
 * A request to extend a lease. It also reports whether the handler is busy.
 *
 * **Details**
 *
 * An expired lease counts as a failure only if its handler was busy. `isBusy` is undefined if it has not changed since
 * the last renewal. The handler of a new lease counts as busy. `hasProgressed` resets the failure count.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export interface RenewRequest extends Ownership {
  readonly isBusy?: boolean | undefined
  readonly hasProgressed?: boolean | undefined
}

/**
 * The reply to a renewal.
 *
 * **Details**
 *
 * - `Renewed`: both leases last for the whole duration from now, and the entry's idle time is zero.
 * - `Lost`: the caller is no longer the owner, or the entry is gone. A renewal never recreates a lease. A lease that
 *   still exists is left to expire, because the old owner works under that lease until it notices the loss.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type RenewResult =
  | { readonly _tag: "Renewed" }
  | { readonly _tag: "Lost"; readonly reason: "TakenOver" | "Vanished" }

/**
 * A message between a service's consumers.
 *
 * **Details**
 *
 * - `Released`: the entry may be taken now.
 * - `HandedOver`: a data stream was handed over to the member with this `session`. That member must renew the leases
 *   within the `confirm` period.
 * - `Gap`: signals may have been missed.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type Signal =
  | { readonly _tag: "Released"; readonly stream: StreamName; readonly entry: EntryId }
  | { readonly _tag: "HandedOver"; readonly session: string }
  | { readonly _tag: "Gap" }

/**
 * An entry's lease expired, or (`Gap`) such events may have been missed.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type Expiry =
  | { readonly _tag: "Expired"; readonly stream: StreamName; readonly entry: EntryId }
  | { readonly _tag: "Gap" }

/**
 * Separates the data stream's name from the entry's id in an entry lease's key. Data-stream names never contain it.
 *
 * **Example** (Splitting the key of an entry lease)
 *
 * ```ts
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 *
 * const partsOf = (key: string) => {
 *   const [stream, entry] = key.split(StreamStore.leaseSeparator)
 *   return { stream, entry }
 * }
 * ```
 *
 * @category constants
 * @since 0.1.0
 */
export const leaseSeparator = names.leaseSeparator

/**
 * The name prefix of this library's consumers. All other consumers in the group are Go consumers.
 *
 * **Example** (Checking whether a consumer runs this library)
 *
 * ```ts
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 *
 * const isGoConsumer = (consumer: string) => !consumer.startsWith(StreamStore.consumerPrefix)
 * ```
 *
 * @category constants
 * @since 0.1.0
 */
export const consumerPrefix = names.consumerPrefix

/**
 * Identifies one period of ownership of a data stream. Its form is `<session>.<counter>`, and it is never reused.
 *
 * **Details**
 *
 * The session is random and new for each client. The counter increases, and is written in base 36. It shows a store
 * which of two requests is older. After a hand-over, the token and the entry replace the counter.
 *
 * **Example** (Checking whether a lease belongs to this library)
 *
 * ```ts
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 * import { Schema } from "effect"
 *
 * const isEpoch = Schema.is(StreamStore.Epoch)
 *
 * const isOurs = (lease: string) => isEpoch(lease.slice(lease.lastIndexOf("@@") + 2))
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const Epoch = Schema.String.check(Schema.isPattern(/^[0-9a-z]{12}\.(?:[0-9a-z]+|\d+-\d+-\d+)$/)).pipe(
  Schema.brand("@effect-simba/Epoch")
)

/**
 * A validated epoch.
 *
 * @category models
 * @since 0.1.0
 */
export type Epoch = typeof Epoch.Type

/**
 * Compares two entry ids by their order in the stream.
 *
 * **Example** (Sorting the ids after a checkpoint)
 *
 * ```ts
 * import type { StreamName } from "@effect-simba/core/streams"
 * import * as StreamStore from "@effect-simba/core/streams/StreamStore"
 *
 * const after = (ids: ReadonlyArray<StreamName.EntryId>, checkpoint: StreamName.EntryId) =>
 *   ids.filter((id) => StreamStore.compareEntryIds(id, checkpoint) > 0).sort(StreamStore.compareEntryIds)
 * ```
 *
 * @category ordering
 * @since 0.1.0
 */
export const compareEntryIds = (a: EntryId, b: EntryId): -1 | 0 | 1 => {
  const [aMillis, aSequence] = a.split("-").map(BigInt) as [bigint, bigint]
  const [bMillis, bSequence] = b.split("-").map(BigInt) as [bigint, bigint]
  return Order.BigInt(aMillis, bMillis) || Order.BigInt(aSequence, bSequence)
}
