/**
 * How to test your own code that needs mutexes: first with mutexes in memory, then as several processes on an in-memory
 * Redis that runs the production scripts. The test controls the clock and never waits for real time.
 */
import { Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { ContentionScript, FakeNetwork, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Reports } from "../service.ts"

/** Services provided with `provideMerge` are also available to the test. */
const Live = Reports.layer.pipe(Layer.provideMerge(Mutex.layerMemory()))

describe("Reports", () => {
  it.effect("makes a report only once if two callers ask at the same time", () =>
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

  it.effect("releases the mutex on interruption", () =>
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

describe("Reports, in several processes on one Redis", () => {
  /** The service inside the process with this name. */
  const reportsOf = (name: string) =>
    Reports.layer.pipe(
      Layer.provide(TestMutex.layerClient(RedisMutex.layerStore, { name })),
      Layer.build,
      Effect.map(Context.get(Reports))
    )

  it.effect("waits at most one lease time for a process that was cut off", () =>
    Effect.gen(function*() {
      const [a, b] = yield* Effect.all([reportsOf("a"), reportsOf("b")])
      yield* Effect.forkChild(a.make("sales"))
      yield* TestClock.adjust("1 second")

      yield* Effect.flatMap(FakeNetwork.link("a"), (link) => link.partition())

      yield* TestClock.adjust("14 seconds")
      assert.deepStrictEqual(yield* b.make("sales"), Option.none())
      yield* TestClock.adjust("2 seconds")
      const making = yield* Effect.forkChild(b.make("sales"))
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(Option.isSome(yield* Fiber.join(making)))
    }).pipe(Effect.provide(FakeRedis.layer())))

  it.effect.prop(
    "never makes the same report twice at the same time, in any order of requests",
    [ContentionScript.arbitrary({ workers: ["a", "b"], mutexes: ["sales", "stock"] })],
    ([script]) =>
      Effect.gen(function*() {
        const processes = new Map([["a", yield* reportsOf("a")], ["b", yield* reportsOf("b")]])
        const asking = yield* Effect.forkChild(
          Effect.filter(
            script,
            ({ at, mutex, worker }) => Effect.delay(Effect.map(processes.get(worker)!.make(mutex), Option.isSome), at),
            { concurrency: "unbounded" }
          )
        )
        yield* TestClock.adjust("1 minute")
        const made = yield* Fiber.join(asking)
        for (const name of ["sales", "stock"]) {
          const begun = made.filter(({ mutex }) => mutex === name).map(({ at }) => at)
          begun.slice(1).forEach((at, index) => assert.isAtLeast(at - begun[index]!, 5000))
        }
      }).pipe(Effect.provide(FakeRedis.layer()))
  )
})
