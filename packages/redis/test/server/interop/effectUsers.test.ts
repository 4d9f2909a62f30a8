/**
 * Runs the Effect modules that use the `Redis` service on `IoRedis`, and compares each step on the fake (over a socket)
 * with a real redis-server.
 */
import { IoRedis } from "@effect-simba/redis"
import { FakeRedis } from "@effect-simba/testkit"
import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
import { assert, it } from "@effect/vitest"
import { Effect, Exit, Layer, Schema, type Scope } from "effect"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as Persistence from "effect/persistence/Persistence"
import * as RateLimiter from "effect/persistence/RateLimiter"
import type { Redis } from "effect/persistence/Redis"
import { RedisServer } from "../../support/redisServer.ts"

type Steps = Effect.Effect<ReadonlyArray<unknown>, unknown, Redis | Scope.Scope>

const alike = (title: string, steps: Steps) =>
  it.live(title, () =>
    Effect.gen(function*() {
      const at = (url: string) => Effect.scoped(Effect.provide(steps, IoRedis.layer({ url })))
      const fake = yield* FakeRedisServer.listen()
      const real = yield* RedisServer.start()
      const [onFake, onReal] = yield* Effect.all([at(fake.url), at(real.url)])
      assert.isAbove(onReal.length, 0)
      assert.deepStrictEqual(onFake, onReal)
    }).pipe(Effect.provide(FakeRedis.layer())))

for (const algorithm of ["fixed-window", "token-bucket"] as const) {
  alike(
    `RateLimiter, ${algorithm}`,
    Effect.gen(function*() {
      const { consume } = yield* RateLimiter.RateLimiter
      const once = consume({ algorithm, onExceeded: "fail", window: "1 hour", limit: 3, key: "k" })
      const steps: Array<unknown> = []
      for (let i = 0; i < 4; i++) {
        const exit = yield* Effect.exit(once)
        steps.push(Exit.isSuccess(exit) ? [exit.value.limit, exit.value.remaining] : "exceeded")
      }
      return steps
    }).pipe(Effect.provide(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreRedis()))))
  )
}

alike(
  "Persistence",
  Effect.gen(function*() {
    const backing = yield* Persistence.BackingPersistence
    const store = yield* backing.make("users")
    yield* store.set("1", { name: "grüße √" }, undefined)
    yield* store.setMany([["2", { name: "two" }, undefined]])
    const before = yield* store.getMany(["1", "2", "3"])
    yield* store.remove("1")
    const removed = yield* store.get("1")
    yield* store.clear
    return [before, removed, yield* store.get("2")]
  }).pipe(Effect.provide(Persistence.layerBackingRedis))
)

alike(
  "PersistedQueue",
  Effect.gen(function*() {
    const queue = yield* PersistedQueue.make({ name: "jobs", schema: Schema.String })
    yield* queue.offer("a", { id: "1" })
    yield* queue.offer("a", { id: "1" })
    yield* queue.offer("b", { id: "2" })
    const got: Array<string> = []
    const take = queue.take((value, { attempts }) =>
      Effect.suspend(() => {
        got.push(`${value}${attempts}`)
        return value === "a" && attempts === 1 ? Effect.fail("again") : Effect.void
      })
    )
    for (let i = 0; i < 3; i++) yield* Effect.ignore(take)
    return [got.sort()]
  }).pipe(
    Effect.provide(
      PersistedQueue.layer.pipe(Layer.provide(PersistedQueue.layerStoreRedis({ pollInterval: "20 millis" })))
    )
  )
)
