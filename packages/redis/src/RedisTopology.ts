/**
 * Describes whether Effect's `Redis` service is backed by a single primary or a Cluster.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Redis } from "./internal/client/effectRedis.ts"

/**
 * How keys are distributed over servers.
 *
 * **Details**
 *
 * - `Single`: one primary has all keys, whether or not Sentinel is used.
 * - `Cluster`: keys are spread over slots, so a script may use only one mutex's keys. `primaries` has a `send` for
 *   each primary, which fails if the primary is down. A `countable` `Subscriber` subscribes on each primary.
 *
 * `maxReserved` is the maximum number of concurrent connections from `Redis.reserve` (default: 8). Data-stream
 * consumers wait for messages on at most half of them. With `serverChecks: false`, layers that use this `Redis` do not
 * warn about the server's settings.
 *
 * **Example** (A custom `Redis` provider for a Cluster)
 *
 * ```ts
 * import * as RedisTopology from "@effect-simba/redis/RedisTopology"
 * import { Effect, Layer } from "effect"
 * import type { Redis } from "effect/persistence/Redis"
 *
 * const clusterOf = (primaries: ReadonlyArray<Redis["Service"]["send"]>) =>
 *   Layer.succeed(RedisTopology.RedisTopology, { _tag: "Cluster", primaries: Effect.succeed(primaries) })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type RedisTopology =
  | { readonly _tag: "Single"; readonly maxReserved?: number | undefined; readonly serverChecks?: boolean | undefined }
  | {
    readonly _tag: "Cluster"
    readonly primaries: Effect.Effect<ReadonlyArray<Redis["Service"]["send"]>>
    readonly maxReserved?: number | undefined
    readonly serverChecks?: boolean | undefined
  }

/**
 * The topology of the current `Redis`. Default: `Single`.
 *
 * @category references
 * @since 0.1.0
 */
export const RedisTopology: Context.Reference<RedisTopology> = Context.Reference<RedisTopology>(
  "@effect-simba/redis/RedisTopology",
  {
    defaultValue: () => ({ _tag: "Single" })
  }
)
