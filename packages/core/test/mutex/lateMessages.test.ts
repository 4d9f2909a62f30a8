/** Messages that arrive late, repeatedly, or never. */
import * as Mutex from "@effect-simba/core/Mutex"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { calls, Hands, HandsLive, settle } from "../support/hands.ts"
import { another, start } from "../support/setup.ts"

describe("late and lost messages", () => {
  it.effect(
    "if a waiter does not receive its hand-off, the next waiter is delayed by a confirm period",
    () =>
      Effect.gen(function*() {
        const { lines } = yield* Hands
        const [holder, next] = [yield* Scope.make(), yield* Scope.make()]
        yield* Effect.provide(Scope.provide(Mutex.acquire("m"), holder), yield* another("them"))
        const deaf = yield* start(Mutex.acquire("m"))
        const waiter = yield* Effect.provide(start(Scope.provide(Mutex.acquire("m"), next)), yield* another("next"))
        lines[0]!.muted = true
        yield* Scope.close(holder, Exit.void)
        yield* TestClock.adjust("1500 millis")
        assert.isUndefined(waiter.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
        // The waiter that missed its message is served when it polls, at the time when the last known lease should have
        // ended
        yield* TestClock.adjust("20 seconds")
        lines[0]!.muted = false
        yield* Scope.close(next, Exit.void)
        assert.isTrue(yield* (yield* Fiber.join(deaf)).isHeld)
      }).pipe(Effect.provide(HandsLive)),
    { tags: ["S5"] }
  )

  it.effect("a late notification does not end a current lease", () =>
    Effect.gen(function*() {
      const { lines } = yield* Hands
      const faults = yield* Faults
      const holder = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), holder)
      let interrupted = false
      const waiter = yield* start(
        Mutex.withLock("m")((lease) =>
          Effect.sleep("1 minute").pipe(
            Effect.onInterrupt(() => Effect.sync(() => interrupted = true)),
            Effect.andThen(lease.ensure)
          )
        )
      )
      yield* Scope.close(holder, Exit.void)
      yield* settle
      faults.calls.length = 0
      lines[0]!.forge({ _tag: "YourTurn" })
      yield* settle
      assert.deepStrictEqual(faults.calls, [])
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(waiter)
      assert.isFalse(interrupted)
      assert.strictEqual(yield* calls("acquire"), 0)
    }).pipe(Effect.provide(HandsLive)), { tags: ["S9"] })

  it.effect("a waiter subscribes once, even after repeated spurious wake-ups", () =>
    Effect.gen(function*() {
      const { lines } = yield* Hands
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const waiter = yield* start(Mutex.acquire("m"))
      for (let i = 0; i < 20; i++) {
        lines[0]!.forge({ _tag: "YourTurn" })
        lines[0]!.forge({ _tag: "Gap" })
        yield* settle
      }
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(waiter.pollUnsafe())
      assert.isAtLeast(yield* calls("acquire wait"), 41)
      assert.strictEqual(yield* calls("listen"), 1)
    }).pipe(Effect.provide(HandsLive)), { tags: ["B9"] })
})
