/**
 * How to test code of your own that needs mutexes: the in-process store, and the clock in your hands. Nothing waits for
 * real time here.
 */
import { MemoryMutexStore, Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Reports } from "../service.ts"

const Mutexes = Mutex.layer({ ttl: "10 seconds", transition: "6 seconds" }).pipe(Layer.provide(MemoryMutexStore.layer))

/** What is provided with `provideMerge` can be used by the test, too. */
const Live = Reports.layer.pipe(Layer.provideMerge(Mutexes))

describe("Reports", () => {
  it.effect("makes a report once for two that ask at the same time", () =>
    Effect.gen(function*() {
      const reports = yield* Reports
      const first = yield* Effect.forkChild(reports.make("sales"))
      const second = yield* Effect.forkChild(reports.make("sales"))

      yield* TestClock.adjust("5 seconds")

      assert.deepStrictEqual(yield* Fiber.join(first), Option.some("sales, report number 1"))
      assert.deepStrictEqual(yield* Fiber.join(second), Option.none())
      assert.strictEqual(yield* reports.count, 1)
    }).pipe(Effect.provide(Live)))

  it.effect("makes different reports at the same time", () =>
    Effect.gen(function*() {
      const reports = yield* Reports
      const both = yield* Effect.forkChild(
        Effect.all([reports.make("sales"), reports.make("stock")], { concurrency: "unbounded" })
      )

      yield* TestClock.adjust("5 seconds")

      assert.deepStrictEqual((yield* Fiber.join(both)).map(Option.isSome), [true, true])
    }).pipe(Effect.provide(Live)))

  it.effect("leaves the mutex to others when it is interrupted", () =>
    Effect.gen(function*() {
      const reports = yield* Reports
      const making = yield* Effect.forkChild(reports.make("sales"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Mutex.owner("report:sales"))._tag, "Held")

      yield* Fiber.interrupt(making)

      assert.strictEqual((yield* Mutex.owner("report:sales"))._tag, "Free")
      assert.strictEqual(yield* reports.count, 0)
    }).pipe(Effect.provide(Live)))
})
