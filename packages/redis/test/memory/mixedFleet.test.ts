/**
 * effect-simba waiters share a queue with Simba contenders. A Simba contender's release removes the first waiter from
 * the queue and notifies only that waiter.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis, TestMutex } from "@effect-simba/testkit"
import * as SimbaContender from "@effect-simba/testkit/SimbaContender"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { FakeLive, openFake, start } from "../support/fakeProcess.ts"

const confirm = 1500

/**
 * A Simba contender that leads `leaderships` times, for 20 milliseconds each, and immediately contends again. `leave`
 * waits for one more leadership, then ends the contender.
 */
const briefSimba = (leaderships: number) =>
  Effect.gen(function*() {
    let led = 0
    const simba = SimbaContender.contend({
      mutex: "m",
      id: "7:4711@stock",
      lead: Effect.suspend(() => led++ < leaderships ? Effect.sleep("20 millis") : Effect.never)
    })
    const client = yield* Layer.build(FakeRedis.layerClient({ name: "stock" }))
    const contending = yield* start(Effect.provideContext(simba, client))
    const leave = Effect.gen(function*() {
      while (led <= leaderships) yield* Effect.sleep("1 millis")
      yield* Fiber.interrupt(contending)
    })
    return { leave }
  })

/** A Simba contender that leads once, for `leads` milliseconds. */
const simbaLeader = Effect.fnUntraced(function*(options: {
  readonly ttl: number
  readonly transition: number
  readonly leads: number
}) {
  const client = yield* Layer.build(FakeRedis.layerClient({ name: "stock" }))
  const { leads, transition, ttl } = options
  const simba = SimbaContender.contend({
    mutex: "m",
    id: "7:4711@stock",
    ttl,
    transition,
    rest: "1 hour",
    lead: Effect.sleep(leads)
  })
  return yield* start(Effect.provideContext(simba, client))
})

describe("alongside Simba contenders", () => {
  it.effect.each(["1 second", "2 seconds", "5 seconds"] as const)(
    "an observer polling every %s reports renewals, but does not report a renewed and released lease as expired",
    (pollInterval) =>
      Effect.forEach(
        [0, 130, 480, 760],
        (phase) =>
          Effect.forEach([2950, 5300, 8970], (leads) =>
            Effect.gen(function*() {
              const observed: Array<string> = []
              const us = yield* openFake("us")
              const simba = yield* simbaLeader({ ttl: 2000, transition: 1000, leads })
              yield* TestClock.adjust(phase)
              yield* start(Stream.runForEach(
                Stream.provideService(Mutex.events("m", { pollInterval, renewals: true }), Mutex.Mutex, us),
                ({ _tag }) => Effect.sync(() => observed.push(_tag))
              ))
              yield* TestClock.adjust("20 seconds")
              assert.deepStrictEqual([...new Set(observed)], ["Acquired", "Renewed", "Released"], `${phase} ${leads}`)
              yield* Fiber.interrupt(simba)
            }).pipe(Effect.scoped, Effect.provide(FakeLive)))
      ),
    { tags: ["S16"] }
  )

  it.effect("a Simba contender without a transition alternates with an effect-simba contender with the same lease duration", () =>
    Effect.gen(function*() {
      const process = TestMutex.layerClient(RedisMutex.layerStore, {
        name: "us",
        ttl: "8 seconds",
        transition: "2 seconds"
      })
      const us = Context.get(yield* Layer.build(process), Mutex.Mutex)
      const simba = yield* simbaLeader({ ttl: 10_000, transition: 0, leads: 9000 })
      const held = yield* Scope.make()
      const waiting = yield* start(Scope.provide(us.acquire("m"), held))
      yield* TestClock.adjust("9 seconds")
      const lease = yield* Fiber.join(waiting)
      yield* Fiber.interrupt(simba)
      yield* simbaLeader({ ttl: 10_000, transition: 0, leads: 5000 })
      yield* TestClock.adjust("1 minute")
      assert.isTrue(yield* lease.isHeld)
      yield* Scope.close(held, Exit.void)
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* us.owner("m"), { _tag: "Held", owner: "7:4711@stock" })
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect.each([2, 3, 12])(
    "%s waiters that queued before a Simba contender arrived get the mutex soon after the contender leaves",
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
        const { leave } = yield* briefSimba(count)
        yield* TestClock.adjust("100 millis")
        assert.strictEqual((yield* server.dump("simba:{m}:contender"))?.type, "zset")
        const leaving = yield* start(leave)
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
