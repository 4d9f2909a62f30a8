/**
 * Three consumers share the data streams of four regions and add up the orders. One shuts down halfway, and the others
 * take over its regions. Here they share a process. In production, each consumer runs in its own process, as in
 * `orders.ts`.
 *
 *     node examples/stream-fleet.ts
 *     REDIS_URL=redis://localhost:6379 node examples/stream-fleet.ts
 */
import { StreamClient } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Fiber, Layer, Ref } from "effect"
import { Redis } from "effect/persistence/Redis"
import { handler, Sums } from "./orders.ts"
import { RedisEnv } from "./shared/redisEnv.ts"

const regions = ["eu", "us", "asia", "africa"]
const service = `fleet-${process.pid}`
const streamOf = (region: string) => `${service}:${region}`

/** The layer for a client with this name. All clients share one `IoRedis` layer. */
const clientOf = (processName: string) => RedisStreams.layerRedis({ service, enableEvents: true, processName })

const consumer = (name: string) => Effect.provide(StreamClient.run(handler), clientOf(name))

const order = (region: string, amount: number, ...last: ReadonlyArray<string>) =>
  Redis.use((redis) => redis.send("XADD", streamOf(region), "*", "amount", String(amount), ...last))

const program = Effect.gen(function*() {
  const fleet = yield* Effect.forEach(["ada", "ben", "cleo"], (name) => Effect.forkChild(consumer(name)))
  yield* StreamClient.announceAll(regions.map((region) => ({ stream: streamOf(region) }))).pipe(
    Effect.provide(clientOf("producer"))
  )
  for (const amount of [40, 1, 1]) {
    yield* Effect.forEach(regions, (region) => order(region, amount))
    yield* Effect.sleep("500 millis")
    // The consumer finishes its current messages, then yields its data streams
    if (amount === 40) yield* Fiber.interrupt(fleet[0]!)
  }
  yield* Effect.forEach(regions, (region) => order(region, 0, "last", "yes"))
  const sums = yield* Effect.flatMap(Sums, Ref.get).pipe(
    Effect.delay("100 millis"),
    Effect.repeat({ until: (sums) => regions.every((region) => (sums[streamOf(region)] ?? 0) >= 42) })
  )
  yield* Effect.forEach(regions, (region) => Effect.log(`${region}: ${sums[streamOf(region)]}`))
  yield* Fiber.interruptAll(fleet)
})

const Live = Layer.merge(Sums.layer, Layer.provide(IoRedis.layerFromEnv(), RedisEnv))

NodeRuntime.runMain(Effect.provide(program, Live))
