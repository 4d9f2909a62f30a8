/** Runs the store contracts on a real server through `NodeRedis`, Effect's own provider for its `Redis` service. */
import { Mutex } from "@effect-simba/core"
import { StreamClient, StreamLease } from "@effect-simba/core/streams"
import * as RedisMutex from "@effect-simba/redis/RedisMutex"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"
import { append } from "../../support/streams.ts"
import { contract, mutexes } from "../../support/topologyContract.ts"

/** Opens new connections for each build, as a separate process would. */
const to = (url: string) => Layer.fresh(NodeRedis.layer({ url }))

const alone = Layer.unwrap(Effect.map(RedisServer, ({ url }) => to(url))).pipe(Layer.provide(RedisServer.layer))

MutexStoreSuite.suite("a real Redis, by NodeRedis", RedisMutex.layerStore.pipe(Layer.provide(alone)), { live: true })

StreamStoreSuite.suite("a real Redis, by NodeRedis", RedisStreams.layerStore.pipe(Layer.provideMerge(alone)), {
  live: true,
  append
})

contract("NodeRedis", mutexes(alone))

it.live(
  "a release in one process wakes a waiter in another long before the lease would expire",
  () =>
    Effect.gen(function*() {
      const { url } = yield* RedisServer.start()
      const open = Effect.map(
        Layer.build(Layer.fresh(
          RedisMutex.layerRedis({ ttl: "1 minute" }).pipe(
            Layer.provide(to(url))
          )
        )),
        (context) => Context.get(context, Mutex.Mutex)
      )
      const [first, second] = [yield* open, yield* open]
      const letGo = yield* Deferred.make<void>()
      const held = yield* Deferred.make<void>()
      yield* Effect.forkScoped(
        first.withLock("m")(Effect.andThen(Deferred.succeed(held, undefined), Deferred.await(letGo)))
      )
      yield* Deferred.await(held)
      const waiting = yield* Effect.forkScoped(second.withLock("m")(Effect.succeed("mine")))
      yield* Effect.sleep("200 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* Deferred.succeed(letGo, undefined)
      assert.strictEqual(yield* Effect.timeout(Fiber.join(waiting), "5 seconds"), "mine")
    }),
  30_000
)

it.live("one process consumes a data stream that another one announces", () =>
  Effect.gen(function*() {
    const { url } = yield* RedisServer.start()
    const client = (processName: string) =>
      Layer.fresh(
        RedisStreams.layerRedis({ service: "s", processName }).pipe(
          Layer.provide(to(url))
        )
      )
    const observed = yield* Deferred.make<string>()
    yield* StreamClient.run(
      Effect.flatMap(StreamLease.StreamLease, ({ stream }) => Deferred.succeed(observed, stream))
    ).pipe(Effect.provide(client("consumer")), Effect.forkScoped)
    yield* Effect.provide(StreamClient.announce("data", {}), client("producer"))
    assert.strictEqual(yield* Effect.timeout(Deferred.await(observed), "10 seconds"), "data")
  }), 30_000)
