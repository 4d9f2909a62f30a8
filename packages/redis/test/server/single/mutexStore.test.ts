import { IoRedis, RedisMutex } from "@effect-simba/redis"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import { Effect, Layer } from "effect"
import { RedisServer } from "../../support/redisServer.ts"

const store = RedisMutex.layerStore.pipe(
  Layer.provide(
    Layer.unwrap(Effect.map(RedisServer, ({ url }) => IoRedis.layer({ url, commandTimeout: "5 seconds" })))
  ),
  Layer.provide(RedisServer.layer)
)

MutexStoreSuite.suite("a real Redis, through ioredis", store, { live: true })
