/**
 * What stream ownership is told in: announcements, holdings, members, and what is asked and answered about them.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { BackendError, ProtocolError } from "./Errors.ts"
import type { FencingToken } from "./Ownership.ts"
import type { ConsumerName, EntryId, Epoch, StreamName } from "./StreamNames.ts"

/**
 * A data stream and what its producer says about it.
 *
 * **Example** (Those of one tenant)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const ofTenant = (announcements: ReadonlyArray<StreamModels.Announcement>, tenant: string) =>
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
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const problems = (entries: ReadonlyArray<StreamModels.Entry>) =>
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
 * import type { StreamModels } from "@effect-simba/core"
 * import { Duration } from "effect"
 *
 * const silent = (pending: ReadonlyArray<StreamModels.Pending>, lease: Duration.Duration) =>
 *   pending.filter(({ idle }) => Duration.isGreaterThan(idle, lease)).map(({ consumer }) => consumer)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Pending {
  readonly consumer: ConsumerName
  readonly idle: Duration.Duration
  readonly deliveries: number
  readonly content: Entry
}

/**
 * One holding of a data stream. `consumer` and `epoch` together are the value of both of its leases.
 *
 * **Example** (Whether a holding is that of a client)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const isOf = ({ epoch }: StreamModels.Held, session: string) => epoch.startsWith(`${session}.`)
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
 * import type { StreamModels, StreamNames } from "@effect-simba/core"
 * import { Duration } from "effect"
 *
 * const lease = Duration.seconds(2)
 *
 * const requests = (
 *   consumer: StreamNames.ConsumerName,
 *   pending: ReadonlyArray<StreamModels.Pending>,
 *   nextEpoch: () => StreamNames.Epoch
 * ) =>
 *   pending.flatMap(({ content }): ReadonlyArray<StreamModels.TakeRequest> =>
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
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const isWorthLooking = (result: StreamModels.TakeResult) => result._tag === "Occupied" || result._tag === "Recent"
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
  | { readonly _tag: "Failed"; readonly error: BackendError | ProtocolError }

/**
 * - `Renewed`: both leases last for the whole lease from now, and the entry's idle time is zero.
 * - `Lost`: not the owner any more, or the entry is gone; never re-created. What is left of the leases runs out:
 *   until it hears of it, the owner works under them.
 * - `Failed`: this one could not be looked at; its neighbours are not concerned.
 *
 * **Example** (What is not owned any more)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const lost = (held: ReadonlyArray<StreamModels.Held>, results: ReadonlyArray<StreamModels.RenewResult>) =>
 *   held.filter((_, index) => results[index]?._tag === "Lost")
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type RenewResult =
  | { readonly _tag: "Renewed" }
  | { readonly _tag: "Lost"; readonly reason: "TakenOver" | "Vanished" }
  | { readonly _tag: "Failed"; readonly error: BackendError | ProtocolError }

/**
 * A consumer of ours as the fleet knows it. `session` is the first part of the epochs of its holdings.
 *
 * **Example** (Room in the fleet)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const room = (members: ReadonlyArray<StreamModels.Member>) =>
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
 * @see {@link Hints}
 * @category models
 * @since 0.1.0
 */
export type Hint =
  | { readonly _tag: "Released"; readonly stream: StreamName; readonly entry: EntryId }
  | ({ readonly _tag: "Given"; readonly session: string } & Held)
  | { readonly _tag: "Gap" }

/**
 * The lease of an entry ran out, or (`Gap`) such news may have been missed.
 *
 * **Example** (What a gap means)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const toLookAt = (expiry: StreamModels.Expiry) => expiry._tag === "Gap" ? "everything" : expiry.entry
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Expiry =
  | { readonly _tag: "Expired"; readonly stream: StreamName; readonly entry: EntryId }
  | { readonly _tag: "Gap" }

/**
 * A subscription of hints. Each is a reason to look, never a fact. `bound` is set where gaps cannot be seen: look at
 * least this often.
 *
 * **Example** (Listening until something may be free)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const untilLook = ({ bound, next }: StreamModels.Hints<StreamModels.Hint>) =>
 *   Effect.timeoutOption(next, bound ?? Duration.infinity)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Hints<A> {
  readonly next: Effect.Effect<A>
  readonly bound: Duration.Duration | undefined
}

/**
 * A message of a data stream: its fields, in order.
 *
 * **Example** (The value of a field)
 *
 * ```ts
 * import type { StreamModels } from "@effect-simba/core"
 *
 * const valueOf = (message: StreamModels.RawMessage, field: string) =>
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
 * import { StreamClient, type StreamModels } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const isOurs = ({ reason }: StreamModels.DeadLetter) => reason.includes("ECONNREFUSED")
 *
 * const reviveThem = Effect.gen(function*() {
 *   for (const letter of yield* StreamClient.deadLetters()) {
 *     if (isOurs(letter)) yield* StreamClient.revive(letter.id)
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
 * import { StreamClient, type StreamModels } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const isIll = ({ deadLetters, oldest }: StreamModels.ServiceState) =>
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
