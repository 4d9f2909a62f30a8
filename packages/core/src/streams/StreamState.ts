/**
 * What the backend knows about a service and its data streams. `StreamClient` and `StreamLease` return these models.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type { EntryId, StreamName } from "./StreamName.ts"

/**
 * A service's state.
 *
 * **Details**
 *
 * In a healthy fleet, `oldest` stays below `leaseDuration` plus 1.2 times `sweepInterval`, unless orphans are waiting
 * for capacity. New streams that are waiting for capacity are not pending: `announced` exceeds `pending`.
 *
 * **Example** (A health check)
 *
 * ```ts
 * import { StreamClient, type StreamState } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const isUnhealthy = ({ deadLetters, oldest }: StreamState.ServiceState) =>
 *   deadLetters > 0 || Duration.isGreaterThan(oldest, Duration.minutes(1))
 *
 * const check = Effect.map(StreamClient.inspect, isUnhealthy)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface ServiceState {
  /** The number of unfinished announcements. */
  readonly announced: number
  /** The number of unfinished announcements that have been delivered to a consumer. */
  readonly pending: number
  /**
   * The longest idle time of a pending entry. The idle time of a yielded entry starts at one minute, so any consumer
   * may take it.
   */
  readonly oldest: Duration.Duration
  /** The number of dead-lettered announcements. */
  readonly deadLetters: number
  /**
   * The group's consumers, including those that run redis-stream-client-go. Before Redis 7.2, a consumer is listed only
   * once it has read an announcement, but `members` lists it as soon as it runs.
   */
  readonly consumers: ReadonlyArray<{
    readonly name: string
    readonly pending: number
    readonly idle: Duration.Duration
  }>
  /** The running consumers that use this library. */
  readonly members: ReadonlyArray<{
    readonly consumer: string
    readonly session: string
    readonly capacity: number
    readonly owned: number
  }>
  /** Whether the service is paused, and which data streams are paused by name. */
  readonly paused: { readonly service: boolean; readonly streams: ReadonlyArray<StreamName> }
}

/**
 * An announcement in a service's dead letters, with the reason. `entry` is its original id. `stream` is undefined if
 * the announcement cannot be read.
 * @category models
 * @since 0.1.0
 */
export interface DeadLetter {
  readonly id: EntryId
  readonly entry: EntryId
  readonly stream: StreamName | undefined
  readonly reason: string
  readonly fields: ReadonlyArray<readonly [name: string, value: string]>
}

/**
 * A message in its data stream's dead letters, with the reason. `message` is its original id.
 * @category models
 * @since 0.1.0
 */
export interface DeadMessage extends RawMessage {
  readonly message: EntryId
  readonly reason: string
}

/**
 * A message in a data stream: its id, and its fields in order.
 *
 * **Example** (Reading the value of a field)
 *
 * ```ts
 * import type { StreamState } from "@effect-simba/core/streams"
 *
 * const valueOf = (message: StreamState.RawMessage, field: string) =>
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
 * A data stream's last committed message.
 * @category models
 * @since 0.1.0
 */
export interface Checkpoint {
  readonly id: EntryId
  /** How many messages had been added to the data stream, up to and including this one. Undefined if unknown. */
  readonly offset: number | undefined
}

/**
 * A data stream's size and id range.
 *
 * **Example** (Counting deleted messages)
 *
 * ```ts
 * import type { StreamState } from "@effect-simba/core/streams"
 *
 * const deleted = ({ added, length }: StreamState.Extent) => added === undefined ? undefined : added - length
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Extent {
  /** The number of remaining messages. */
  readonly length: number
  /** The largest id that a message has ever had. */
  readonly last: EntryId
  /** The first remaining message. Undefined if the stream is empty. */
  readonly first: EntryId | undefined
  /** The number of messages that have ever been added. Undefined before Redis 7.0. */
  readonly added: number | undefined
  /** The largest id that was deleted individually, not by trimming. Undefined before Redis 7.0. */
  readonly lastDeleted: EntryId | undefined
}

/**
 * How far a data stream's checkpoint is behind its end.
 *
 * **Example** (Checking whether consumers keep up)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const keepsUp = Effect.map(StreamClient.lag("orders:eu"), ({ age }) => Duration.isLessThan(age, Duration.minutes(1)))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Lag {
  /** The number of messages after the checkpoint. */
  readonly messages: number
  /**
   * Whether `messages` is exact. Otherwise there may be more: at most 1,000 are counted if the checkpoint has no
   * offset, or before Redis 7.0.
   */
  readonly isCounted: boolean
  /**
   * How long the first message after the checkpoint has waited, computed from its id and the backend's time. Zero if
   * there is no such message.
   */
  readonly age: Duration.Duration
  /** The first message after the checkpoint. */
  readonly first: EntryId | undefined
}
