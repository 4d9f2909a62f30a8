/**
 * What happens to the ownership of a mutex, as observers see it.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"
import { FencingToken } from "./Ownership.ts"

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
