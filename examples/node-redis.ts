/**
 * Mutexes over `NodeRedis` from `@effect/platform-node`. No ioredis needed.
 *
 *     node examples/node-redis.ts
 *     REDIS_URL=redis://localhost:6379 node examples/node-redis.ts
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Config, Effect, Layer } from "effect"
import { RedisEnv } from "./shared/redisEnv.ts"

const MutexLive = RedisMutex.layerRedis().pipe(
  Layer.provide(NodeRedis.layerConfig({ url: Config.String("REDIS_URL") })),
  Layer.provide(RedisEnv)
)

const program = Mutex.withLock("visits")((lease) =>
  Effect.log(`only one process at a time gets here, with token ${lease.token}`)
)

NodeRuntime.runMain(Effect.provide(program, MutexLive))
