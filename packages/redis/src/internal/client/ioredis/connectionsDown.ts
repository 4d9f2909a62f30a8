/**
 * The gauges for connections that are currently lost. They are not in `outageLog`, because that module imports ioredis.
 */
import * as Metric from "effect/Metric"

export type Kind = "commands" | "subscriber"

const down = (role: Kind) =>
  Metric.gauge("simba_redis_connections_down", {
    description: "Connections to Redis that are lost and not yet restored, by role",
    attributes: { role }
  })

export const connectionsDown: { readonly [Role in Kind]: Metric.Gauge<number> } = {
  commands: down("commands"),
  subscriber: down("subscriber")
}
