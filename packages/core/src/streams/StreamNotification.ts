/**
 * Changes in the ownership of data streams, as emitted by `StreamClient.notifications`.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { FencingToken } from "../FencingToken.ts"
import { LossReason } from "../SimbaError.ts"
import { EntryId, StreamName } from "./StreamName.ts"

/**
 * A change in the ownership of a data stream.
 *
 * **Details**
 *
 * - `StreamAdded`: this consumer now owns the data stream, with this token.
 * - `StreamExpired`: an owner's lease expired, and `acquireIfAvailable` may take the data stream. Requires a backend
 *   that publishes expired leases (see `enableEvents` in `StreamClient.Options`).
 * - `StreamDisowned`: this consumer lost the data stream.
 * - `StreamTerminated`: no more notifications follow, because the client is closing or the backend permanently refused
 *   a request.
 *
 * **Example** (Describing each notification)
 *
 * ```ts
 * import { StreamNotification } from "@effect-simba/core/streams"
 *
 * const line = StreamNotification.StreamNotification.match({
 *   StreamAdded: ({ stream, token }) => `${stream} is ours, with token ${token}`,
 *   StreamExpired: ({ stream }) => `${stream} has no owner`,
 *   StreamDisowned: ({ reason, stream }) => `${stream} is no longer owned: ${reason._tag}`,
 *   StreamTerminated: ({ reason }) => reason
 * })
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const StreamNotification = Schema.TaggedUnion({
  StreamAdded: {
    stream: StreamName,
    entry: EntryId,
    info: Schema.Record(Schema.String, Schema.Unknown),
    token: FencingToken
  },
  StreamExpired: { stream: StreamName, entry: EntryId },
  StreamDisowned: { stream: StreamName, entry: EntryId, token: FencingToken, reason: LossReason },
  StreamTerminated: { reason: Schema.String }
})

/**
 * A change in the ownership of a data stream.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamNotification = typeof StreamNotification.Type
