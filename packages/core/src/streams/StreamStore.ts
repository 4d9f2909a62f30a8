/**
 * The port between stream ownership and whatever keeps its state: typed requests in, typed results out.
 *
 * An implementation decides ownership by the backend's own time. It is held to its word by the contract suite in
 * `@effect-simba/testkit`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { FencingToken } from "../FencingToken.ts"
import type { BackendError, InvalidConfig, StoreError } from "../SimbaError.ts"
import type { Subscription } from "../Subscriber.ts"
import type { ConsumerName, EntryId, Epoch, ServiceName, StreamName } from "./StreamName.ts"

/**
 * One service on the backend.
 *
 * **Example** (Who has fallen silent)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const silent = (service: StreamStore.Service) =>
 *   Effect.map(
 *     service.pending({ minIdle: Duration.seconds(10), count: 100 }),
 *     ({ entries }) => new Set(entries.map(({ consumer }) => consumer))
 *   )
 * ```
 *
 * - `prepare`: makes the group, reading from the first entry on, unless there is one. Answers whether it was made.
 * - `announce`: adds what is not yet announced, in order; announces nothing twice while the first is unfinished.
 *   Answers the entry of each.
 * - `read`: entries that no consumer was given yet, at most `count` (at least 1), waiting for at most `block`, on a
 *   connection of its own. An empty answer is no error. Makes a group that is gone.
 * - `pending`: entries that were given to somebody (to `consumer`, where given), with at least `minIdle`, after the id
 *   `after`, at most `count` in order of ids; `next` is where to go on, undefined at the end. Deleted entries that are
 *   still pending are removed from the pending ones, and not answered.
 * - `find`: the unfinished entry that announces this data stream, the oldest if there are several.
 * - `take`, `renew`: many at once, answered in order. One that fails does not fail its neighbours. A `take` that is
 *   repeated with the same epoch, because its answer was lost, answers `Taken` with the same token and a full lease.
 * - `done`: acknowledges and deletes the entry and gives up both leases, if both are the caller's. `AlreadyDone` if
 *   there is no such entry any more.
 * - `release`: if both leases are the caller's: the entry becomes claimable at once by anybody, the stream lease is
 *   deleted, the entry lease expires within milliseconds (with its event), and a hint is published.
 * - `fail`: counts one failure of the entry, if both leases are the caller's, and answers how many there are. Release
 *   it or try again afterwards. A commit that moves the checkpoint sets the count to zero. With the number of an `attempt`,
 *   which grows, it counts once, however often it is sent and however late it comes.
 * - `bury`: moves the entry to the dead letters of the service, if both leases are the caller's.
 * - `buryMalformed`: does so with an entry that cannot be read, given to `consumer` and leased by nobody.
 * - `commit`: moves the checkpoint of the data stream forward to `id`, if the stream lease is the caller's. `Behind` if
 *   it is there or further already; it never moves back.
 * - `buryMessage`: the same, and the message goes to the dead letters of the data stream with the reason.
 * - `checkpoint`: the last committed id. It is kept for a week after the last commit, `take`, `given` or `keep`, and for 30
 *   days after the data stream was buried.
 * - `hasCommitted`: whether a commit moved the checkpoint under this very entry, by whomever; true of what was revived.
 * - `keep`: checkpoints of what is owned for longer than that: to be said once a day.
 * - `messages`: up to `count` messages after `after`, none if there are none.
 * - `awaitMessages`: up to `count` messages after `after`, waiting until there is one. All waiting readers of a service
 *   share one connection.
 * - `handOver`: makes `to` the owner, with an epoch of its session and a new token, for `confirm`, if both leases are
 *   the caller's; publishes `Given`.
 * - `given`: what was handed to this member and is still unconfirmed or unknown to it: pending entries of `consumer`
 *   whose lease value carries its `session`.
 * - `beat`: registers the member until `expiry` from now, and answers all that are registered. `leave` removes it.
 * - `tidy`: removes consumers of the group that were idle for `idle` and have nothing pending, entries that were
 *   acknowledged and not deleted, if there is no other group, and what is remembered of entries that are gone. Answers how
 *   many of the first two.
 * - `hints`, `expiries`: subscriptions, acknowledged by the backend when the effect succeeds. `expiries` answers none
 *   where the backend is known not to publish them.
 * - `inspect`, `deadLetters`, `revive`: for operators. `revive` announces a dead letter again, with its count at zero.
 *
 * @category models
 * @since 0.1.0
 */
