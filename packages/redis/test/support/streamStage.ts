/** The environment for `streamScenarios.ts`. Opens consumers with their own connections, like separate processes. */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { type IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import type { Stage } from "./streamScenarios.ts"

/** `connection` connects a consumer to the server. `server` contains the other operations that scenarios need. */
export const stageOver = (
  connection: ReturnType<typeof IoRedis.layer>,
  server: Omit<Stage, "open">
): Stage => ({
  ...server,
  open: Effect.fnUntraced(function*(options) {
    const outer = yield* Effect.scope
    const connections = yield* Scope.fork(outer)
    const own = yield* Scope.fork(outer)
    const redis = yield* Layer.buildWithScope(
      Layer.fresh(RedisStreams.layerStore.pipe(Layer.provide(connection))),
      connections
    )
    const context = yield* Layer.buildWithScope(StreamClient.layer({ gracePeriod: "200 millis", ...options }), own)
      .pipe(
        Effect.provideContext(redis)
      )
    const closing = Scope.close(own, Exit.void)
    return {
      client: Context.get(context, StreamClient.StreamClient),
      start: (effect) => Effect.forkIn(effect, own, { startImmediately: true }),
      close: closing,
      kill: Effect.andThen(Scope.close(connections, Exit.void), Effect.asVoid(Effect.forkDetach(closing)))
    }
  })
})
