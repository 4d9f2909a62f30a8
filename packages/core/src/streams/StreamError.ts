/**
 * Errors about stream ownership. Each one calls for a different reaction from the caller.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A consumer owns the data stream: leave the stream to it, or use `force`.
 *
 * **Example** (Moving a data stream only while nobody reads it)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const rewind = StreamClient.seek("orders:eu", "beginning").pipe(
 *   Effect.catchTag("AlreadyOwned", ({ message }) => Effect.logWarning(message))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class AlreadyOwned extends Schema.TaggedError<AlreadyOwned>("@effect-simba/core/AlreadyOwned")("AlreadyOwned", {
  stream: Schema.String
}) {
  /** The owner may release it later. */
  get isRetryable(): boolean {
    return true
  }
  override get message(): string {
    return `Data stream "${this.stream}" is owned by a consumer. Leave it to its owner, or use force.`
  }
}

/**
 * The data stream cannot be acquired: `problem` says whether it has not been announced or delivered yet, is finished or
 * dead-lettered, or the client is closed.
 *
 * **Example** (Ignoring a finished data stream)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { Effect, Option } from "effect"
 *
 * const acquire = StreamClient.acquireIfAvailable("orders:eu").pipe(
 *   Effect.catchTag("StreamNotFound", ({ message }) => Effect.as(Effect.logDebug(message), Option.none()))
 * )
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamNotFound extends Schema.TaggedError<StreamNotFound>("@effect-simba/core/StreamNotFound")(
  "StreamNotFound",
  { stream: Schema.String, problem: Schema.String }
) {
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    return `Data stream "${this.stream}": ${this.problem}.`
  }
}

/**
 * The handler yielded its data stream unfinished, with `StreamLease.yield`. It does not count as a failure.
 *
 * **Example** (Treating a yield as a success)
 *
 * ```ts
 * import type { StreamError } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const quiet = <A, R>(handler: Effect.Effect<A, StreamError.StreamYielded, R>) =>
 *   Effect.catchTag(handler, "StreamYielded", ({ stream }) => Effect.log(`${stream} continues elsewhere`))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamYielded
  extends Schema.TaggedError<StreamYielded>("@effect-simba/core/StreamYielded")("StreamYielded", {
    stream: Schema.String
  })
{
  get isRetryable(): boolean {
    return false
  }
  override get message(): string {
    return `Data stream "${this.stream}" was yielded by its handler.`
  }
}
