/** The whole contract of the stream store on real servers: alone, behind Sentinel, and as a Cluster. */
import { IoRedis } from "@effect-simba/redis"
import * as RedisStreamStore from "@effect-simba/redis/streams/RedisStreamStore"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { RedisServer } from "../../support/redisServer.ts"
import { append } from "../../support/streams.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const alone = Layer.unwrap(
  Effect.map(
    RedisServer,
    ({ url }) => IoRedis.layer({ url, commandTimeout: "5 seconds", pool: { maxConnections: 64 } })
  )
).pipe(Layer.provide(RedisServer.layer))

const withEvents = Layer.effectDiscard(
  Effect.flatMap(Redis, (redis) => redis.send("CONFIG", "SET", "notify-keyspace-events", "Ex"))
)

const throughSentinel = Layer.unwrap(
  Effect.map(RedisServer.sentinel(), ({ name, sentinels }) =>
    RedisStreamStore.layer.pipe(
      Layer.provideMerge(
        IoRedis.layer({
          client: { name, sentinels: sentinels.map(at) },
          commandTimeout: "5 seconds",
          pool: { maxConnections: 64 }
        })
      )
    ))
)

const onCluster = Layer.unwrap(Effect.map(RedisServer.cluster(), ({ nodes }) =>
  RedisStreamStore.layer.pipe(
    Layer.provideMerge(
      IoRedis.layerCluster({
        nodes: nodes.slice(0, 1).map(at),
        commandTimeout: "5 seconds",
        pool: { maxConnections: 64 }
      })
    )
  )))

StreamStoreSuite.suite("a real Redis, by ioredis", RedisStreamStore.layer.pipe(Layer.provideMerge(alone)), {
  live: true,
  append
})
StreamStoreSuite.suite(
  "a real Redis with events",
  RedisStreamStore.layer.pipe(Layer.provide(withEvents), Layer.provideMerge(alone)),
  { live: true, append, publishesExpiries: true }
)
StreamStoreSuite.suite("through Sentinel", throughSentinel, { live: true, append })
StreamStoreSuite.suite("on a Cluster", onCluster, { live: true, append })
