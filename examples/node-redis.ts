/**
 * Mutexes over `NodeRedis` of `@effect/platform-node`, which needs no ioredis. The modules are imported by their path,
 * because the package's index imports ioredis.
 *
 *     node examples/node-redis.ts
 *     REDIS_URL=redis://localhost:6379 node examples/node-redis.ts
 */
import * as Mutex from "@effect-simba/core/Mutex"
import * as RedisMutexStore from "@effect-simba/redis/RedisMutexStore"
import * as RedisSubscriber from "@effect-simba/redis/RedisSubscriber"
import { NodeRuntime } from "@effect/platform-node"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { Effect, Layer } from "effect"
import { redisUrl } from "./shared/redisUrl.ts"

const MutexLive = Mutex.layer().pipe(
  Layer.provide(RedisMutexStore.layer),
  Layer.provide(RedisSubscriber.layer),
  Layer.provide(Layer.unwrap(Effect.map(redisUrl, (url) => NodeRedis.layer({ url }))))
)

const program = Mutex.withLock("visits")((lease) => Effect.log(`only one process is here, with token ${lease.token}`))

NodeRuntime.runMain(Effect.provide(program, MutexLive))
