/**
 * Mutexes and the data streams of two services in one process, on one connection.
 *
 *     node examples/one-connection.ts
 *     REDIS_URL=redis://localhost:6379 ORDERS_CAPACITY=100 node examples/one-connection.ts
 */
import { Mutex } from "@effect-simba/core"
import { StreamClient } from "@effect-simba/core/streams"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { Config, Deferred, Effect, Layer } from "effect"
import { redisUrl } from "./shared/redisUrl.ts"

class Orders extends StreamClient.Service<Orders>()("example/Orders") {}
class Refunds extends StreamClient.Service<Refunds>()("example/Refunds") {}

const StreamsLive = Layer.mergeAll(
  Orders.layerConfig({
    service: Config.succeed("orders"),
    enableEvents: Config.succeed(true),
    capacity: Config.Int("ORDERS_CAPACITY").pipe(Config.withDefault(16))
  }),
  Refunds.layer({ service: "refunds", enableEvents: true })
).pipe(Layer.provide(RedisStreams.layerStore))

const Live = Layer.mergeAll(RedisMutex.layerRedis(), StreamsLive).pipe(
  Layer.provide(Layer.unwrap(Effect.map(redisUrl, (url) => IoRedis.layer({ url }))))
)

/** Both services book into one ledger, one at a time. */
const book = (client: StreamClient.StreamClient["Service"], stream: string) =>
  Effect.gen(function*() {
    const booked = yield* Deferred.make<void>()
    yield* client.announceAll([{ stream }])
    const handler = Effect.log(`booking ${stream}`).pipe(
      Mutex.withLock("ledger"),
      Effect.andThen(Deferred.succeed(booked, undefined))
    )
    yield* Effect.raceFirst(client.run(handler), Deferred.await(booked))
  })

const program = Effect.gen(function*() {
  yield* Effect.all([book(yield* Orders, "orders:eu"), book(yield* Refunds, "refunds:eu")], { concurrency: 2 })
})

NodeRuntime.runMain(Effect.provide(program, Live))
