/**
 * Data-stream names and stream-entry ids.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import * as names from "../internal/nameRules.ts"
import { nameSchema } from "../internal/nameSchema.ts"

/**
 * The name of a data stream, which is the key of its Redis stream: valid Unicode, not blank, at most 1,024 characters,
 * without `<MUTEX_KEY_SEP>`.
 *
 * **Example** (Validating a name from a request)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const Request = Schema.Struct({ stream: StreamName.StreamName, amount: Schema.Int })
 *
 * const decode = Schema.decodeUnknownEffect(Request)
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const StreamName = nameSchema("the name of a data stream", names.streamProblem).pipe(
  Schema.brand("@effect-simba/StreamName")
)

/**
 * A validated data-stream name.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamName = typeof StreamName.Type

/**
 * The id of an entry in a Redis stream, `<milliseconds>-<sequence>`.
 *
 * **Details**
 *
 * An entry id names an announcement in the load-balancer stream, or a message in a data stream.
 *
 * **Example** (Decoding a checkpoint that was stored elsewhere)
 *
 * ```ts
 * import { StreamName } from "@effect-simba/core/streams"
 * import { Schema } from "effect"
 *
 * const decode = Schema.decodeUnknownEffect(Schema.Struct({ checkpoint: StreamName.EntryId }))
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const EntryId = Schema.String.check(Schema.isPattern(names.entryPattern)).pipe(
  Schema.brand("@effect-simba/EntryId")
)

/**
 * A validated entry id.
 *
 * @category models
 * @since 0.1.0
 */
export type EntryId = typeof EntryId.Type
