/** The contracts of both stores, on the fake Redis. */
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { MutexStoreSuite, TestRedis } from "@effect-simba/testkit"
import { StreamStoreSuite } from "@effect-simba/testkit/streams"
import { Layer } from "effect"
import { append } from "./append.ts"

MutexStoreSuite.suite("the fake", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })

StreamStoreSuite.suite("the fake", RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer())), {
  live: false,
  append
})
