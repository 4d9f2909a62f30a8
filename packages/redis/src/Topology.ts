/**
 * What this package must know about the shape of the Redis behind Effect's `Redis` service.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"

/**
 * `single`: one primary has all keys (also behind Sentinel). `cluster`: keys are spread over slots, so that a script may
 * name the keys of one mutex only. Layers that connect to a Cluster set it.
 *
 * @category references
 * @since 0.1.0
 */
export const Topology: Context.Reference<"single" | "cluster"> = Context.Reference<"single" | "cluster">(
  "@effect-simba/redis/Topology",
  { defaultValue: () => "single" }
)
