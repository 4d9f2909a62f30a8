/** Opens effect-simba consumers and Go consumers for the scenarios in `streamInteropScenarios.ts`. */
import { StreamClient } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import type { FakeRedis } from "@effect-simba/testkit"
import * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import type * as scenarios from "./streamInteropScenarios.ts"
import { service } from "./streamInteropScenarios.ts"

type Connection = Layer.Layer<
  Layer.Success<ReturnType<typeof FakeRedis.layerClient>>,
  unknown
>

/** Each consumer has its own connection and scope. `defaults` are options for effect-simba consumers. */
export const consumers = (
  connection: (name: string) => Connection,
  cut: (name: string) => Effect.Effect<void>,
  defaults: Omit<StreamClient.Options, "service" | "processName"> = {}
): Pick<scenarios.Stage, "own" | "go"> => ({
  own: Effect.fnUntraced(function*(id, options) {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const layer = RedisStreams.layerRedis({ gracePeriod: 0, ...defaults, ...options, service, processName: id }).pipe(
      Layer.provide(connection(id))
    )
    const client = Context.get(yield* Layer.buildWithScope(layer, scope), StreamClient.StreamClient)
    return {
      client,
      run: (work) =>
        Effect.asVoid(Effect.forkIn(client.run((lease) => work(lease.stream)), scope, { startImmediately: true })),
      close: Scope.close(scope, Exit.void),
      kill: cut(id)
    }
  }),
  go: Effect.fnUntraced(function*(id, work = () => Effect.never) {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit))
    const client = yield* Layer.buildWithScope(connection(id), scope)
    const joined = yield* GoConsumer.join({ service, id, work }).pipe(
      Effect.provideContext(client),
      Scope.provide(scope)
    )
    return { ...joined, kill: Scope.close(scope, Exit.void) }
  })
})
