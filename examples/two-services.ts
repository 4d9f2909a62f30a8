/**
 * One process consumes the data streams of two services, over the connections of one `IoRedis` layer.
 *
 *     node examples/two-services.ts
 *     REDIS_URL=redis://localhost:6379 node examples/two-services.ts
 */
import { StreamClient, StreamLease } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { RedisEnv } from "./shared/redisEnv.ts"

class Orders extends StreamClient.Service<Orders>()("example/Orders") {}
class Refunds extends StreamClient.Service<Refunds>()("example/Refunds") {}

const Live = Layer.merge(
  Orders.layer({ service: "orders", enableEvents: true }),
  Refunds.layer({ service: "refunds", enableEvents: true })
).pipe(
  Layer.provide(RedisStreams.layerStore),
  Layer.provide(IoRedis.layerFromEnv()),
  Layer.provide(RedisEnv)
)

const book = (what: string) =>
  Effect.flatMap(StreamLease.StreamLease, ({ stream }) => Effect.log(`booking ${what} of ${stream}`))

const program = Effect.gen(function*() {
  const orders = yield* Orders
  const refunds = yield* Refunds
  yield* orders.announce("orders:eu")
  yield* refunds.announce("refunds:eu")
  return yield* Effect.all([orders.run(book("orders")), refunds.run(book("refunds"))], { concurrency: "unbounded" })
})

NodeRuntime.runMain(Effect.provide(program, Live))
