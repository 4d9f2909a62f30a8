/**
 * The shape of the Redis behind Effect's `Redis` service.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { Redis } from "./internal/client/effectRedis.ts"

/**
 * How the keys are spread over servers.
 *
 * **Details**
 *
 * - `Single`: one primary has all keys (also behind Sentinel).
 * - `Cluster`: keys are spread over slots, so a script may only use keys of one mutex. `primaries` are the nodes with
 *   keys, each with its own way to send. A `Subscriber` that is `countable` subscribes at each of them.
 *
 * `maxReserved` is how many connections `Redis.reserve` provides at once (default: 8). Consumers of data streams wait
 * for messages on at most half of them. `serverChecks: false` keeps layers on this `Redis` from warnings about the
 * server's settings.
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
 * The topology of the current `Redis`, `Single` unless a layer says otherwise.
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
