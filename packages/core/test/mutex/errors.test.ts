/** Mutex error messages. */
import * as Mutex from "@effect-simba/core/Mutex"
import type { LeaseId } from "@effect-simba/core/MutexName"
import type * as SimbaError from "@effect-simba/core/SimbaError"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { takeFrom } from "../support/hands.ts"
import { start, TestLive } from "../support/setup.ts"

const ownerOf = (name: string) =>
  Effect.map(Mutex.owner(name), (state) => (state._tag === "Held" ? state.owner : "") as LeaseId)

describe("errors", () => {
  it.effect("each failure has its own tag and message", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("held")
      const timedOut = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("held", { timeout: "1 second" }))))
      const lease = yield* Mutex.acquire("m")
      yield* TestClock.adjust("1 second")
      yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      const released = yield* Effect.scoped(Mutex.acquire("released"))
      const errors: ReadonlyArray<
        { readonly _tag: string; readonly message: string; readonly reason?: SimbaError.LossReason }
      > = [
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
      assert.deepStrictEqual(errors.map(({ reason }) => reason?._tag).slice(1, 3), ["TakenOver", "Released"])
      assert.strictEqual(new Set(errors.map((error) => error.message)).size, errors.length)
    }).pipe(Effect.provide(TestLive)), { tags: ["B25"] })

  it.effect("the reason for a loss can be caught by its tag, and only retryable losses are retried", () =>
    Effect.gen(function*() {
      let runs = 0
      const work = Effect.andThen(Effect.sync(() => ++runs), Effect.never).pipe(
        Mutex.withLock("m"),
        Effect.catchReason("LeaseLost", "ForcedRelease", () => Effect.succeed("an operator stopped it")),
        Effect.retry({ while: (error) => error.isRetryable, times: 3 })
      )
      const fiber = yield* start(work)
      yield* takeFrom(yield* ownerOf("m"))
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(runs, 1, "the work waits while another contender owns the mutex")
      yield* Mutex.forceRelease("m")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 2)
      yield* Mutex.forceRelease("m")
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* Fiber.join(fiber), "an operator stopped it")
      assert.strictEqual(runs, 2)
    }).pipe(Effect.provide(TestLive)))
})
