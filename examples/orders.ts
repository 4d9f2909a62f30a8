/**
 * A fleet adds up orders. Each region has its own data stream of orders.
 *
 *     REDIS_URL=redis://localhost:6379 node examples/orders.ts eu us
 *
 * Needs Node 22.19 or newer and a clone of this repository.
 *
 * Announces a data stream for each region in its arguments, and processes all announced streams until Ctrl-C or
 * SIGTERM. Start several of these processes.
 */
import { StreamClient, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Context, Effect, Layer, Ref, Schema, Stdio } from "effect"

const Order = Schema.Struct({ amount: Schema.FiniteFromString, last: Schema.optionalKey(Schema.Literal("yes")) })

/** The sum of the orders in each data stream. A real service would keep these sums in a database. */
export class Sums extends Context.Service<Sums, Ref.Ref<Readonly<Record<string, number>>>>()("example/Sums") {
  static readonly layer = Layer.effect(Sums, Ref.make<Readonly<Record<string, number>>>({}))
}

export const handler = Effect.gen(function*() {
  const sums = yield* Sums
  const { stream } = yield* StreamLease.StreamLease
  yield* StreamMessages.process(
    Order,
    ({ value }) => Ref.update(sums, (all) => ({ ...all, [stream]: (all[stream] ?? 0) + value.amount })),
    { until: ({ value }) => value.last === "yes" }
  )
  yield* Effect.log(`${stream} is done`)
})

const program = Effect.gen(function*() {
  const stdio = yield* Stdio.Stdio
  const regions = yield* stdio.args
  yield* StreamClient.announceAll(regions.map((region) => ({ stream: `orders:${region}`, info: { region } })))
  return yield* StreamClient.run(handler)
})

const Live = Layer.mergeAll(Sums.layer, RedisStreams.layerFromEnv({ service: "orders" }), NodeServices.layer)

// A signal interrupts the program. All data streams are revoked and yielded before the process exits.
if (import.meta.main) NodeRuntime.runMain(Effect.provide(program, Live))
