/** A process's waiters share a place in a mutex's queue. Random scripts test exclusion and fairness. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { RedisMutex } from "@effect-simba/redis"
import { ContentionScript, FakeNetwork, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { FakeLive, openFake, start } from "../support/fakeProcess.ts"

/** A process with this `localTurn`, in milliseconds. */
const processWith = (localTurn: number) => (name: string) =>
  Layer.effect(
    Mutex.Mutex,
    Effect.map(Layer.build(TestMutex.layerClient(RedisMutex.layerStore, { name })), (context) => {
      const mutex = Context.get(context, Mutex.Mutex)
      return Mutex.Mutex.of({
        ...mutex,
        withLock: (name, options) => mutex.withLock(name, { ...options, localTurn }),
        withLockIfAvailable: (name, options) => mutex.withLockIfAvailable(name, { ...options, localTurn })
      })
    })
  )

const crowded = {
  workers: 2,
  mutexes: 1,
  length: [1, 30],
  within: "4 seconds",
  hold: ["1 millis", "600 millis"]
} as const

it.effect.prop(
  "two processes with many waiters have one holder at a time, growing tokens, and first-come-first-served order per process",
  [ContentionScript.arbitrary(crowded)],
  ([script]) =>
    Effect.gen(function*() {
      const history = yield* ContentionScript.run(script, { layer: processWith(0) })
      assert.deepStrictEqual(ContentionScript.problems(history), [])
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual((yield* server.keys).filter(({ key }) => !key.endsWith(":fence")), [])
    }).pipe(Effect.provide(FakeRedis.layer()))
)

it.effect.prop(
  "when waiters share turns, each process waits for a bounded number of the other's turns",
  [ContentionScript.arbitrary({ ...crowded, kinds: ["acquire", "timeout", "acquireIfAvailable"] })],
  ([script]) =>
    Effect.gen(function*() {
      const localTurn = 1000
      const history = yield* ContentionScript.run(script, { layer: processWith(localTurn) })
      assert.deepStrictEqual(ContentionScript.problems(history, ["neverTwo", "tokensGrow", "everybodyServed"]), [])
      assert.deepStrictEqual(history.failed, [])
      const { abandoned, holdings } = history
      holdings.forEach((holding, index) => {
        for (const earlier of holdings.slice(0, index)) {
          if (earlier.worker === holding.worker) assert.isAtMost(earlier.asked, holding.asked)
        }
        // The other process may finish its current turn and take one more, plus one for each earlier turn of this
        // process and for each of this process's waiters that gave up its place.
        const others = holdings.slice(0, index).filter(({ from, worker }) =>
          worker !== holding.worker && from > holding.asked
        )
        const own = holdings.slice(0, index).filter(({ from, worker }) =>
          worker === holding.worker && from >= holding.asked
        )
        const mayTakePlace = abandoned.filter(({ at, worker }) => worker === holding.worker && at <= holding.from)
        const turns = 2 + own.length + mayTakePlace.length
        const taken = others.reduce((sum, { from, to }) => sum + (to - from), 0)
        assert.isAtMost(taken, turns * (localTurn + 600))
      })
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual((yield* server.keys).filter(({ key }) => !key.endsWith(":fence")), [])
    }).pipe(Effect.provide(FakeRedis.layer()))
)

it.effect.prop(
  "one process with many waiters on the in-memory store has one holder at a time and growing tokens",
  [ContentionScript.arbitrary(crowded)],
  ([script]) =>
    Effect.gen(function*() {
      for (const localTurn of [0, 1000]) {
        const history = yield* ContentionScript.run(script, {
          layer: () => Layer.fresh(Mutex.layer({ localTurn }))
        }).pipe(Effect.provide(Layer.fresh(MutexStore.layerMemory)))
        assert.deepStrictEqual(ContentionScript.problems(history, ["neverTwo", "tokensGrow"]), [])
        if (localTurn === 0) assert.deepStrictEqual(ContentionScript.problems(history), [])
        assert.deepStrictEqual([history.unserved, history.failed], [[], []])
      }
    })
)

describe("places in the queue", () => {
  it.effect("a place never moves back when others arrive, give up or die", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const [holder, hasty] = yield* Effect.all([openFake("holder"), openFake("hasty")])
      const scope = yield* Scope.make()
      yield* Scope.provide(holder.acquire("m"), scope)
      const crash = yield* Scope.make()
      for (let i = 0; i < 10; i++) {
        const dead = yield* Scope.provide(openFake("dead"), crash)
        yield* Effect.forkIn(Scope.provide(dead.acquire("m"), crash), crash, { startImmediately: true })
      }
      const order: Array<string> = []
      const waiting = yield* start(hasty.withLock("m")(Effect.sync(() => order.push("patient"))))
      yield* Effect.repeat(TestClock.adjust(0), { times: 4 })
      // Cut the connections first, so that the processes die without leaving the queue
      yield* server.dropConnections("dead")
      yield* (yield* FakeNetwork.link("dead")).partition()
      yield* start(Scope.close(crash, Exit.void))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* server.dump("simba:{m}:contender"))?.value.length, 11)
      for (let i = 0; i < 60; i++) {
        const error = yield* start(Effect.flip(Effect.scoped(hasty.acquire("m", { timeout: "30 seconds" }))))
        yield* TestClock.adjust("31 seconds")
        assert.strictEqual((yield* Fiber.join(error))._tag, "AcquireTimeout")
      }
      const late = yield* start(hasty.withLock("m")(Effect.sync(() => order.push("late"))))
      yield* TestClock.adjust("1 second")
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(waiting)
      yield* Fiber.join(late)
      assert.deepStrictEqual(order, ["patient", "late"])
      assert.deepStrictEqual((yield* server.keys).map(({ key }) => key), ["simba:{m}:fence"])
    }).pipe(Effect.provide(FakeLive)), { tags: ["B4"] })

  it.effect(
    "after its queue was evicted, a waiter queues at its old place again",
    () =>
      Effect.gen(function*() {
        const server = yield* FakeRedis.FakeRedis
        const [holder, first, second] = yield* Effect.all([openFake("holder"), openFake("first"), openFake("second")])
        const scope = yield* Scope.make()
        yield* Scope.provide(holder.acquire("m"), scope)
        const order: Array<string> = []
        const waiting = yield* start(first.withLock("m")(Effect.sync(() => order.push("first"))))
        yield* TestClock.adjust("2 seconds")
        assert.isTrue(yield* server.evict("simba:{m}:contender"))
        const later = yield* start(second.withLock("m")(Effect.sync(() => order.push("second"))))
        // A waiter polls by the time the lease it knows about should have ended
        yield* TestClock.adjust("17 seconds")
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.joinAll([waiting, later])
        assert.deepStrictEqual(order, ["first", "second"])
      }).pipe(Effect.provide(FakeLive)),
    { tags: ["B10"] }
  )
})