export interface Service {
  readonly prepare: Effect.Effect<boolean, StoreError>
  readonly announce: (
    announcements: ReadonlyArray<Announcement>
  ) => Effect.Effect<ReadonlyArray<{ readonly entry: EntryId; readonly isNew: boolean }>, StoreError>
  readonly read: (options: {
    readonly consumer: ConsumerName
    readonly count: number
    readonly block: Duration.Duration
  }) => Effect.Effect<ReadonlyArray<Entry>, StoreError>
  readonly pending: (options: {
    readonly consumer?: ConsumerName | undefined
    readonly minIdle: Duration.Duration
    readonly after?: EntryId | undefined
    readonly count: number
  }) => Effect.Effect<{ readonly entries: ReadonlyArray<Pending>; readonly next: EntryId | undefined }, StoreError>
  readonly find: (
    stream: StreamName
  ) => Effect.Effect<Option.Option<Announcement & { readonly entry: EntryId }>, StoreError>
  readonly take: (requests: ReadonlyArray<TakeRequest>) => Effect.Effect<ReadonlyArray<TakeResult>, StoreError>
  readonly renew: (
    holdings: ReadonlyArray<Held>,
    lease: Duration.Duration
  ) => Effect.Effect<ReadonlyArray<RenewResult>, StoreError>
  readonly done: (held: Held) => Effect.Effect<"Done" | "AlreadyDone" | "NotOwner", StoreError>
  readonly release: (held: Held) => Effect.Effect<"Released" | "NotOwner", StoreError>
  readonly fail: (held: Held, attempt?: number) => Effect.Effect<number | "NotOwner", StoreError>
  readonly deadLetter: (held: Held, reason: string) => Effect.Effect<"Buried" | "NotOwner", StoreError>
  readonly deadLetterMalformed: (
    entry: EntryId,
    consumer: ConsumerName,
    reason: string
  ) => Effect.Effect<boolean, StoreError>
  readonly commit: (held: Held, id: EntryId) => Effect.Effect<"Committed" | "Behind" | "NotOwner", StoreError>
  readonly deadLetterMessage: (
    held: Held,
    message: RawMessage,
    reason: string
  ) => Effect.Effect<"Committed" | "Behind" | "NotOwner", StoreError>
  readonly checkpoint: (stream: StreamName) => Effect.Effect<Option.Option<EntryId>, StoreError>
  readonly hasCommitted: (held: Held) => Effect.Effect<boolean, StoreError>
  readonly keepCheckpoints: (streams: ReadonlyArray<StreamName>) => Effect.Effect<void, StoreError>
  readonly messages: (
    stream: StreamName,
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, StoreError>
  readonly awaitMessages: (
    stream: StreamName,
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, StoreError>
  readonly handOver: (
    held: Held,
    to: { readonly consumer: ConsumerName; readonly session: string },
    confirm: Duration.Duration
  ) => Effect.Effect<"HandedOver" | "NotOwner", StoreError>
  readonly handedOver: (
    consumer: ConsumerName,
    session: string
  ) => Effect.Effect<ReadonlyArray<Held & { readonly info: Announcement["info"] }>, StoreError>
  readonly heartbeat: (member: Member, expiry: Duration.Duration) => Effect.Effect<ReadonlyArray<Member>, StoreError>
  readonly leave: (member: Pick<Member, "consumer" | "session">) => Effect.Effect<void, StoreError>
  readonly reap: (
    idle: Duration.Duration
  ) => Effect.Effect<{ readonly consumers: number; readonly entries: number }, StoreError>
  readonly signals: Effect.Effect<Subscription<Signal>, BackendError, Scope.Scope>
  readonly expiries: Effect.Effect<Option.Option<Subscription<Expiry>>, BackendError, Scope.Scope>
  readonly inspect: Effect.Effect<ServiceState, StoreError>
  readonly deadLetters: (
    after: EntryId | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<DeadLetter>, StoreError>
  readonly redrive: (id: EntryId) => Effect.Effect<boolean, StoreError>
}

/**
 * Opens services. Refuses with `InvalidConfig` where the backend cannot keep one: on Redis Cluster, a name without a
 * hash tag; a data stream without the same tag is refused by each call that names it, with `BackendError` that is not
 * retryable. `enableEvents` adds what is missing to the server's setting for keyspace events.
 *
 * **Example** (The checkpoint of a data stream)
 *
 * ```ts
 * import { StreamName, StreamStore } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const checkpoint = Effect.fn(function*(service: string, stream: string) {
 *   const store = yield* StreamStore.StreamStore
 *   const opened = yield* store.open(yield* StreamName.serviceName(service))
 *   return yield* opened.checkpoint(yield* StreamName.streamName(stream))
 * }, Effect.scoped)
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class StreamStore extends Context.Service<StreamStore, {
  readonly open: (
    service: ServiceName,
    options?: { readonly enableEvents?: boolean | undefined }
  ) => Effect.Effect<Service, BackendError | InvalidConfig, Scope.Scope>
}>()("@effect-simba/core/StreamStore") {}

/**
 * A data stream and what its producer says about it.
 *
 * **Example** (Those of one tenant)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const ofTenant = (announcements: ReadonlyArray<StreamStore.Announcement>, tenant: string) =>
 *   announcements.filter(({ info }) => info["tenant"] === tenant)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Announcement {
  readonly stream: StreamName
  readonly info: Readonly<Record<string, unknown>>
}

/**
 * An entry of the load-balancer stream: a readable announcement, or the reason why it cannot be read.
 *
 * **Example** (What cannot be read, in words)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const problems = (entries: ReadonlyArray<StreamStore.Entry>) =>
 *   entries.flatMap((entry) => entry._tag === "Malformed" ? [`${entry.entry}: ${entry.problem}`] : [])
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Entry =
  | ({ readonly _tag: "Announced"; readonly entry: EntryId } & Announcement)
  | { readonly _tag: "Malformed"; readonly entry: EntryId; readonly problem: string }

/**
 * An entry that a consumer was given and has not finished. `idle` is the time since it was delivered or renewed.
 *
 * **Example** (Whose owner has fallen silent)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 * import { Duration } from "effect"
 *
 * const silent = (pending: ReadonlyArray<StreamStore.Pending>, lease: Duration.Duration) =>
 *   pending.filter(({ idle }) => Duration.isGreaterThan(idle, lease)).map(({ consumer }) => consumer)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Pending {
  readonly consumer: ConsumerName
  readonly idle: Duration.Duration
  readonly content: Entry
}

/**
 * One holding of a data stream. `consumer` and `epoch` together are the value of both of its leases.
 *
 * **Example** (Whether a holding is that of a client)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const isOf = ({ epoch }: StreamStore.Held, session: string) => epoch.startsWith(`${session}.`)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Held {
  readonly stream: StreamName
  readonly entry: EntryId
  readonly consumer: ConsumerName
  readonly epoch: Epoch
  readonly token: FencingToken
}

/**
 * Asks for a data stream.
 *
 * - `lease`: how long a grant lasts without renewal.
 * - `minIdle`: an entry that was delivered or renewed more recently is left alone. Zero for one's own.
 * - `maxFailures`: an entry with as many failures is poison, and goes to the dead letters instead.
 *
 * **Example** (Asking for the orphans of a sweep)
 *
 * ```ts
 * import type { StreamName, StreamStore } from "@effect-simba/core/streams"
 * import { Duration } from "effect"
 *
 * const lease = Duration.seconds(2)
 *
 * const requests = (
 *   consumer: StreamName.ConsumerName,
 *   pending: ReadonlyArray<StreamStore.Pending>,
 *   nextEpoch: () => StreamName.Epoch
 * ) =>
 *   pending.flatMap(({ content }): ReadonlyArray<StreamStore.TakeRequest> =>
 *     content._tag === "Malformed" ? [] : [{
 *       stream: content.stream,
 *       entry: content.entry,
 *       consumer,
 *       epoch: nextEpoch(),
 *       lease,
 *       minIdle: lease,
 *       maxFailures: 10
 *     }]
 *   )
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface TakeRequest extends Omit<Held, "token"> {
  readonly lease: Duration.Duration
  readonly minIdle: Duration.Duration
  readonly maxFailures: number
}

/**
 * - `Taken`: both leases and the entry are the caller's, for the whole lease. `failures` counts the handler failures
 *   and run-out leases so far, this run-out included.
 * - `Occupied`: somebody has a lease on the entry or on the data stream; nothing was changed.
 * - `Recent`: pending elsewhere and younger than `minIdle`, or asked for under an epoch older than one of this session
 *   that was given back; nothing was changed.
 * - `Unread`: no consumer was given the entry yet: it comes by `read`. Nothing was changed.
 * - `Gone`: the entry is finished or deleted. A deleted entry that was still pending is pending no more.
 * - `Buried`: poison; it is in the dead letters now.
 * - `Failed`: this one could not be looked at; its neighbours are not concerned.
 *
 * **Example** (Whether to look again later)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const isWorthLooking = (result: StreamStore.TakeResult) => result._tag === "Occupied" || result._tag === "Recent"
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type TakeResult =
  | { readonly _tag: "Taken"; readonly token: FencingToken; readonly failures: number }
  | { readonly _tag: "Occupied"; readonly by: string; readonly remaining: Duration.Duration }
  | { readonly _tag: "Recent" }
  | { readonly _tag: "Unread" }
  | { readonly _tag: "Gone" }
  | { readonly _tag: "Buried"; readonly failures: number }
  | { readonly _tag: "Failed"; readonly error: StoreError }

/**
 * - `Renewed`: both leases last for the whole lease from now, and the entry's idle time is zero.
 * - `Lost`: not the owner any more, or the entry is gone; never re-created. What is left of the leases runs out:
 *   until it hears of it, the owner works under them.
 * - `Failed`: this one could not be looked at; its neighbours are not concerned.
 *
 * **Example** (What is not owned any more)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const lost = (held: ReadonlyArray<StreamStore.Held>, results: ReadonlyArray<StreamStore.RenewResult>) =>
 *   held.filter((_, index) => results[index]?._tag === "Lost")
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type RenewResult =
  | { readonly _tag: "Renewed" }
  | { readonly _tag: "Lost"; readonly reason: "TakenOver" | "Vanished" }
  | { readonly _tag: "Failed"; readonly error: StoreError }

/**
 * A consumer of ours as the fleet knows it. `session` is the first part of the epochs of its holdings.
 *
 * **Example** (Room in the fleet)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const room = (members: ReadonlyArray<StreamStore.Member>) =>
 *   members.reduce((sum, { capacity, owned }) => sum + Math.max(0, capacity - owned), 0)
 * ```
 *
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
 * - `Released`: the entry may be taken now.
 * - `Given`: the data stream was handed to `consumer` with these leases; it has the confirm period to renew them.
 * - `Gap`: hints may have been missed.
 *
 * @see {@link Service}
 * @category models
 * @since 0.1.0
 */
export type Signal =
  | { readonly _tag: "Released"; readonly stream: StreamName; readonly entry: EntryId }
  | { readonly _tag: "Given"; readonly session: string }
  | { readonly _tag: "Gap" }

/**
 * The lease of an entry ran out, or (`Gap`) such news may have been missed.
 *
 * **Example** (What a gap means)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const toLookAt = (expiry: StreamStore.Expiry) => expiry._tag === "Gap" ? "everything" : expiry.entry
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Expiry =
  | { readonly _tag: "Expired"; readonly stream: StreamName; readonly entry: EntryId }
  | { readonly _tag: "Gap" }

/**
 * A message of a data stream: its fields, in order.
 *
 * **Example** (The value of a field)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 *
 * const valueOf = (message: StreamStore.RawMessage, field: string) =>
 *   message.fields.find(([name]) => name === field)?.[1]
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface RawMessage {
  readonly id: EntryId
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
}

/**
 * What went to the dead letters of a service, and why.
 *
 * **Example** (Reviving what one outage has buried)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const isOurs = ({ reason }: StreamStore.DeadLetter) => reason.includes("ECONNREFUSED")
 *
 * const reviveThem = Effect.gen(function*() {
 *   for (const letter of yield* StreamClient.deadLetters()) {
 *     if (isOurs(letter)) yield* StreamClient.redrive(letter.id)
 *   }
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface DeadLetter {
  readonly id: EntryId
  readonly entry: EntryId
  readonly reason: string
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
}

/**
 * How a service is doing. `oldest` is the longest idle time of a pending entry: with a healthy fleet it stays below
 * lease plus sweep interval, unless streams wait for capacity.
 *
 * **Example** (An alarm)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const isIll = ({ deadLetters, oldest }: StreamStore.ServiceState) =>
 *   deadLetters > 0 || Duration.isGreaterThan(oldest, Duration.minutes(1))
 *
 * const check = Effect.map(StreamClient.inspect, isIll)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceState {
  readonly announced: number
  readonly pending: number
  readonly oldest: Duration.Duration
  readonly deadLetters: number
  readonly consumers: ReadonlyArray<{
    readonly name: string
    readonly pending: number
    readonly idle: Duration.Duration
  }>
  readonly members: ReadonlyArray<Member>
}
