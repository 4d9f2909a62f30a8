/**
 * Runs the mutex-store contract on a Cluster: once with a provider whose subscribers can be counted, and once with one
 * whose subscribers cannot.
 */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const redis = Layer.unwrap(
  Effect.map(
    RedisServer.cluster(),
    ({ nodes }) => IoRedis.layerCluster({ nodes: nodes.slice(0, 1).map(at), commandTimeout: "5 seconds" })
  )
)

const uncounted = Layer.effect(Subscriber, Effect.map(Subscriber, (real) => ({ ...real, countable: false }))).pipe(
  Layer.provideMerge(redis)
)

MutexStoreSuite.suite("on a Cluster", RedisMutex.layerStore.pipe(Layer.provide(redis)), { live: true })

MutexStoreSuite.suite(
  "on a Cluster, with a provider that subscribes on one node only",
  RedisMutex.layerStore.pipe(
    Layer.provide(uncounted)
  ),
  { live: true, countsSubscribers: false }
)
