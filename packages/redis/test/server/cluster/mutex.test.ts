/** Runs the mutex scenarios on a Cluster. */
import { IoRedis } from "@effect-simba/redis"
import { Context, Effect, Layer } from "effect"
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
    commandTimeout: "5 seconds"
  })))).pipe(Layer.provideMerge(ClusterNodes.layer))

contract("cluster", onCluster)
