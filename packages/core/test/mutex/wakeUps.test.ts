import { Mutex, SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Fiber, Layer, Logger, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { IndexedHeap } from "../../src/internal/lease/indexedHeap.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { Faults } from "../support/faultyStore.ts"
import { calls } from "../support/hands.ts"
import { another, start, TestLive } from "../support/setup.ts"
import { uncaught } from "../support/uncaught.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 3 })

const hold = (name: string, options?: Mutex.AcquireOptions) =>
  Effect.flatMap(
    Scope.make(),
    (scope) => Effect.as(Scope.provide(Mutex.acquire(name, options), scope), Scope.close(scope, Exit.void))
  )

/** The test's clock, which can run ahead of all timers. */
const stalling = Effect.map(Clock.Clock, (base) => {
  const state = { millis: 0 }
  const clock: Clock.Clock = {
    ...base,
    currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + state.millis,
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe() + BigInt(state.millis) * 1_000_000n,
    sleep: (duration) => base.sleep(duration)
  }
  return { state, clock }
})

describe("waking waiters", () => {
  it.effect("an observer that throws when a waiter is served does not delay other waiters", () =>
    Effect.gen(function*() {
      const letGo = yield* hold("m", { localTurn: "1 second" })
      const other = yield* Effect.provide(hold("other"), yield* another("them"))
      const context = yield* Effect.context<Mutex.Mutex>()
      const thrown = yield* uncaught
      Effect.runCallbackWith(context)(Mutex.withLock("m", { localTurn: "1 second" })(Effect.void), {
        onExit: () => {
          throw new Error("observer")
        }
      })
      const waiters = [
        yield* start(Mutex.withLock("m")(Effect.void)),
        yield* start(Mutex.withLock("other")(Effect.void))
      ]
      yield* settle
      assert.deepStrictEqual(yield* Effect.exit(letGo), Exit.void)
      yield* other
      yield* settle
      for (const waiter of waiters) assert.deepStrictEqual(waiter.pollUnsafe(), Exit.void)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(thrown.map(String), ["Error: observer"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("the event loop runs between slow fibers", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* stalling
      yield* Effect.gen(function*() {
        const letGo = yield* hold("m", { localTurn: "1 second" })
        const ran: Array<number> = []
        for (let i = 0; i < 4; i++) {
          yield* start(
            Mutex.withLock("m", { localTurn: "1 second" })(Effect.sync(() => {
              state.millis += 4
              ran.push(i)
            }))
          )
        }
        yield* letGo
        assert.deepStrictEqual(ran, [0, 1])
        yield* settle
        assert.deepStrictEqual(ran, [0, 1, 2, 3])
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("if a failing waiter interrupts the next waiter, the one after that is served", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      const letGo = yield* Effect.provide(hold("m"), yield* another("them"))
      const short = { ttl: "3 seconds", transition: "3 seconds" } as const
      const behind: Array<Fiber.Fiber<unknown, unknown>> = []
      const first = yield* start(
        Mutex.withLock("m", short)(Effect.void).pipe(
          Effect.onError(() => Effect.sync(() => behind[0]!.interruptUnsafe()))
        )
      )
      behind.push(yield* start(Mutex.withLock("m", short)(Effect.void)))
      const third = yield* start(Mutex.withLock("m", { ttl: "1 minute" })(Effect.void))
      yield* settle
      faults.acquire = "fail"
      yield* TestClock.adjust("40 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.await(first)))
      faults.acquire = "work"
      yield* letGo
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(third.pollUnsafe(), Exit.void)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("when the layer closes, its waiters fail", () =>
    Effect.gen(function*() {
      const letGo = yield* Effect.provide(hold("m"), yield* another("them"))
      const scope = yield* Scope.make()
      const layer = yield* Scope.provide(another("closing"), scope)
      const waiter = yield* start(
        Effect.provide(Effect.exit(Mutex.withLock("m")(Effect.void)), layer)
      )
      yield* settle
      yield* Scope.close(scope, Exit.void)
      yield* settle
      const exit = yield* Fiber.join(waiter)
      const error = Exit.findErrorOption(exit)
      assert.isTrue(Option.isSome(error) && error.value instanceof SimbaError.BackendError)
      // Later callers fail instead of polling forever
      const late = yield* Effect.flip(Effect.scoped(Context.get(layer, Mutex.Mutex).acquire("m")))
      assert.strictEqual(late._tag, "BackendError")
      yield* letGo
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a release wakes up one waiter, while the others keep sleeping", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), holder)
      const waiters = yield* Effect.forEach(Array.from({ length: 20 }), (_, n) =>
        Effect.flatMap(another(`${n}`), (place) => Effect.provide(start(Mutex.acquire("m")), place)))
      faults.calls.length = 0
      yield* Scope.close(holder, Exit.void)
      yield* settle
      assert.deepStrictEqual(faults.calls, ["release", "acquire wait"])
      assert.deepStrictEqual(
        waiters.map((waiter) =>
          waiter.pollUnsafe() !== undefined
        ),
        [
          true,
          ...waiters.slice(1).map(() => false)
        ]
      )
      // Only the next waiter polls, in case the first one does not confirm
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(faults.calls, ["release", "acquire wait", "acquire wait"])
    }).pipe(Effect.provide(TestLive)), { tags: ["B11"] })

  it.effect(
    "when a waiter polls depends on the owner's lease, not on the waiter's",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.guard = "fail"
        faults.release = "fail"
        yield* Mutex.acquire("long", { ttl: "60 seconds", transition: "6 seconds" })
        yield* Mutex.acquire("short", { ttl: "2 seconds", transition: "3 seconds" })
        const behindLong = yield* start(Mutex.acquire("long", { ttl: "2 seconds", transition: "3 seconds" }))
        const behindShort = yield* start(Mutex.acquire("short", { ttl: "60 seconds", transition: "6 seconds" }))
        yield* TestClock.adjust("5 seconds")
        assert.isUndefined(behindShort.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(behindShort)
        yield* TestClock.adjust("60999 millis")
        assert.isUndefined(behindLong.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(behindLong)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B27"] }
  )
})

describe("renewing", () => {
  it.effect("a lease is lost if it is released by force during its renewal", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      const lease = yield* Mutex.acquire("m")
      faults.guard = { late: "500 millis" }
      yield* TestClock.adjust("10100 millis")
      yield* Effect.flatMap(Mutex.Mutex, (mutex) => mutex.forceRelease("m"))
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "ForcedRelease")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect.each([["never returns", Effect.never], ["says no", Effect.succeed(false)]] as const)(
    "a lease that was released by force is lost immediately, even if its probe %s",
    ([, isAlive]) =>
      Effect.gen(function*() {
        for (let before = 9_900; before < 15_100; before += 130) {
          const lease = yield* Mutex.acquire("m", { isAlive })
          yield* TestClock.adjust(before)
          assert.isTrue(yield* lease.isHeld)
          yield* Mutex.forceRelease("m")
          yield* TestClock.adjust(1)
          assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "ForcedRelease", `after ${before} ms`)
        }
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("a probe is retried if logging its failure crashes", () =>
    Effect.gen(function*() {
      let asked = 0
      let deaths = 0
      const logger = Logger.make(() => {
        if (deaths++ === 0) throw new Error("the logger is broken")
      })
      const live = Mutex.layer().pipe(
        Layer.provideMerge(FaultyStore.layer),
        Layer.provideMerge(Logger.layer([logger]))
      )
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m", { isAlive: Effect.sync(() => ++asked > 1) })
        yield* TestClock.adjust("1 minute")
        assert.isAbove(deaths, 0)
        assert.isTrue(yield* lease.isHeld)
        assert.isAbove(asked, 2)
      }).pipe(Effect.scoped, Effect.provide(live))
    }))

  it.effect("a released lease is not kept until its renewal is due", () =>
    Effect.gen(function*() {
      const inside = new Set<unknown>()
      const { place, remove } = IndexedHeap.prototype
      IndexedHeap.prototype.place = function(item, key) {
        inside.add(item)
        return place.call(this, item, key)
      }
      IndexedHeap.prototype.remove = function(item) {
        inside.delete(item)
        return remove.call(this, item)
      }
      yield* Effect.addFinalizer(() => Effect.sync(() => Object.assign(IndexedHeap.prototype, { place, remove })))
      for (let i = 0; i < 3; i++) yield* Effect.scoped(Mutex.acquire(`m${i}`))
      assert.strictEqual(inside.size, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a lease that ended during a stall is not renewed", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* stalling
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        state.millis = 15_500
        yield* Effect.flatMap(Mutex.Mutex, (mutex) => mutex.forceRelease("m"))
        yield* settle
        assert.strictEqual(yield* calls("guard"), 0)
        assert.isFalse(yield* lease.isHeld)
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("the interval to the next renewal starts when the last renewal was sent, not when its reply arrived", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      yield* Mutex.acquire("m")
      faults.guard = { late: "900 millis" }
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* calls("guard"), 2)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})
