/**
 * An owned data stream, from its claim to its end or loss.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { Inspectable } from "effect/Inspectable"
import type * as Option from "effect/Option"
import type { Pipeable } from "effect/Pipeable"
import type { FencingToken } from "../FencingToken.ts"
import type { LeaseLost, StoreError } from "../SimbaError.ts"
import type { StreamYielded } from "./StreamError.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { Checkpoint, Extent, RawMessage } from "./StreamState.ts"
import type { StreamEnd } from "./StreamStore.ts"

/**
 * A data stream that this consumer owns. Its lease is renewed in the background until the stream is done, released,
 * handed over or lost.
 *
 * **When to use**
 *
 * Use it in a `StreamClient.run` handler, which receives its own lease as an argument or from its context. To own a
 * data stream without a handler, use `StreamClient.acquireIfAvailable`.
 *
 * **Details**
 *
 * Ownership can end early in two ways. *Revoked*: the handler is asked to stop. It still owns the stream, and has the
 * grace period to reach a safe stopping point and `yield`. *Lost*: another consumer may already own the stream, and the
 * handler is interrupted immediately.
 *
 * `isHeld`, `ensure`, `timeLeft`, `lost` and `protect` rely on the local clock. The lease is measured from just before
 * the last successful renewal was sent.
 *
 * A printed lease shows `stream`, `entry`, `token` and `timeLeft`.
 *
 * **Example** (A handler that writes with its token and stops at a safe point)
 *
 * ```ts
 * import { StreamLease } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const write = (token: number) => Effect.log(`a write that is refused if ${token} is not the largest so far`)
 *
 * const handler = Effect.gen(function*() {
 *   const lease = yield* StreamLease.StreamLease
 *   while (!(yield* lease.isRevoked)) {
 *     yield* write(lease.token)
 *     yield* lease.progress
 *   }
 *   return yield* lease.yield
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface StreamLease extends Pipeable, Inspectable {
  readonly stream: StreamName
  /** The entry in the load-balancer stream that announced the data stream. */
  readonly entry: EntryId
  /** The information that the producer attached to the data stream. */
  readonly info: Readonly<Record<string, unknown>>
  /** Grows with every claim and hand-over of this data stream. Pass it to the systems that the handler writes to. */
  readonly token: FencingToken
  /**
   * How many times in succession this entry's handler failed or its lease expired. A commit or a progress report resets
   * the count.
   */
  readonly failures: number
  /** How long the checkpoint is kept while the data stream has no owner. */
  readonly checkpointRetention: Duration.Duration
  /** Whether the data stream is owned at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while the data stream is owned. Otherwise fails with the reason. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time left until the local deadline. Zero once ownership has ended. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /** Waits until the data stream is lost. Never completes if the stream is finished or released. */
  readonly lost: Effect.Effect<LeaseLost>
  /**
   * Waits until the stream is revoked: for rebalancing, because of a pause, because the client is closing, or because
   * `done` or `release` was called outside the handler.
   */
  readonly revoked: Effect.Effect<void>
  /** Whether the stream is revoked. It becomes false again if another stream is handed over instead. */
  readonly isRevoked: Effect.Effect<boolean>
  /**
   * Ends the handler and releases the unfinished stream. This does not count as a failure. If the stream was revoked
   * for rebalancing and another one was handed over instead, the handler runs again on this consumer.
   */
  readonly yield: Effect.Effect<never, StreamYielded>
  /**
   * Finishes the stream and removes its announcement. First interrupts and awaits its handler and protected work,
   * unless the caller is the handler or its `onError`, or runs within that work. Fails with `LeaseLost` if ownership
   * ended in some other way. After a `BackendError` the stream may still be owned: try again.
   */
  readonly done: Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Releases the unfinished stream: other consumers can take it immediately. First interrupts and awaits its handler
   * and protected work. If the caller is the handler or its `onError`, the stream is released after the caller has
   * ended. Protected work that contains the caller continues after the release.
   */
  readonly release: Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Runs `effect` while the stream is owned. If the lease is lost, interrupts `effect`, awaits its finalizers, and
   * fails with `LeaseLost`. `done`, `release`, and closing the scope or the client interrupt and await `effect` before
   * they end the lease. A failure of `effect` takes precedence over the loss.
   */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
  /** Reports progress, for handlers that commit nothing. Restarts `progressTimeout` and resets the failure count. */
  readonly progress: Effect.Effect<void>
  /** The data stream's last committed message. */
  readonly checkpoint: Effect.Effect<Option.Option<Checkpoint>, StoreError>
  /** Whether the data stream ended at its checkpoint, under this announcement or an earlier one. */
  readonly end: Effect.Effect<StreamEnd, StoreError>
  /**
   * Moves the checkpoint forward to `id`, checked against the token in the backend. Fails with `LeaseLost` and changes
   * nothing if the owner has been replaced. Also changes nothing if `id` is not ahead of the checkpoint, or if the
   * backend lost the message. `isLast` says that the data stream ends with this message, so a successor has nothing to
   * do. `offset` is the number of messages that had been appended, up to and including this one. Messages from
   * `StreamMessages` have both fields.
   */
  readonly commit: (
    id: EntryId,
    options?: { readonly isLast?: boolean | undefined; readonly offset?: number | undefined }
  ) => Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Moves the checkpoint to any message, forward or back, checked against the token. The next reader starts after that
   * message. A running reader keeps its position.
   */
  readonly seek: (to: Checkpoint) => Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Adds a message that cannot be processed to the data stream's dead letters. Repeated calls add it only once. The
   * checkpoint does not move, so commit the message as well.
   */
  readonly deadLetter: (message: RawMessage, reason: string) => Effect.Effect<void, LeaseLost | StoreError>
  /** Waits until there is a message after `after`, and reads up to `count` of them. */
  readonly messagesAfter: (
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, LeaseLost | StoreError>
  /** Reads the extent of the data stream; `None` if the stream does not exist. */
  readonly extent: Effect.Effect<Option.Option<Extent>, StoreError>
  /**
   * Counts the messages after `after`, up to `last` or to the end, and returns the extent at that instant. The count is
   * undefined before Redis 7.0, or if messages were deleted in the meantime.
   */
  readonly count: (
    after: EntryId,
    last?: EntryId
  ) => Effect.Effect<Option.Option<Extent & { readonly counted: number | undefined }>, StoreError>
}

/**
 * The service through which a handler accesses its lease.
 *
 * **Example** (Logging the token)
 *
 * ```ts
 * import { StreamLease } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const logToken = StreamLease.StreamLease.use(({ stream, token }) => Effect.log(`${stream} with token ${token}`))
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export const StreamLease: Context.Service<StreamLease, StreamLease> = Context.Service<StreamLease>(
  "@effect-simba/core/StreamLease"
)
