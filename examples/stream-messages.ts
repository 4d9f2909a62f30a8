/**
 * Two ways to process more than one message at a time: concurrently for different customers, but in order for each
 * customer; or in batches.
 *
 *     node examples/stream-messages.ts
 *     REDIS_URL=redis://localhost:6379 node examples/stream-messages.ts
 */
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { NodeRuntime } from "@effect/platform-node"
import { Deferred, Effect, Layer, Schedule, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { RedisEnv } from "./shared/redisEnv.ts"

const service = `messages-${process.pid}`
const orders = `${service}:orders`
const readings = `${service}:readings`

const Order = Schema.Struct({ customer: Schema.String, amount: Schema.FiniteFromString })
const Reading = Schema.Struct({ celsius: Schema.FiniteFromString })

/**
 * Bills up to 3 customers concurrently, and each customer's orders one after another. Tries a failing order 5 times.
 */
const bill = StreamMessages.process(
  Order,
  ({ value }) => Effect.log(`${value.customer} pays ${value.amount}`).pipe(Effect.delay("50 millis")),
  {
    concurrency: 3,
    key: ({ value }) => value.customer,
    attempts: 5,
    backoff: Schedule.exponential("100 millis"),
    until: ({ value }) => value.customer === "nobody"
  }
)

/** Stores up to 100 readings in one statement, no later than 200 ms after the first of them arrives. */
const store = StreamMessages.processBatches(
  Reading,
  (messages) => Effect.log(`${messages.length} readings up to ${messages.at(-1)!.value.celsius} degrees`),
  { batch: 100, batchWithin: "200 millis", until: ({ value }) => value.celsius === 30 }
)

const program = Effect.gen(function*() {
  const { send } = yield* Redis
  for (const amount of [1, 2, 3]) {
    for (const customer of ["ada", "ben", "cleo"]) {
      yield* send("XADD", orders, "*", "customer", customer, "amount", String(amount))
    }
  }
  yield* send("XADD", orders, "*", "customer", "nobody", "amount", "0")
  for (let celsius = 1; celsius <= 30; celsius++) yield* send("XADD", readings, "*", "celsius", String(celsius))
  yield* StreamClient.announceAll([{ stream: orders }, { stream: readings }])

  const done = yield* Deferred.make<void>()
  let left = 2
  const consumer = StreamClient.run(({ stream }) =>
    Effect.andThen(
      stream === orders ? bill : store,
      Effect.suspend(() => --left === 0 ? Deferred.succeed(done, undefined) : Effect.void)
    )
  )
  yield* Effect.raceFirst(consumer, Deferred.await(done))
  yield* Effect.log("all are processed")
})

const Live = Layer.provide(RedisStreams.layerFromEnv({ service, enableEvents: true }), RedisEnv)

NodeRuntime.runMain(Effect.provide(program, Live))
