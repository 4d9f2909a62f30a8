/** The contracts of both stores, on the fake Redis. */
import { RedisMutexStore } from "@effect-simba/redis"
import { RedisStreamStore } from "@effect-simba/redis/streams"
import { MutexStoreSuite, TestRedis } from "@effect-simba/testkit"
import { StreamStoreSuite } from "@effect-simba/testkit/streams"
import { Layer } from "effect"
import { append } from "./append.ts"

MutexStoreSuite.suite("the fake", RedisMutexStore.layer.pipe(Layer.provide(TestRedis.layer())), { live: false })

StreamStoreSuite.suite("the fake", RedisStreamStore.layer.pipe(Layer.provideMerge(TestRedis.layer())), {
  live: false,
  append
})
