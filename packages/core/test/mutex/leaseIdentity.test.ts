/** Each lease has its own id, and only that id is renewed. */
import * as Mutex from "@effect-simba/core/Mutex"
import { MutexStore, release } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Option, Random, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { calls } from "../support/hands.ts"
import { start, TestLive } from "../support/setup.ts"

describe("leases on one name", () => {
  it.effect("a process does not renew the leases of a dead process with the same name", () =>
    Effect.gen(function*() {
      const process = yield* Scope.make()
      const namesake = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer({ processName: "us" })), process)
      // The two ids have the same counter and name, and differ only in their random parts
      yield* Effect.provide(Effect.scoped(Mutex.acquire("x")), namesake)
      const lease = yield* Effect.provide(Mutex.acquire("m"), namesake)
      const own = yield* Mutex.acquire("n")
      assert.strictEqual(lease.id.split(":")[1], own.id.split(":")[1])
      // Without its layer the lease is neither renewed nor released, as after a crash
      yield* Scope.close(process, Exit.void)
      const waiter = yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("16 seconds")
      assert.isUndefined(waiter.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
      assert.isTrue(yield* own.isHeld)
    }).pipe(Effect.provide(TestLive)), { tags: ["B17"] })

  it.effect(
    "a late reply about an old lease does not affect the next lease on the same name",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const store = yield* MutexStore
        const scope = yield* Scope.make()
        const old = yield* Scope.provide(Mutex.acquire("m"), scope)
        // The server has lost the lease, and its reply to the renewal is late
        yield* release(store, {
          mutex: old.mutex,
          id: old.id,
          confirm: Duration.seconds(1),
          lease: Duration.seconds(16)
        })
        faults.guard = { late: "900 millis" }
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* calls("guard"), 1)
        yield* Scope.close(scope, Exit.void)
        const lease = yield* Mutex.acquire("m")
        const lost = yield* start(lease.lost)
        faults.guard = "work"
        yield* TestClock.adjust("1 hour")
        assert.isUndefined(lost.pollUnsafe())
        assert.strictEqual((yield* Effect.flip(old.ensure)).reason._tag, "Released")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B28"] }
  )

  it.live("two layers under the same seed exclude each other", () =>
    Effect.gen(function*() {
      const build = Layer.build(Layer.fresh(Mutex.layer({ processName: "us" }))).pipe(Random.withSeed("same"))
      const acquire = Mutex.acquireIfAvailable("m")
      assert.isTrue(Option.isSome(yield* Effect.provide(acquire, yield* build)))
      assert.isTrue(Option.isNone(yield* Effect.provide(acquire, yield* build)))
    }).pipe(Effect.provide(TestLive)), { tags: ["B17"] })

  it.effect("an owner may reacquire the mutex immediately after a release", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const first = yield* Effect.scoped(Mutex.acquire("m"))
      const second = yield* Effect.scoped(Mutex.acquire("m"))
      assert.isAbove(second.token, first.token)
      assert.deepStrictEqual(faults.calls, ["acquire try", "release", "acquire try", "release"])
    }).pipe(Effect.provide(TestLive)), { tags: ["B30"] })
})
