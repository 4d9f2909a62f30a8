/** The stream store on Effect's `Redis` service. Provided by `RedisStreams`. */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { StreamStore } from "@effect-simba/core/streams/StreamStore"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { withBuildTimeout } from "../../internal/client/buildTimeout.ts"
import { hashTag } from "../../internal/client/clusterSlot.ts"
import { Redis } from "../../internal/client/effectRedis.ts"
import { fromRedis } from "../../internal/client/errors.ts"
import { currentSubscriber } from "../../internal/client/fallbackSubscriber.ts"
import { RedisTopology } from "../../RedisTopology.ts"
import * as announcements from "./announcements.ts"
import * as blockingRead from "./blockingRead.ts"
import * as checkpoints from "./checkpoints.ts"
import * as deadLetters from "./deadLetters.ts"
import * as expiryNudge from "./expiryNudge.ts"
import * as extents from "./extents.ts"
import * as leaseEnds from "./leaseEnds.ts"
import * as leases from "./leases.ts"
import * as members from "./members.ts"
import * as serviceContext from "./service.ts"
import * as signals from "./signals.ts"

const make = Effect.gen(function*() {
  const redis = yield* Redis
  const subscriber = yield* currentSubscriber(redis)
  const topology = yield* RedisTopology
  const isCluster = topology._tag === "Cluster"
  const maxReaders = Math.max(1, Math.floor((topology.maxReserved ?? 8) / 2))
  yield* withBuildTimeout(Effect.mapError(redis.send("PING"), fromRedis("connect")))

  return StreamStore.of({
    open: Effect.fnUntraced(function*(service, options) {
      if (isCluster && hashTag(service) === undefined) {
        return yield* new InvalidConfig({
          option: "service",
          problem: `on a Cluster it needs a hash tag that its data streams share, such as "{${service}}"`
        })
      }
      const context = serviceContext.make(
        redis,
        subscriber,
        service,
        isCluster,
        options?.checkpointRetention ?? Duration.days(7)
      )
      // On a Cluster, consumers do not subscribe to these events
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
        ...extents.make(context),
        awaitMessages: yield* blockingRead.make(context, messages.messages, maxReaders),
        ...deadLetters.make(context),
        ...members.make(context),
        ...signals.make(context)
      }
    })
  })
})

export const layer: Layer.Layer<StreamStore, BackendError, Redis> = Layer.effect(StreamStore, make)
