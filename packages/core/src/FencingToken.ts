/**
 * Numbers by which a resource refuses former owners.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A number that grows with every grant of a mutex.
 *
 * **When to use**
 *
 * Use it for all access to the resource that the mutex protects. A resource that refuses tokens smaller than the
 * largest it has seen accepts no write from a former owner, even if that owner was paused past its deadline.
 *
 * **Gotchas**
 *
 * Show the token to the resource before you read what you will change. Otherwise a former owner can write between your
 * read and your write. `SqlFence` and `RedisFence.raise` do that.
 *
 * **Example** (Refusing the writes of a former holder)
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

/**
 * What shows a token to a resource: a lease, whose resource has the name of its mutex or data stream, or an explicit
 * resource and token.
 *
 * **When to use**
 *
 * Pass the lease itself. Pass a resource and a token if the token came over a network, or if the resource does not have
 * the name of the mutex.
 *
 * **Example** (A request with its token)
 *
 * ```ts
 * import type { FencingToken } from "@effect-simba/core"
 * import * as SqlFence from "@effect-simba/core/SqlFence"
 * import { Effect } from "effect"
 *
 * const put = (month: string, token: FencingToken.FencingToken) =>
 *   Effect.log("writing").pipe(SqlFence.withTransaction({ resource: `report:${month}`, token }))
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Bearer =
  & { readonly token: FencingToken }
  & (
    | { readonly mutex: string }
    | { readonly stream: string }
    | { readonly resource: string }
  )

/**
 * Returns the name of the resource to which the bearer shows its token.
 *
 * **Example** (A custom fence)
 *
 * ```ts
 * import { FencingToken } from "@effect-simba/core"
 *
 * const headers = (bearer: FencingToken.Bearer) => ({
 *   "Fencing-Resource": FencingToken.resourceOf(bearer),
 *   "Fencing-Token": String(bearer.token)
 * })
 * ```
 *
 * @category getters
 * @since 0.1.0
 */
export const resourceOf = (bearer: Bearer): string =>
  "resource" in bearer ? bearer.resource : "mutex" in bearer ? bearer.mutex : bearer.stream
