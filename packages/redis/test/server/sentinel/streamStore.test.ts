/** Runs the stream-store contract on a primary behind Sentinels. */
import { IoRedis } from "@effect-simba/redis"
import * as RedisStreams from "@effect-simba/redis/streams/RedisStreams"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"
import { append, trim } from "../../support/streams.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const throughSentinel = Layer.unwrap(
  Effect.map(RedisServer.sentinel({ downAfter: 30_000 }), ({ name, sentinels }) =>
    RedisStreams.layerStore.pipe(
      Layer.provideMerge(
        IoRedis.layer({
          client: { name, sentinels: sentinels.map(at) },
          commandTimeout: "5 seconds",
          pool: { maxConnections: 64 }
        })
      )
    ))
)

StreamStoreSuite.suite("through Sentinel", throughSentinel, { live: true, append, trim })
