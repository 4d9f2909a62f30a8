/**
 * Changes of the ownership of a mutex, as observers see them.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { FencingToken } from "./FencingToken.ts"

const token = Schema.optionalKey(FencingToken)

/**
 * One change of ownership.
 *
 * **Details**
 *
 * - `Acquired`: `owner` owns the mutex now.
 * - `Renewed`: `owner` extended its lease.
 * - `Released`: `owner` released the mutex, and nobody owned it at the next poll.
 * - `HandedOver`: `owner` released the mutex, and `successor` owns it now. The successor need not have waited: the
 *   mutex may have been free in between, for less than the time between two polls.
 * - `Expired`: `owner` neither renewed nor released in time.
 * - `Gap`: something may have been missed. The next events show the state found afterwards.
 *
 * `token` is absent for Simba owners, which have none.
 *
 * **Example** (Events as lines of JSON)
 *
 * ```ts
 * import { Mutex, OwnerEvent } from "@effect-simba/core"
 * import { Effect, Schema, Stream } from "effect"
 *
 * const encode = Schema.encodeEffect(Schema.fromJsonString(OwnerEvent.OwnerEvent))
 *
 * const program = Mutex.events("jobs").pipe(
 *   Stream.mapEffect((event) => encode(event)),
 *   Stream.runForEach((line) => Effect.log(line))
 * )
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const OwnerEvent = Schema.TaggedUnion({
  Acquired: { mutex: Schema.String, owner: Schema.String, token },
  Renewed: { mutex: Schema.String, owner: Schema.String, token },
  Released: { mutex: Schema.String, owner: Schema.String },
  HandedOver: { mutex: Schema.String, owner: Schema.String, successor: Schema.String },
  Expired: { mutex: Schema.String, owner: Schema.String },
  Gap: { mutex: Schema.String }
})

/**
 * One change of ownership.
 *
 * @category models
 * @since 0.1.0
 */
export type OwnerEvent = typeof OwnerEvent.Type
