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
import type { BackendError, InvalidConfig, ProtocolError } from "./Errors.ts"
import type {
  Announcement,
  DeadLetter,
  Entry,
  Expiry,
  Held,
  Hint,
  Hints,
  Member,
  Pending,
  RawMessage,
  RenewResult,
  ServiceState,
  TakeRequest,
  TakeResult
} from "./StreamModels.ts"
import type { ConsumerName, EntryId, ServiceName, StreamName } from "./StreamNames.ts"

export type {
  Announcement,
  DeadLetter,
  Entry,
  Expiry,
  Held,
  Hint,
  Hints,
  Member,
  Pending,
  RawMessage,
  RenewResult,
  ServiceState,
  TakeRequest,
  TakeResult
} from "./StreamModels.ts"

type StoreError = BackendError | ProtocolError

/**
 * One service on the backend.
 *
 * **Example** (Who has fallen silent)
 *
 * ```ts
 * import type { StreamStore } from "@effect-simba/core"
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
  readonly bury: (held: Held, reason: string) => Effect.Effect<"Buried" | "NotOwner", StoreError>
  readonly buryMalformed: (
    entry: EntryId,
    consumer: ConsumerName,
    reason: string
  ) => Effect.Effect<boolean, StoreError>
  readonly commit: (held: Held, id: EntryId) => Effect.Effect<"Committed" | "Behind" | "NotOwner", StoreError>
  readonly buryMessage: (
    held: Held,
    message: RawMessage,
    reason: string
  ) => Effect.Effect<"Committed" | "Behind" | "NotOwner", StoreError>
  readonly checkpoint: (stream: StreamName) => Effect.Effect<Option.Option<EntryId>, StoreError>
  readonly hasCommitted: (held: Held) => Effect.Effect<boolean, StoreError>
  readonly keep: (streams: ReadonlyArray<StreamName>) => Effect.Effect<void, StoreError>
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
  readonly given: (
    consumer: ConsumerName,
    session: string
  ) => Effect.Effect<ReadonlyArray<Held & { readonly info: Announcement["info"] }>, StoreError>
  readonly beat: (member: Member, expiry: Duration.Duration) => Effect.Effect<ReadonlyArray<Member>, StoreError>
  readonly leave: (member: Pick<Member, "consumer" | "session">) => Effect.Effect<void, StoreError>
  readonly tidy: (
    idle: Duration.Duration
  ) => Effect.Effect<{ readonly consumers: number; readonly entries: number }, StoreError>
  readonly hints: Effect.Effect<Hints<Hint>, BackendError, Scope.Scope>
  readonly expiries: Effect.Effect<Option.Option<Hints<Expiry>>, BackendError, Scope.Scope>
  readonly inspect: Effect.Effect<ServiceState, StoreError>
  readonly deadLetters: (
    after: EntryId | undefined,
    count: number
  ) => Effect.Effect<ReadonlyArray<DeadLetter>, StoreError>
  readonly revive: (id: EntryId) => Effect.Effect<boolean, StoreError>
}

/**
 * Opens services. Refuses with `InvalidConfig` where the backend cannot keep one: on Redis Cluster, a name without a
 * hash tag; a data stream without the same tag is refused by each call that names it, with `BackendError` that is not
 * retryable. `enableEvents` adds what is missing to the server's setting for keyspace events.
 *
 * **Example** (The checkpoint of a data stream)
 *
 * ```ts
 * import { StreamNames, StreamStore } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const checkpoint = Effect.fn(function*(service: string, stream: string) {
 *   const store = yield* StreamStore.StreamStore
 *   const opened = yield* store.open(yield* StreamNames.serviceName(service))
 *   return yield* opened.checkpoint(yield* StreamNames.streamName(stream))
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
