/** Time limits when acquiring several mutexes, and nested acquires with options. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

describe("acquireAll", () => {
  it.effect.each([["timeout"], ["maxHold"]] as const)(
    "reports the caller's %s in its error, not the remaining time for the last mutex",
    ([option]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        yield* Effect.provide(Mutex.acquire("b"), yield* another("them"))
        faults.acquire = { late: "500 millis" }
        const all = yield* start(
          Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"], { [option]: "3 seconds" })))
        )
        yield* TestClock.adjust("500 millis")
        faults.acquire = "work"
        yield* TestClock.adjust("2500 millis")
        assert.deepInclude(yield* Fiber.join(all), {
          _tag: "AcquireTimeout",
          mutex: "b",
          timeout: Duration.seconds(3)
        })
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect.each([[499, 2], [500, 1], [2000, 1]])(
    "sends requests only while it has time left, even if no timer has fired (stalled for %i ms: %i in total)",
    ([millis, requests]) =>
      Effect.gen(function*() {
        const { clock, stall } = yield* stalling
        yield* Effect.gen(function*() {
          const faults = yield* Faults
          faults.acquire = { late: "500 millis" }
          const all = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"], { timeout: "1 second" }))))
          stall.millis = millis!
          yield* TestClock.adjust("500 millis")
          assert.lengthOf(faults.calls.filter((call) => call.startsWith("acquire")), requests!)
          yield* TestClock.adjust("1 second")
          assert.include(["AcquireTimeout", "BackendError"], (yield* Fiber.join(all))._tag)
        }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
      }).pipe(Effect.scoped)
  )
})

it.effect("acquireAll fails if a lease ends during the last request, even if its timer has not fired", () =>
  Effect.gen(function*() {
    const { clock, stall } = yield* stalling
    yield* Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const stalled = Layer.succeed(MutexStore.MutexStore, {
        ...store,
        acquire: (request, done) =>
          store.acquire(request, (exit) => {
            if (request.mutex === "b") stall.millis = 15_500
            done(exit)
          })
      })
      const loss = yield* Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"]))).pipe(
        Effect.provide(Layer.fresh(Layer.provide(Mutex.layer(), stalled)))
      )
      assert.deepInclude(loss, { _tag: "LeaseLost", resource: "a" })
    }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
  }))

it.effect("a nested acquire checks its options, then fails with AlreadyHeld", () =>
  Effect.gen(function*() {
    const nested = (options: Mutex.AcquireOptions) =>
      Effect.flip(Mutex.withLock("m", options)(Effect.void).pipe(Mutex.withLock("m")))
    assert.strictEqual((yield* nested({ ttl: "20 seconds", timeout: "1 second" }))._tag, "AlreadyHeld")
    assert.strictEqual((yield* nested({ ttl: -1 }))._tag, "InvalidConfig")
  }).pipe(Effect.provide(TestLive)))
