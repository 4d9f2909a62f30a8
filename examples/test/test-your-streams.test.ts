/**
 * How to test handlers for data streams: on an in-memory Redis that runs the production scripts, first in one process,
 * then in several. The test controls the clock and never waits for real time.
 */
import { StreamClient } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeNetwork, FakeRedis } from "@effect-simba/testkit"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Ref, Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { handler, Sums } from "../orders.ts"

const order = (region: string, ...fields: ReadonlyArray<string>) =>
  Redis.use((redis) => redis.send("XADD", `orders:${region}`, "*", ...fields))

const sums = Effect.flatMap(Sums, Ref.get)

describe("the handler for orders", () => {
  const Live = Layer.merge(Sums.layer, TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders" }))

  it.effect("adds up the orders until the last one", () =>
    Effect.gen(function*() {
      yield* StreamClient.announceAll([{ stream: "orders:eu", info: {} }, { stream: "orders:us", info: {} }])
      yield* Effect.forkChild(StreamClient.run(handler))
      yield* order("eu", "amount", "40")
      yield* order("us", "amount", "1")
      yield* TestClock.adjust("5 seconds")
      yield* order("eu", "amount", "2", "last", "yes")
      yield* TestClock.adjust("5 seconds")

      assert.deepStrictEqual(yield* sums, { "orders:eu": 42, "orders:us": 1 })
      // A finished data stream is no longer announced
      assert.strictEqual((yield* StreamClient.inspect).announced, 1)
      assert.deepStrictEqual((yield* StreamClient.owned).map(({ stream }) => stream), ["orders:us"])
    }).pipe(Effect.provide(Live)))

  it.effect("dead-letters an invalid message, and continues", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu", {})
      yield* Effect.forkChild(StreamClient.run(handler))
      yield* order("eu", "amount", "a lot")
      yield* order("eu", "amount", "42")
      yield* TestClock.adjust("5 seconds")

      assert.deepStrictEqual(yield* sums, { "orders:eu": 42 })
      const redis = yield* Redis
      assert.strictEqual(yield* redis.send("XLEN", "simba:dead:orders:eu"), 1)
    }).pipe(Effect.provide(Live)))
})

describe("the handler for orders, in several processes on one Redis", () => {
  const start = Effect.fnUntraced(function*(name: string) {
    const context = yield* Layer.build(
      Layer.merge(Sums.layer, TestStreams.layerClient(RedisStreams.layerStore, { service: "orders", name }))
    )
    yield* Effect.forkIn(Effect.provideContext(StreamClient.run(handler), context), yield* Effect.scope)
    yield* TestClock.adjust("1 second")
    return {
      here: Effect.provideContext(context),
      sums: Ref.get(Context.get(context, Sums))
    }
  })

  it.effect("continues in another process after the last order that was added up", () =>
    Effect.gen(function*() {
      const a = yield* start("a")
      yield* a.here(StreamClient.announce("orders:eu", {}))
      yield* a.here(order("eu", "amount", "40"))
      yield* TestClock.adjust("1 second")
      const b = yield* start("b")

      const link = yield* FakeNetwork.link("a")
      yield* link.partition()
      yield* b.here(order("eu", "amount", "2"))
      yield* TestClock.adjust("5 seconds")

      assert.deepStrictEqual(yield* a.sums, { "orders:eu": 40 })
      assert.deepStrictEqual(yield* b.sums, { "orders:eu": 2 })
      // Reconnect `a` so that it can shut down without a timeout: the clock stands still once the test has ended
      yield* link.heal()
    }).pipe(Effect.provide(FakeRedis.layer())))

  it.effect("continues in another process immediately when its process shuts down cleanly", () =>
    Effect.gen(function*() {
      const life = yield* Scope.make()
      const a = yield* Scope.provide(start("a"), life)
      yield* a.here(StreamClient.announce("orders:eu", {}))
      yield* TestClock.adjust("1 second")
      const b = yield* start("b")

      const leaving = yield* Effect.forkChild(Scope.close(life, Exit.void))
      yield* TestClock.adjust("100 millis")
      assert.isDefined(leaving.pollUnsafe())
      assert.lengthOf(yield* b.here(StreamClient.owned), 1)
    }).pipe(Effect.provide(FakeRedis.layer())))
})
