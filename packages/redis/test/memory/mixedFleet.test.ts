/** Our waiters beside stock Simba contenders, whose releases take the first waiter out of the queue and notify it alone. */
import type * as Mutex from "@effect-simba/core/Mutex"
import { FakeRedis, StockSimba } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { FakeLive, openFake, start } from "../support/fakeProcess.ts"

const confirm = 1500

/** Leads so many times for 20 milliseconds, without a pause, and is gone. */
const briefStock = (leaderships: number) =>
  Effect.gen(function*() {
    let led = 0
    const stock = StockSimba.contend({
      mutex: "m",
      id: "7:4711@stock",
      lead: Effect.suspend(() => led++ < leaderships ? Effect.sleep("20 millis") : Effect.never)
    })
    const client = yield* Layer.build(FakeRedis.layerClient({ name: "stock" }))
    const contending = yield* start(Effect.provideContext(stock, client))
    return Effect.gen(function*() {
      while (led <= leaderships) yield* Effect.sleep("1 millis")
      yield* Fiber.interrupt(contending)
    })
  })

describe("beside stock contenders", () => {
  it.effect.each([2, 3, 12])(
    "%s waiters that queued before a stock contender came do not sleep while the mutex is free",
    (count) =>
      Effect.gen(function*() {
        const server = yield* FakeRedis.FakeRedis
        const owner = yield* openFake("owner")
        const held = yield* Scope.make()
        yield* Scope.provide(owner.acquire("m"), held)
        yield* TestClock.adjust("100 millis")
        const served: Array<number> = []
        const wait = (mutex: Mutex.Mutex["Service"]) =>
          mutex.withLock("m")(Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.sync(() => served.push(now))))
        const waiters = yield* Effect.forEach(
          Array.from({ length: count }, (_, index) => index),
          (index) => Effect.flatMap(openFake(`waiter ${index}`), (mutex) => start(wait(mutex)))
        )
        yield* TestClock.adjust("100 millis")
        const stock = yield* briefStock(count)
        yield* TestClock.adjust("100 millis")
        assert.strictEqual((yield* server.dump("simba:{m}:contender"))?.type, "zset")
        const leaving = yield* start(stock)
        yield* Scope.close(held, Exit.void)
        while (leaving.pollUnsafe() === undefined) yield* TestClock.adjust("10 millis")
        const free = yield* Clock.currentTimeMillis
        yield* TestClock.adjust("20 seconds")
        yield* Fiber.joinAll(waiters)
        assert.strictEqual(served.length, count)
        assert.isAtMost(Math.max(...served) - free, confirm, String(served.map((at) => at - free)))
      }).pipe(Effect.scoped, Effect.provide(FakeLive)),
    { tags: ["H3"] }
  )
})
