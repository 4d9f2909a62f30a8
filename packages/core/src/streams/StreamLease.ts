/**
 * One holding of a data stream, from the taking to its end or loss.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type { FencingToken } from "../FencingToken.ts"
import type { StoreError } from "../SimbaError.ts"
import type { StreamLost, StreamYielded } from "./StreamError.ts"
import type { EntryId, StreamName } from "./StreamName.ts"
import type { RawMessage } from "./StreamStore.ts"

/**
 * A data stream that this consumer owns. Renewed in the background until it is done, given back, handed over or lost.
 * A handler of `StreamClient.run` finds its own in its context.
 *
 * Two things end it early, and they are different. *Asked back*: `revoked` completes, the stream is still
 * ours, and the handler has a grace period to come to a good point and `handBack`. *Lost*: `lost` completes, the stream
 * may be somebody else's already, and the handler is interrupted at once.
 *
 * All judgements are local, by the clock, from just before the last successful renewal was sent.
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
 * @category services
 * @since 0.1.0
 */
export class StreamLease extends Context.Service<StreamLease, {
  readonly stream: StreamName
  /** The entry of the load-balancer stream that announced it. */
  readonly entry: EntryId
  /** What the producer said about it. */
  readonly info: Readonly<Record<string, unknown>>
  /** Grows with every taking of this data stream. Give it to what the handler writes to. */
  readonly token: FencingToken
  /** How often a handler of this entry failed, or its lease ran out, since the last commit. */
  readonly failures: number
  /** Whether it is owned at this instant. */
  readonly isHeld: Effect.Effect<boolean>
  /** Succeeds while it is owned, otherwise fails with the reason. */
  readonly ensure: Effect.Effect<void, StreamLost>
  /** Time until the local deadline; zero once it is over. */
  readonly timeLeft: Effect.Effect<Duration.Duration>
  /** Waits for the loss, and never ends if the stream is finished or given back in order. */
  readonly lost: Effect.Effect<StreamLost>
  /** Waits until it is asked back: for balance, or because the client closes. */
  readonly revoked: Effect.Effect<void>
  /** Whether it has been asked back. */
  readonly isRevoked: Effect.Effect<boolean>
  /** Ends the handler: the stream is given back unfinished, and no failure is counted. */
  readonly yield: Effect.Effect<never, StreamYielded>
  /** Says that the handler is getting on, where `progressTimeout` watches it and it commits nothing. */
  readonly progress: Effect.Effect<void>
  /** The last committed message of the data stream. */
  readonly checkpoint: Effect.Effect<Option.Option<EntryId>, StoreError>
  /** Whether the checkpoint was moved since this announcement of the data stream, by this owner or one before it. */
  readonly hasCommitted: Effect.Effect<boolean, StoreError>
  /**
   * Moves the checkpoint forward to `id`, checked against the token in the backend: an owner that was replaced fails
   * with `StreamLost` and changes nothing. An id that is not ahead of the checkpoint changes nothing either.
   */
  readonly commit: (id: EntryId) => Effect.Effect<void, StreamLost | StoreError>
  /** Moves the checkpoint past a message that cannot be processed, which goes to the data stream's dead letters. */
  readonly deadLetter: (message: RawMessage, reason: string) => Effect.Effect<void, StreamLost | StoreError>
  /** Up to `count` messages after `after`, waiting until there is one. */
  readonly messagesAfter: (
    after: EntryId,
    count: number
  ) => Effect.Effect<ReadonlyArray<RawMessage>, StreamLost | StoreError>
}>()("@effect-simba/core/StreamLease") {}
