/**
 * Changes in a mutex's ownership, as observers see them. `Mutex.events` and `Contender.events` emit them.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { FencingToken } from "./FencingToken.ts"

const token = Schema.optionalKey(FencingToken)

/**
 * A change of ownership.
 *
 * **Details**
 *
 * - `Acquired`: `owner` now owns the mutex.
 * - `Renewed`: `owner` extended its lease. Only `Mutex.events` emits it, with the `renewals` option.
 * - `Released`: `owner` released the mutex or lost it to a forced release, and nobody owned it at the next poll.
 * - `HandedOver`: `owner` released the mutex or lost it to a forced release, and `successor` owns it now. The successor
 *   may not have been waiting: the mutex may have been free for a moment between two polls.
 * - `Expired`: `owner` neither renewed nor released in time.
 * - `Gap`: events may have been missed. The next events describe the state found afterwards.
 *
 * `token` is the owner's fencing token. It is absent for owners that run the original Simba library, which have none.
 *
 * **Example** (Logging events as JSON)
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
 * A change of ownership.
 *
 * @category models
 * @since 0.1.0
 */
export type OwnerEvent = typeof OwnerEvent.Type
