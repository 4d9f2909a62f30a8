/** Runs the contract suites of both stores on the server at REDIS_URL. */
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import * as MutexStoreSuite from "@effect-simba/testkit/MutexStoreSuite"
import * as StreamStoreSuite from "@effect-simba/testkit/streams/StreamStoreSuite"
import { Layer } from "effect"
import { append } from "./append.ts"

const redis = IoRedis.layer({
  url: process.env["REDIS_URL"]!,
  commandTimeout: "5 seconds",
  pool: { maxConnections: 64 }
})

MutexStoreSuite.suite("redis-server", RedisMutex.layerStore.pipe(Layer.provide(redis)), { live: true })

StreamStoreSuite.suite("redis-server", RedisStreams.layerStore.pipe(Layer.provideMerge(redis)), { live: true, append })
