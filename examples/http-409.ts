/**
 * A web service that returns a 409 while another request, in any process, is making the same report.
 *
 *     node examples/http-409.ts
 *     REDIS_URL=redis://localhost:6379 PORT=3001 node examples/http-409.ts
 *     curl -i -X POST http://localhost:3000/reports/2026-11
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Layer, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { HttpServerLive } from "./shared/httpServer.ts"
import { RedisEnv } from "./shared/redisEnv.ts"

const Reports = HttpRouter.add(
  "POST",
  "/reports/:month",
  Effect.gen(function*() {
    const { month } = yield* HttpRouter.params
    const made = yield* Mutex.withLockIfAvailable(`report:${month}`)((lease) =>
      Effect.as(Effect.sleep("1 second"), { month, token: lease.token })
    )
    return Option.match(made, {
      onNone: () => HttpServerResponse.text("somebody else is making this report", { status: 409 }),
      onSome: (report) => HttpServerResponse.jsonUnsafe(report)
    })
  }).pipe(
    // Redis does not reply, or the lease was lost: the client can retry
    Effect.catchTag(
      ["BackendError", "LeaseLost", "ProtocolError"],
      (error) =>
        Effect.succeed(HttpServerResponse.text(error.message, { status: 503, headers: { "retry-after": "5" } }))
    ),
    Effect.catchTag(
      ["InvalidName", "InvalidConfig"],
      (error) => Effect.succeed(HttpServerResponse.text(error.message, { status: 400 }))
    )
  )
)

const MutexLive = Layer.provide(RedisMutex.layerFromEnv(), RedisEnv)

const Live = HttpRouter.serve(Reports).pipe(Layer.provide([HttpServerLive, MutexLive]))

NodeRuntime.runMain(Layer.launch(Live))
