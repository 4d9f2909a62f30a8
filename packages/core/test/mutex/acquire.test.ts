import type { SimbaError } from "@effect-simba/core"
import { Mutex } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Option, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { another, MemoryLive, start, TestLive } from "../support/setup.ts"

describe("acquire", () => {
  it.effect("acquiring a free mutex needs one request and no subscription", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("m")
      assert.deepStrictEqual(faults.calls, ["acquire try"])
    }).pipe(Effect.provide(TestLive)), { tags: ["H4"] })

  it.effect("if a mutex is held, an acquire tries first, then subscribes, then queues", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const them = yield* another("them")
      yield* Effect.provide(Mutex.acquire("m"), them)
      yield* start(Effect.scoped(Mutex.acquire("m")))
      assert.deepStrictEqual(faults.calls, ["acquire try", "acquire try", "listen", "acquire wait"])
    }).pipe(Effect.provide(TestLive)), { tags: ["H4", "B1"] })

  it.effect(
    "waiters are served in order of arrival, and each confirms its grant with one request",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const order: Array<number> = []
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("m"), scope)
        const waiters = yield* Effect.forEach([0, 1, 2, 3, 4], (n) =>
          Effect.flatMap(another(`${n}`), (place) =>
            Effect.provide(
              start(
                Mutex.withLock("m")(Effect.sync(() =>
                  order.push(n)
                ))
              ),
              place
            )))
        faults.calls.length = 0
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.joinAll(waiters)
        assert.deepStrictEqual(order, [0, 1, 2, 3, 4])
        assert.strictEqual(
          faults.calls.filter((call) => call === "acquire wait").length,
          5
        )
        assert.strictEqual(faults.calls.filter((call) => call === "release").length, 6)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect(
    "when an owner dies, the first waiter gets the mutex as soon as the key has expired",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.guard = "fail"
        faults.release = "fail"
        yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
        const waiter = yield* start(Mutex.acquire("m"))
        yield* TestClock.adjust("16 seconds")
        assert.isUndefined(waiter.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H6"] }
  )

  it.effect(
    "on timeout, an acquire leaves the queue and fails with an error that names the owner",
    () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const fiber = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("m", { timeout: "3 seconds" }))))
        yield* TestClock.adjust("2999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        const error = yield* Fiber.join(fiber)
        assert.strictEqual(error._tag, "AcquireTimeout")
        assert.include(error.message, lease.id)
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H7"] }
  )

  it.effect("an interrupted wait returns immediately, even if undoing the request hangs", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const waiter = yield* start(Effect.scoped(Mutex.acquire("m")))
      faults.release = "hang"
      yield* Fiber.interrupt(waiter)
      assert.include(faults.calls, "release")
      yield* TestClock.adjust("2 seconds")
      faults.release = "work"
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("an attempt is undone if it is interrupted while its reply is in flight", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "500 millis" }
      const fiber = yield* start(Effect.scoped(Mutex.acquire("m")))
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
      yield* Fiber.interrupt(fiber)
      yield* Effect.yieldNow
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)), { tags: ["H7", "B41"] })

  it.effect("the mutex is released if an acquire times out while the grant is in flight", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "500 millis" }
      const fiber = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("m", { timeout: "200 millis" }))))
      yield* TestClock.adjust("200 millis")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "BackendError")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect(
    "closing the layer waits for interrupted attempts to be undone, for at most releaseTimeout",
    () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const context = yield* Layer.buildWithScope(TestLive, scope)
        yield* Effect.gen(function*() {
          const faults = yield* Faults
          yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
          const waiter = yield* start(Effect.scoped(Mutex.acquire("m")))
          faults.release = { late: "1 second" }
          yield* Fiber.interrupt(waiter)
        }).pipe(Effect.scoped, Effect.provide(context), start)
        yield* Effect.yieldNow
        const closing = yield* start(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("999 millis")
        assert.isUndefined(closing.pollUnsafe())
        yield* TestClock.adjust("1001 millis")
        yield* Fiber.join(closing)
      }),
    { tags: ["H7"] }
  )

  it.effect("an acquire survives an outage that lasts no longer than a lease", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = "fail"
      const patient = yield* start(Effect.scoped(Mutex.acquire("m")))
      yield* TestClock.adjust("10 seconds")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(patient)
      faults.acquire = "fail"
      const hopeless = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("m"))))
      yield* TestClock.adjust("18 seconds")
      const error = yield* Fiber.join(hopeless)
      assert.deepInclude(error, { _tag: "BackendError", isRetryable: true })
    }).pipe(Effect.provide(TestLive)))

  it.effect("a granted waiter resends a failed confirmation, and is recognized as the owner", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Effect.provide(Scope.provide(Mutex.acquire("m"), scope), yield* another("them"))
      const waiter = yield* start(Mutex.acquire("m"))
      faults.acquire = "fail"
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("500 millis")
      assert.isUndefined(waiter.pollUnsafe())
      faults.acquire = "work"
      yield* TestClock.adjust("700 millis")
      assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("acquireIfAvailable returns None if another contender holds the mutex, and never queues", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      assert.isTrue(Option.isNone(yield* Mutex.acquireIfAvailable("m")))
      assert.isTrue(Option.isSome(yield* Mutex.acquireIfAvailable("n")))
      assert.notInclude(faults.calls, "listen")
    }).pipe(Effect.provide(TestLive)))

  it.effect("many fibers in several layers on one store exclude each other", () =>
    Effect.gen(function*() {
      let inside = 0
      let most = 0
      const turns: Array<string> = []
      const work = (name: string) =>
        Effect.gen(function*() {
          most = Math.max(most, ++inside)
          yield* Effect.sleep("10 millis")
          turns.push(name)
          inside--
        }).pipe(Mutex.withLock("m"), Effect.repeat({ times: 9 }))
      const layers = ["a", "b", "c"].map((processName) =>
        [processName, Layer.fresh(Mutex.layer({ processName }))] as const
      )
      const fibers = yield* Effect.forEach(layers, ([name, layer]) => start(Effect.provide(work(name), layer)))
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(most, 1)
      assert.strictEqual(turns.length, 30)
    }).pipe(Effect.provide(FaultyStore.layer)))

  it.effect("invalid names and options are refused", () =>
    Effect.gen(function*() {
      const refused = (effect: Effect.Effect<unknown, { readonly _tag: string }, Mutex.Mutex | Scope.Scope>) =>
        Effect.map(Effect.flip(effect), (error) => error._tag)
      assert.strictEqual(yield* refused(Mutex.acquire("")), "InvalidName")
      const long = yield* Effect.flip(Mutex.owner("x".repeat(100_000)))
      assert.isBelow(long.message.length, 200)
      assert.strictEqual(yield* refused(Mutex.acquireIfAvailable("  ")), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.withLock("}m")(Effect.void)), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.owner("\t")), "InvalidName")
      assert.strictEqual(yield* refused(Mutex.acquire("m", { ttl: 0 })), "InvalidConfig")
      assert.strictEqual(yield* refused(Mutex.acquire("m", { transition: "1 second" })), "InvalidConfig")
      for (const timeout of [-1, "-1 millis", -Infinity, "-Infinity", [-1, 0], NaN, "soon" as never] as const) {
        assert.strictEqual(yield* refused(Mutex.acquire("m", { timeout })), "InvalidConfig")
        assert.strictEqual(yield* refused(Mutex.withLock("m", { timeout })(Effect.void)), "InvalidConfig")
        assert.strictEqual(yield* refused(Mutex.acquireAll(["m"], { timeout })), "InvalidConfig")
      }
      // Effect treats each of these values as zero or ignores it
      for (const none of [NaN, [NaN, 0], { minutes: 1, seconds: NaN }] as const) {
        for (const option of ["timeout", "localTurn", "ttl", "transition", "maxHold"]) {
          const error = yield* Effect.flip(Mutex.acquire("m", { [option]: none }))
          assert.deepInclude(error, { _tag: "InvalidConfig", option })
          assert.include(error.message, "is not a duration: write milliseconds, or a text such as \"10 seconds\"")
        }
        for (const option of ["localTurn", "releaseTimeout", "confirmTimeout"]) {
          const error = yield* Effect.flip(MutexConfig.make({ [option]: none }))
          assert.deepInclude(error, { _tag: "InvalidConfig", option })
        }
      }
    }).pipe(Effect.provide(MemoryLive)))

  it.effect("with a zero timeout, an acquire sends one request and waits for the reply", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "3 seconds" }
      const once = <A, E>(effect: Effect.Effect<A, E, Mutex.Mutex | Scope.Scope>) =>
        Effect.gen(function*() {
          faults.calls.length = 0
          const fiber = yield* start(Effect.result(Effect.scoped(effect)))
          yield* TestClock.adjust("6 seconds")
          const result = yield* Fiber.join(fiber)
          return [Result.isSuccess(result), ...faults.calls.filter((call) => call.startsWith("acquire"))]
        })
      const timeout = { timeout: 0 }
      assert.deepStrictEqual(yield* once(Mutex.acquire("m", timeout)), [true, "acquire try"])
      assert.deepStrictEqual(yield* once(Mutex.withLock("m", timeout)(Effect.void)), [true, "acquire try"])
      assert.deepStrictEqual(yield* once(Mutex.acquireAll(["m", "n"], timeout)), [true, "acquire try", "acquire try"])
      const them = yield* another("them")
      faults.acquire = "work"
      yield* Effect.provide(Mutex.acquire("n"), them)
      faults.acquire = { late: "3 seconds" }
      assert.deepStrictEqual(yield* once(Mutex.acquire("n", timeout)), [false, "acquire try"])
      assert.deepStrictEqual(yield* once(Mutex.withLock("n", timeout)(Effect.void)), [false, "acquire try"])
      assert.deepStrictEqual(yield* once(Mutex.acquireAll(["m", "n"], timeout)), [false, "acquire try", "acquire try"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("an acquire with a zero timeout gets a free mutex, and one with an infinite timeout waits", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", { timeout: 0 }), scope)
      assert.strictEqual((yield* Effect.flip(Mutex.acquire("m", { timeout: 0 })))._tag, "AcquireTimeout")
      const { id } = yield* Effect.provide(Mutex.acquire("n"), yield* another("them"))
      assert.deepInclude(yield* Effect.flip(Mutex.acquire("n", { timeout: 0 })), { owner: id })
      const waiter = yield* start(Mutex.acquire("m", { timeout: Infinity }))
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(waiter.pollUnsafe())
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(waiter)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("configuration", () => {
  const refusal = (options: Mutex.Options) =>
    Effect.map(Effect.flip(MutexConfig.make(options)), (error) => error.option)

  it.effect("is checked when the layer is built", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* refusal({ ttl: 0 }), "ttl")
      assert.strictEqual(yield* refusal({ ttl: "forever" as never }), "ttl")
      assert.strictEqual(yield* refusal({ ttl: Infinity }), "ttl")
      assert.strictEqual(yield* refusal({ ttl: 365_000 * 86_400_000 + 1 }), "ttl")
      assert.strictEqual(yield* refusal({ transition: -1 }), "transition")
      assert.strictEqual(yield* refusal({ confirmTimeout: 0 }), "confirmTimeout")
      assert.strictEqual(yield* refusal({ processName: "a@@b" }), "processName")
      assert.strictEqual(yield* refusal({ processName: "@a" }), "processName")
      assert.strictEqual(yield* refusal({ processName: "a@" }), "processName")
      assert.strictEqual(yield* refusal({ processName: " " }), "processName")
      // The safety margin of 0.8 s plus the command timeout of 1 s.
      assert.strictEqual(yield* refusal({ ttl: "14200 millis", transition: "1800 millis" }), "transition")
      yield* MutexConfig.make({ ttl: "14200 millis", transition: "1900 millis" })
      const built = yield* Effect.exit(Layer.build(Mutex.layer({ ttl: 0 }).pipe(Layer.provide(FaultyStore.layer))))
      assert.isTrue(Exit.isFailure(built))
    }))

  it.effect("a transition is refused if it leaves no time to renew, and the error suggests periods for a lease of the same length", () =>
    Effect.gen(function*() {
      const problem = (options: Mutex.Options) =>
        Effect.map(Effect.flip(MutexConfig.make(options)), (error) => error.problem)
      assert.strictEqual(
        yield* problem({ ttl: "10 seconds", transition: 0 }),
        "0 leaves no time to renew: it must exceed the safety margin (500ms) plus commandTimeout (1s); " +
          "for a lease of the same length, use a ttl of 8s 400ms and a transition of 1s 600ms"
      )
      yield* MutexConfig.make({ ttl: "8400 millis", transition: "1600 millis" })
      assert.notInclude(yield* problem({ ttl: "1 second", transition: 0 }), "same length")
    }))

  it.effect("has the documented defaults", () =>
    Effect.gen(function*() {
      const config = yield* MutexConfig.make()
      assert.deepStrictEqual(
        [config.ttl, config.transition, config.confirmTimeout, config.commandTimeout, config.releaseTimeout].map(
          Duration.toMillis
        ),
        [10_000, 6_000, 1_500, 1_000, 2_000]
      )
      assert.match(config.processName, /^\d+@.+/)
    }))
})

it.effect("a lease outlives the fiber that acquired it, but not its scope", () =>
  Effect.gen(function*() {
    const scope = yield* Scope.make()
    const done = yield* Deferred.make<SimbaError.AcquireError | "ok">()
    yield* start(
      Scope.provide(Mutex.acquire("m"), scope).pipe(
        Effect.andThen(Deferred.succeed(done, "ok" as const))
      )
    )
    assert.strictEqual(yield* Deferred.await(done), "ok")
    yield* TestClock.adjust("1 minute")
    assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
  }).pipe(Effect.provide(MemoryLive)))

it.effect("a grant is requested again if the reply arrives after its deadline", () =>
  Effect.gen(function*() {
    const faults = yield* Faults
    faults.acquire = { late: "15500 millis" }
    const fiber = yield* start(Mutex.acquire("m"))
    yield* TestClock.adjust("15 seconds")
    faults.acquire = "work"
    yield* TestClock.adjust("500 millis")
    const lease = yield* Fiber.join(fiber)
    yield* lease.ensure
    assert.deepStrictEqual(faults.calls.filter((call) => call.startsWith("acquire")), ["acquire try", "acquire try"])
  }).pipe(Effect.provide(TestLive)))
