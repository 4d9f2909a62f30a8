/**
 * An owned data stream, from the taking to its end or loss.
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
 * A data stream that this consumer owns, renewed in the background until it is done, given up, handed over or lost.
 *
 * **When to use**
 *
 * Use in a handler of `StreamClient.run`, which finds its own lease in its context or gets it as an argument. Use
 * `StreamClient.acquireIfAvailable` for a lease without a handler.
 *
 * **Details**
 *
 * Two things end the ownership early. *Revoked*: the fleet wants the stream back. The handler still owns it, and has the
 * grace period to come to a good point and `yield`. *Lost*: another consumer may own the stream already, and the handler
 * is interrupted at once.
 *
 * Every member reads the local clock, and counts from just before the last successful renewal was sent.
 *
 * Printing a lease shows `stream`, `entry`, `token` and `timeLeft`.
 *
 * **Example** (A handler that writes with its token, and stops at a good point)
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
  /** The entry of the load-balancer stream that announced the data stream. */
  readonly entry: EntryId
  /** What the producer said about the data stream. */
  readonly info: Readonly<Record<string, unknown>>
  /** Grows with every taking of this data stream. Give it to what the handler writes to. */
  readonly token: FencingToken
  /** How often a handler of this entry failed in a row, or its lease ran out. A commit and progress end a streak. */
  readonly failures: number
  /** How long its checkpoint is kept without an owner. */
  readonly checkpointRetention: Duration.Duration
  /** Whether the data stream is owned at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while the data stream is owned, otherwise fails with the reason. */
  readonly ensure: Effect.Effect<void, LeaseLost>
  /** Time until the local deadline, zero once the ownership is over. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /** Waits for the loss, and never ends if the stream is finished or given up in order. */
  readonly lost: Effect.Effect<LeaseLost>
  /** Waits until the stream is revoked: for balance, or because the client closes. */
  readonly revoked: Effect.Effect<void>
  /** Whether the stream is revoked. False again after another one moved for the balance instead. */
  readonly isRevoked: Effect.Effect<boolean>
  /**
   * Ends the handler and gives up the unfinished stream. It does not count as a failure. The handler runs again here if it was
   * revoked for the balance, and another stream moved instead.
   */
  readonly yield: Effect.Effect<never, StreamYielded>
  /**
   * Finishes the stream, and removes its announcement. Its handler is interrupted and awaited first, unless it or its
   * `onError` is the caller. Fails with `LeaseLost` where the ownership ended otherwise. After a `BackendError` the stream
   * may still be owned: try again.
   */
  readonly done: Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Gives up the unfinished stream, for other consumers to take at once. Its handler is interrupted and awaited first. Where
   * the handler or its `onError` is the caller, the release follows their end.
   */
  readonly release: Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Runs `effect` while the stream is owned. A loss interrupts it, awaits its finalizers, and fails with `LeaseLost`; so does
   * a lease that was over before `effect` succeeded. A failure of `effect` wins over the loss.
   */
  readonly protect: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | LeaseLost, R>
  /** Reports progress to `progressTimeout`, and ends a streak of failures, for a handler that commits nothing. */
  readonly progress: Effect.Effect<void>
  /** The last committed message of the data stream. */
  readonly checkpoint: Effect.Effect<Option.Option<Checkpoint>, StoreError>
  /** Whether the data stream ended at its checkpoint, under this announcement or an earlier one. */
  readonly end: Effect.Effect<StreamEnd, StoreError>
  /**
   * Moves the checkpoint forward to `id`, checked against the token in the backend. A replaced owner fails with
   * `LeaseLost` and changes nothing. An id that is not ahead of the checkpoint changes nothing either, nor one
   * of a message that the backend lost. `isLast` says that
   * the data stream ends with this message: a successor that finds it so has nothing to do. `offset` is how many messages
   * were added up to this one. Both are fields of a message of `StreamMessages`.
   */
  readonly commit: (
    id: EntryId,
    options?: { readonly isLast?: boolean | undefined; readonly offset?: number | undefined }
  ) => Effect.Effect<void, LeaseLost | StoreError>
  /** Moves the checkpoint to any message, also back, checked against the token. What follows it is processed again. */
  readonly seek: (to: Checkpoint) => Effect.Effect<void, LeaseLost | StoreError>
  /**
   * Adds a message that cannot be processed to the data stream's dead letters, once, however often it is sent. The
   * checkpoint stays where it is: commit the message too.
   */
  readonly deadLetter: (message: RawMessage, reason: string) => Effect.Effect<void, LeaseLost | StoreError>
  /** Up to `count` messages after `after`, waiting until there is one. */
  readonly messagesAfter: (
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, LeaseLost | StoreError>
  /** How far the data stream reaches, none if there is no such stream. */
  readonly extent: Effect.Effect<Option.Option<Extent>, StoreError>
  /**
   * How many messages are left after `after`, up to `last` or to the last one of all, and the extent of that instant. The
   * count is undefined before Redis 7.0, and where messages were deleted meanwhile.
   */
  readonly count: (
    after: EntryId,
    last?: EntryId
  ) => Effect.Effect<Option.Option<Extent & { readonly counted: number | undefined }>, StoreError>
}

/**
 * The tag by which a handler finds its lease.
 *
 * **Example** (A log line with the token)
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
