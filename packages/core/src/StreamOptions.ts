/**
 * What the operations of `StreamClient` are given, what they answer, and how they fail, as types.
 *
 * @since 0.1.0
 */
import type * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type { BackendError, InvalidConfig, InvalidName, ProtocolError } from "./Errors.ts"
import type { FencingToken } from "./Ownership.ts"
import type { AlreadyClaimed, StreamLost, StreamNotFound } from "./StreamErrors.ts"
import type { StreamLease } from "./StreamLease.ts"
import type { EntryId, StreamName } from "./StreamNames.ts"

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
 * import { StreamClient } from "@effect-simba/core"
 * import { Metric, Schedule } from "effect"
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
 * import type { StreamClient } from "@effect-simba/core"
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
export type RunError = InvalidConfig | BackendError | ProtocolError

/**
 * Why a data stream could not be had.
 *
 * @see {@link StreamClient.claim}
 * @category errors
 * @since 0.1.0
 */
export type ClaimError = AlreadyClaimed | StreamNotFound | InvalidName | BackendError | ProtocolError

/**
 * Why a data stream could not be ended.
 *
 * @see {@link StreamClient.claim}
 * @category errors
 * @since 0.1.0
 */
export type EndError = StreamNotFound | StreamLost | InvalidName | BackendError | ProtocolError
