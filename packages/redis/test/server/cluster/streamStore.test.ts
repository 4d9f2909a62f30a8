/** Runs the stream-store contract on a Cluster. */
import { IoRedis } from "@effect-simba/redis"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"
import { append, trim } from "../../support/streams.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const onCluster = Layer.unwrap(Effect.map(RedisServer.cluster(), ({ nodes }) =>
  RedisStreams.layerStore.pipe(
    Layer.provideMerge(
      IoRedis.layerCluster({
        nodes: nodes.slice(0, 1).map(at),
        commandTimeout: "5 seconds",
        pool: { maxConnections: 64 }
      })
    )
  )))

StreamStoreSuite.suite("on a Cluster", onCluster, { live: true, append, trim })
