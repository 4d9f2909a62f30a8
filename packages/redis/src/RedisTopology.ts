/**
 * Describes whether Effect's `Redis` service uses a single primary or a Cluster.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Redis } from "./internal/client/effectRedis.ts"

/**
 * The distribution of keys over servers.
 *
 * **Details**
 *
 * - `Single`: one primary has all keys, with or without Sentinel.
 * - `Cluster`: keys are spread over slots, so a script may only use keys of one mutex. `primaries` has a `send` for
 *   each primary; for a primary that is down, it fails. A `countable` `Subscriber` subscribes at each of them.
 *
 * `maxReserved` is the maximum number of concurrent connections from `Redis.reserve` (default: 8). Consumers of data
 * streams wait for messages on at most half of them. With `serverChecks: false`, layers on this `Redis` do not warn
 * about the server's settings.
 *
 * **Example** (A provider of `Redis` that reaches a Cluster)
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
