/**
 * Failures of stream ownership, each named for what the caller does next.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * Another consumer, or this one, owns the data stream: leave it to its owner.
 *
 * **Example** (Leaving a data stream to its owner)
 *
 * ```ts
 * import type { StreamError } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const unlessOwned = <A, R>(claim: Effect.Effect<A, StreamError.AlreadyClaimed, R>) =>
 *   Effect.catchTag(claim, "AlreadyClaimed", ({ owner, stream }) => Effect.log(`${stream} is owned by ${owner}`))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class AlreadyClaimed extends Schema.TaggedError<AlreadyClaimed>("@effect-simba/core/AlreadyClaimed")(
  "AlreadyClaimed",
  {
    stream: Schema.String,
    /** Who holds it, as far as the backend says. */
    owner: Schema.optionalKey(Schema.String)
  }
) {
  override get message(): string {
    const owner = this.owner === undefined ? "" : ` (owner: ${this.owner})`
    return `Data stream "${this.stream}" is owned by another consumer${owner}. Leave it to its owner.`
  }
}

/**
 * The data stream is not announced, is finished, or (for `doneStream` and `release`) is not owned here.
 *
 * **Example** (Finished already)
 *
 * ```ts
 * import type { StreamError } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const finished = <R>(done: Effect.Effect<void, StreamError.StreamNotFound, R>) =>
 *   Effect.catchTag(done, "StreamNotFound", ({ problem, stream }) => Effect.logDebug(`${stream}: ${problem}`))
 * ```
 *
 * @category errors
 * @since 0.1.0
 */
export class StreamNotFound extends Schema.TaggedError<StreamNotFound>("@effect-simba/core/StreamNotFound")(
  "StreamNotFound",
  { stream: Schema.String, problem: Schema.String }
) {
  override get message(): string {
    return `Data stream "${this.stream}": ${this.problem}.`
  }
}

/**
 * The handler gave up its data stream unfinished, by `StreamLease.yield`. It does not count as a failure.
 *
 * **Example** (No reason to log an error)
 *
 * ```ts
 * import type { StreamError } from "@effect-simba/core/streams"
 * import { Effect } from "effect"
 *
 * const quiet = <A, R>(handler: Effect.Effect<A, StreamError.StreamYielded, R>) =>
 *   Effect.catchTag(handler, "StreamYielded", ({ stream }) => Effect.log(`${stream} goes on elsewhere`))
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
  override get message(): string {
    return `Data stream "${this.stream}" was given back by its handler.`
  }
}
