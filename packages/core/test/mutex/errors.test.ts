/** What the errors of a mutex say. */
import * as Mutex from "@effect-simba/core/Mutex"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { takeFrom } from "../support/hands.ts"
import { start, TestLive } from "../support/setup.ts"

describe("errors", () => {
  it.effect("each way to fail has a tag and a message of its own", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("held")
      const timedOut = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("held", { timeout: "1 second" }))))
      const lease = yield* Mutex.acquire("m")
      yield* TestClock.adjust("1 second")
      yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      const released = yield* Effect.scoped(Mutex.acquire("released"))
      const errors: ReadonlyArray<{ readonly _tag: string; readonly message: string; readonly reason?: string }> = [
        yield* Fiber.join(timedOut),
        yield* Effect.flip(lease.ensure),
        yield* Effect.flip(released.ensure),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("outer")).pipe(Mutex.withLock("outer"))),
        yield* Effect.flip(Effect.scoped(Mutex.acquire(" "))),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("x", { ttl: 0 }))),
        yield* Effect.andThen(
          Effect.sync(() => faults.acquire = "fail"),
          Effect.flip(Effect.scoped(Mutex.acquireIfAvailable("y")))
        )
      ]
      assert.deepStrictEqual(errors.map((error) => error._tag), [
        "AcquireTimeout",
        "LeaseLost",
        "LeaseLost",
        "AlreadyHeld",
        "InvalidName",
        "InvalidConfig",
        "BackendError"
      ])
      assert.deepInclude(errors[1], { reason: "TakenOver" })
      assert.deepInclude(errors[2], { reason: "Released" })
      assert.strictEqual(new Set(errors.map((error) => error.message)).size, errors.length)
    }).pipe(Effect.provide(TestLive)), { tags: ["B25"] })
})
