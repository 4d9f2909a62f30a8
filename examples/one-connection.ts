/**
 * Mutexes and data streams that share one `IoRedis` layer and its connections. Their options come from `Config` under
 * names that the application chooses.
 *
 *     node examples/one-connection.ts
 *     REDIS_URL=redis://localhost:6379 LEDGER_TTL='5 seconds' ORDERS_CAPACITY=100 node examples/one-connection.ts
 */
import { Mutex } from "@effect-simba/core"
import { StreamClient, StreamLease } from "@effect-simba/core/streams"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { Config, Effect, Layer } from "effect"
import { RedisEnv } from "./shared/redisEnv.ts"

const MutexLive = Mutex.layerConfig({ ttl: Config.Duration("LEDGER_TTL").pipe(Config.withDefault("10 seconds")) })

const StreamsLive = StreamClient.layerConfig({
  service: Config.succeed("orders"),
  enableEvents: Config.succeed(true),
  capacity: Config.Int("ORDERS_CAPACITY").pipe(Config.withDefault(16))
})

const Live = Layer.merge(MutexLive, StreamsLive).pipe(
  Layer.provide([RedisMutex.layerStore, RedisStreams.layerStore]),
  Layer.provide(IoRedis.layerConfig({ url: Config.Redacted("REDIS_URL") })),
  Layer.provide(RedisEnv)
)

const Ledger = Mutex.named("ledger")

/** Books messages into the ledger, one data stream at a time. */
const book = Effect.gen(function*() {
  const { stream } = yield* StreamLease.StreamLease
  yield* Ledger.withLock(Effect.log(`booking ${stream}`))
})

const program = StreamClient.announceAll([{ stream: "orders:eu" }, { stream: "orders:us" }]).pipe(
  Effect.andThen(StreamClient.run(book))
)

NodeRuntime.runMain(Effect.provide(program, Live))
