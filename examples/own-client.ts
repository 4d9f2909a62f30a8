/**
 * Mutexes on the application's own ioredis client. Their commands share the client's connection. The application still
 * owns and closes the client.
 *
 *     node examples/own-client.ts
 *     REDIS_URL=redis://localhost:6379 node examples/own-client.ts
 *     bun examples/own-client.ts
 */
import { Mutex } from "@effect-simba/core"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { Effect, Layer } from "effect"
import { Redis } from "ioredis"
import { redisUrl } from "./shared/redisUrl.ts"

const program = Effect.gen(function*() {
  const url = yield* redisUrl
  // Stands for the client that the application already has
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Redis(url)),
    (client) => Effect.promise(() => client.quit())
  )

  const MutexLive = RedisMutex.layerRedis().pipe(
    Layer.provide(IoRedis.layerClient(client))
  )

  const visits = yield* Mutex.withLock("visits")((lease) =>
    Effect.andThen(
      Effect.log(`counting with token ${lease.token}`),
      Effect.promise(() => client.incr("visits"))
    )
  ).pipe(Effect.provide(MutexLive))

  yield* Effect.log(`visits: ${visits}`)
})

Effect.runPromise(Effect.scoped(program)).catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
