/**
 * Numbers by which a resource refuses a former holder.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A number that grows with every grant of a mutex.
 *
 * **When to use**
 *
 * Use it for all access to the resource that the mutex protects. A resource that refuses tokens smaller than the largest
 * it has seen takes no write of a former holder, even if that holder was paused past its deadline.
 *
 * **Gotchas**
 *
 * Show the token to the resource before you read what you will change. Otherwise a former holder can write between your
 * read and your write. `SqlFence` and `Fencing.raise` do so.
 *
 * **Example** (Refusing what comes from a former holder)
 *
 * ```ts
 * import { FencingToken } from "@effect-simba/core"
 * import { Ref, Schema } from "effect"
 *
 * const Write = Schema.Struct({ token: FencingToken.FencingToken, text: Schema.String })
 *
 * const accept = (largest: Ref.Ref<number>, write: typeof Write.Type) =>
 *   Ref.modify(largest, (seen) => [write.token >= seen, Math.max(seen, write.token)])
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const FencingToken = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })).pipe(
  Schema.brand("@effect-simba/FencingToken")
)

/**
 * A checked fencing token.
 *
 * @category models
 * @since 0.1.0
 */
export type FencingToken = typeof FencingToken.Type
