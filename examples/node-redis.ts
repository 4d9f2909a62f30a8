/**
 * Mutexes over `NodeRedis` of `@effect/platform-node`, which needs no ioredis.
 *
 *     node examples/node-redis.ts
 *     REDIS_URL=redis://localhost:6379 node examples/node-redis.ts
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"
import { redisUrl } from "./shared/redisUrl.ts"

const MutexLive = RedisMutex.layerRedis().pipe(
  Layer.provide(Layer.unwrap(Effect.map(redisUrl, (url) => NodeRedis.layer({ url }))))
)

const program = Mutex.withLock("visits")((lease) => Effect.log(`only one process is here, with token ${lease.token}`))

NodeRuntime.runMain(Effect.provide(program, MutexLive))
