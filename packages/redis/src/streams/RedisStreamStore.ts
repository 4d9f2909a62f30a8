/**
 * The stream store on Redis, over Effect's own `Redis` service.
 *
 * @since 0.1.0
 */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { StreamStore } from "@effect-simba/core/streams/StreamStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { withBuildTimeout } from "../internal/client/buildTimeout.ts"
import { hashTag } from "../internal/client/clusterSlot.ts"
import { Redis } from "../internal/client/effectRedis.ts"
import { fromRedis } from "../internal/client/errors.ts"
import { RedisTopology } from "../RedisTopology.ts"
import * as announcements from "./internal/announcements.ts"
import * as blockingRead from "./internal/blockingRead.ts"
import * as checkpoints from "./internal/checkpoints.ts"
import * as deadLetters from "./internal/deadLetters.ts"
import * as expiryNudge from "./internal/expiryNudge.ts"
import * as leaseEnds from "./internal/leaseEnds.ts"
import * as leases from "./internal/leases.ts"
import * as members from "./internal/members.ts"
import * as serviceContext from "./internal/service.ts"
import * as signals from "./internal/signals.ts"

const make = Effect.gen(function*() {
  const redis = yield* Redis
  const subscriber = yield* Subscriber
  const topology = yield* RedisTopology
  const isCluster = topology._tag === "Cluster"
  const maxReaders = Math.max(1, Math.floor((topology.maxReserved ?? 8) / 2))
  yield* withBuildTimeout(Effect.mapError(redis.send("PING"), fromRedis("connect")))

  return StreamStore.of({
    open: Effect.fnUntraced(function*(service, options) {
      if (isCluster && hashTag(service) === undefined) {
        return yield* new InvalidConfig({
          option: "service",
          problem: `on a Cluster it needs a hash tag, which its data streams share, such as "{${service}}"`
        })
      }
      const context = serviceContext.make(redis, subscriber, service, isCluster)
      // On a Cluster nobody listens for these events
      if (!isCluster) {
        if (options?.enableEvents === true) yield* withBuildTimeout(signals.enable(redis))
        else if (topology.serverChecks !== false) yield* withBuildTimeout(signals.check(redis))
      }
      const messages = checkpoints.make(context)
      return {
        prepare: context.prepare,
        ...announcements.make(context),
        ...leases.make(context),
        ...leaseEnds.make(context, yield* expiryNudge.make(redis)),
        ...messages,
        awaitMessages: yield* blockingRead.make(context, messages.messages, maxReaders),
        ...deadLetters.make(context),
        ...members.make(context),
        ...signals.make(context)
      }
    })
  })
})

/**
 * Provides `StreamStore` for all processes that use the same Redis.
 *
 * **Details**
 *
 * Fails to build with `BackendError` when Redis is out of reach, or does not answer for 30 seconds. Needs Redis 6.2 or
 * newer.
 *
 * **Example** (A client of one service)
 *
 * ```ts
 * import { StreamClient } from "@effect-simba/core/streams"
 * import { IoRedis } from "@effect-simba/redis"
 * import { RedisStreamStore } from "@effect-simba/redis/streams"
 * import { Layer } from "effect"
 *
 * const OrdersLive = StreamClient.layer({ service: "orders" }).pipe(
 *   Layer.provide(RedisStreamStore.layer),
 *   Layer.provide(IoRedis.layer({ url: "redis://localhost:6379" }))
 * )
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<StreamStore, BackendError, Redis | Subscriber> = Layer.effect(StreamStore, make)
