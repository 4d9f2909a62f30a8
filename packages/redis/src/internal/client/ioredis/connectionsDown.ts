/** How many connections are lost and not restored yet. Beside the log of outages, which needs ioredis. */
import * as Metric from "effect/Metric"

export type Kind = "commands" | "subscriber"

const down = (role: Kind) =>
  Metric.gauge("simba_redis_connections_down", {
    description: "Connections to Redis that are lost and not restored yet, by role",
    attributes: { role }
  })

export const connectionsDown: { readonly [Role in Kind]: Metric.Gauge<number> } = {
  commands: down("commands"),
  subscriber: down("subscriber")
}
