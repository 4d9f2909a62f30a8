/** Runs the mutex-store contract on a primary behind Sentinels. */
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

const at = ({ port }: { readonly port: number }) => ({ host: "127.0.0.1", port })

const throughSentinel = Layer.unwrap(
  Effect.map(RedisServer.sentinel({ downAfter: 30_000 }), ({ name, sentinels }) =>
    RedisMutex.layerStore.pipe(
      Layer.provide(IoRedis.layer({ client: { name, sentinels: sentinels.map(at) }, commandTimeout: "5 seconds" }))
    ))
)

MutexStoreSuite.suite("through Sentinel", throughSentinel, { live: true })
