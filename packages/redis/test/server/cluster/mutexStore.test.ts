/** The whole contract of the mutex store on a Cluster. */
import { IoRedis, RedisMutexStore } from "@effect-simba/redis"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const onCluster = Layer.unwrap(Effect.map(RedisServer.cluster(), ({ nodes }) =>
  RedisMutexStore.layer.pipe(
    Layer.provide(IoRedis.layerCluster({ nodes: nodes.slice(0, 1).map(at), commandTimeout: "5 seconds" }))
  )))

MutexStoreSuite.suite("on a Cluster", onCluster, { live: true, countsSubscribers: false })
