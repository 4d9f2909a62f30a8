/** Runs Effect's own Redis-based modules, unchanged, on the fake server. */
import { FakeRedis, TestRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Schema } from "effect"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as Persistence from "effect/persistence/Persistence"
import * as RateLimiter from "effect/persistence/RateLimiter"
import { TestClock } from "effect/testing"

describe("RateLimiter", () => {
  const limiter = RateLimiter.layer.pipe(
    Layer.provide(RateLimiter.layerStoreRedis()),
    Layer.provideMerge(TestRedis.layer())
  )

  for (const algorithm of ["fixed-window", "token-bucket"] as const) {
    it.effect(algorithm, () =>
      Effect.gen(function*() {
        const { consume } = yield* RateLimiter.RateLimiter
        const once = consume({ algorithm, onExceeded: "fail", window: "10 seconds", limit: 3, key: "k" })
        for (let i = 0; i < 3; i++) yield* once
        assert.isTrue(Exit.isFailure(yield* Effect.exit(once)))
        yield* TestClock.adjust("11 seconds")
        const result = yield* once
        assert.strictEqual(result.limit, 3)
        assert.isAtLeast(result.remaining, 0)
      }).pipe(Effect.provide(limiter)))
  }
})

describe("Persistence", () => {
  it.effect("stores and clears values", () =>
    Effect.gen(function*() {
      const backing = yield* Persistence.BackingPersistence
      const store = yield* backing.make("users")
      yield* store.set("1", { name: "one" }, undefined)
      yield* store.setMany([["2", { name: "two" }, undefined]])
      assert.deepStrictEqual(yield* store.getMany(["1", "2", "3"]), [{ name: "one" }, { name: "two" }, undefined])
      yield* store.clear
      assert.isUndefined(yield* store.get("1"))
    }).pipe(
      Effect.scoped,
      Effect.provide(Persistence.layerBackingRedis.pipe(Layer.provideMerge(TestRedis.layer())))
    ))
})

describe("PersistedQueue", () => {
  const queues = PersistedQueue.layer.pipe(
    Layer.provide(PersistedQueue.layerStoreRedis({ pollInterval: "100 millis" })),
    Layer.provideMerge(TestRedis.layer())
  )

  it.effect("delivers in order, and redelivers after a failure", () =>
    Effect.gen(function*() {
      const queue = yield* PersistedQueue.make({ name: "jobs", schema: Schema.String })
      yield* queue.offer("a", { id: "1" })
      yield* queue.offer("b", { id: "2" })
      const got: Array<string> = []
      const worker = yield* Effect.forkChild(Effect.forever(
        queue.take((value, { attempts }) =>
          Effect.suspend(() => {
            got.push(`${value}${attempts}`)
            return value === "a" && attempts === 1 ? Effect.fail("again") : Effect.void
          })
        ).pipe(Effect.ignore)
      ))
      for (let i = 0; i < 100; i++) yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(worker)
      assert.deepStrictEqual(got, ["a1", "b1", "a2"])
      const server = yield* FakeRedis.FakeRedis
      assert.isTrue((yield* server.keys).every(({ key }) => key.length > 0))
    }).pipe(Effect.provide(queues)))
})
