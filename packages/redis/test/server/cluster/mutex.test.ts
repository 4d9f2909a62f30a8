/** Mutexes on a Cluster. */
import { Mutex } from "@effect-simba/core"
import { IoRedis } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"
import { contract, mutexes } from "../../support/topologyContract.ts"

class ClusterNodes extends Context.Service<ClusterNodes, Effect.Success<ReturnType<typeof RedisServer.cluster>>>()(
  "test/ClusterNodes"
) {
  static readonly layer = Layer.effect(ClusterNodes, RedisServer.cluster())
}

const onCluster = Layer.unwrap(Effect.map(ClusterNodes, ({ nodes }) =>
  mutexes(IoRedis.layerCluster({
    nodes: nodes.slice(0, 1).map(({ port }) => ({ host: "127.0.0.1", port })),
    commandTimeout: "500 millis"
  })))).pipe(Layer.provideMerge(ClusterNodes.layer))

contract("cluster", onCluster)

layer(onCluster, { excludeTestServices: true, timeout: "60 seconds" })("Cluster, subscriber", (it) => {
  it.effect(
    "a dead waiter is not skipped there: it costs one confirm period, and no more",
    () =>
      Effect.gen(function*() {
        const { client } = yield* IoRedis.IoRedis
        const scope = yield* Effect.forkChild(Mutex.withLock("m")(Effect.sleep("300 millis")), {
          startImmediately: true
        })
        yield* Effect.sleep("50 millis")
        const seconds = Math.floor(Number((yield* Effect.promise(() => client.time()))[0]))
        // Nobody listens to this one: it waits, as far as the queue knows, ahead of everybody
        yield* Effect.promise(() => client.zadd("simba:{m}:contender", `${seconds - 60}.000001`, "1-000000000000:dead"))
        const waiter = yield* Effect.forkChild(Mutex.withLock("m")(Mutex.owner("m")))
        yield* Fiber.join(scope)
        const owner = yield* Mutex.owner("m")
        assert.deepInclude(owner, { _tag: "Held", owner: "1-000000000000:dead" })
        const next = yield* Fiber.join(waiter)
        assert.strictEqual(next._tag, "Held")
      }),
    { tags: ["H3"] }
  )
})
