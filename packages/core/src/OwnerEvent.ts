/**
 * What happens to the ownership of a mutex, as observers see it.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"
import { FencingToken } from "./FencingToken.ts"

const token = Schema.optionalKey(FencingToken)

/**
 * One change of ownership.
 *
 * - `Acquired`: `owner` has it now.
 * - `Renewed`: `owner` extended it.
 * - `Released`: `owner` gave it up, and nobody was waiting.
 * - `HandedOver`: `owner` gave it up, and `successor` has it now.
 * - `Expired`: `owner` neither renewed nor released it in time.
 * - `Gap`: something may have been missed; what follows is the state found afterwards.
 *
 * `token` is absent where the owner is not one of ours (a Simba contender has none).
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
 * @category models
 * @since 0.1.0
 */
export type OwnerEvent = typeof OwnerEvent.Type

/**
 * - `every` (default 1 second): the longest time between two looks while nothing is announced. Releases to nobody and
 *   expiries are announced by nobody, so this is how late they are seen at most.
 * - `renewals` (default false): whether renewals are events too.
 *
 * @see {@link Mutex.events}
 * @category models
 * @since 0.1.0
 */
export interface EventsOptions {
  readonly every?: Duration.Input | undefined
  readonly renewals?: boolean | undefined
}
