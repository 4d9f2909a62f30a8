/** Runs the contract suites of both stores on the fake Redis. */
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { TestRedis } from "@effect-simba/testkit"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { Layer } from "effect"
import { append } from "./append.ts"

MutexStoreSuite.suite("the fake", RedisMutex.layerStore.pipe(Layer.provide(TestRedis.layer())), { live: false })

StreamStoreSuite.suite("the fake", RedisStreams.layerStore.pipe(Layer.provideMerge(TestRedis.layer())), {
  live: false,
  append
})
