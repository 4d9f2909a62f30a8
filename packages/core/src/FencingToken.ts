/**
 * Fencing tokens: numbers that let a resource reject former owners.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A number that grows with every grant of a mutex or data stream.
 *
 * **When to use**
 *
 * Pass it with every access to the resource that the mutex protects. A resource that rejects tokens smaller than the
 * largest it has seen never accepts a write from a former owner, even if that owner was paused past its deadline.
 *
 * **Gotchas**
 *
 * Present the token to the resource before you read the data that you will change. Otherwise a former owner can write
 * between your read and your write. `SqlFence` and `RedisFence.raise` do this.
 *
 * **Example** (Rejecting writes from a former owner)
 *
 * ```ts
 * import { FencingToken } from "@effect-simba/core"
 * import { Ref, Schema } from "effect"
 *
 * const Write = Schema.Struct({ token: FencingToken.FencingToken, text: Schema.String })
 *
 * const accept = (largest: Ref.Ref<number>, write: typeof Write.Type) =>
 *   Ref.modify(largest, (known) => [write.token >= known, Math.max(known, write.token)])
 * ```
 *
 * @category schemas
 * @since 0.1.0
 */
export const FencingToken = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })).pipe(
  Schema.brand("@effect-simba/FencingToken")
)

/**
 * A validated fencing token.
 *
 * @category models
 * @since 0.1.0
 */
export type FencingToken = typeof FencingToken.Type

/**
 * A fencing token and the resource that it is for. A lease stands for the resource with the same name as its mutex or
 * data stream. For any other resource, pass the resource's name and the token.
 *
 * **When to use**
 *
 * Pass the lease itself. Pass a resource and a token if the token arrived over a network, or if the resource is not
 * named after the mutex.
 *
 * **Example** (Using a token from a request)
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
 * Returns the name of the resource that the bearer's token is for.
 *
 * **Example** (Sending a token in HTTP headers)
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
