/** A contract suite for mutexes and fences in every topology: a single server, Sentinel and Cluster. */
import { Mutex } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { RedisFence, RedisMutex } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"

type Provided = Mutex.Mutex | Redis

/** A layer with short-period mutexes and the connections they use. */
export const mutexes = <A, E, R>(redis: Layer.Layer<Redis | A, E, R>) =>
  Mutex.layer({ ttl: "1 second", transition: "2 seconds", commandTimeout: "500 millis", confirmTimeout: "500 millis" })
    .pipe(
      Layer.provideMerge(RedisMutex.layerStore),
      Layer.provideMerge(redis)
    )

/** Increments a counter in the resource's slot with a fenced script. */
const advance = RedisFence.script((key: string, by: number) => [key, by], {
  numberOfKeys: 1,
  lua: `return redis.call('INCRBY', KEYS[1], ARGV[1])`
})

export const contract = <R, E>(name: string, live: Layer.Layer<Provided | R, E>) =>
  layer(live, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    it.effect("a mutex in any slot has one holder at a time and serves waiters in order", () =>
      Effect.gen(function*() {
        const names = Array.from({ length: 24 }, (_, i) => `${name} ${i}`)
        yield* Effect.forEach(names, (mutex) =>
          Effect.gen(function*() {
            const order: Array<number> = []
            let inside = 0
            const letGo = yield* Deferred.make<void>()
            const first = yield* Effect.forkChild(
              Mutex.withLock(mutex)(Deferred.await(letGo)),
              { startImmediately: true }
            )
            yield* Effect.retry(
              Effect.filterOrFail(Mutex.owner(mutex), (owner) => owner._tag === "Held"),
              Schedule.spaced("5 millis")
            )
            const waiters: Array<Fiber.Fiber<void, unknown>> = []
            for (const n of [1, 2, 3]) {
              waiters.push(
                yield* Effect.forkChild(
                  Mutex.withLock(mutex)(Effect.gen(function*() {
                    assert.strictEqual(++inside, 1)
                    yield* Effect.yieldNow
                    order.push(n)
                    inside--
                  }))
                )
              )
              yield* Effect.sleep("10 millis")
            }
            yield* Deferred.succeed(letGo, undefined)
            yield* Fiber.join(first)
            yield* Fiber.joinAll(waiters)
            assert.deepStrictEqual(order, [1, 2, 3])
            assert.strictEqual((yield* Mutex.owner(mutex))._tag, "Free")
          }), { concurrency: 8 })
      }))

    it.effect("a mutex in any slot stays held beyond the first lease", () =>
      Effect.scoped(Effect.gen(function*() {
        const leases = yield* Effect.forEach(
          Array.from({ length: 24 }, (_, i) => `renewed ${i}`),
          (mutex) => Mutex.acquire(mutex)
        )
        yield* Effect.sleep("4 seconds")
        for (const lease of leases) yield* lease.ensure
      })))

    it.effect("a mutex survives SCRIPT FLUSH", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        for (let i = 0; i < 12; i++) {
          yield* redis.send("SCRIPT", "FLUSH")
          yield* Mutex.withLock(`forgotten ${i}`)(Effect.void)
        }
      }))

    it.effect("acquireAll holds mutexes in different slots", () =>
      Effect.gen(function*() {
        const group = yield* Mutex.acquireAll(["x", "y", "z"])
        assert.strictEqual(yield* group.protect(Effect.succeed(group.tokens.size)), 3)
      }).pipe(Effect.scoped))

    it.effect("B32: a resource in any slot refuses writes from an earlier holder", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const names = Array.from(
          { length: 24 },
          (_, i) => i % 2 === 0 ? `${name} fenced ${i}` : `{${name} ${i}}:fenced`
        )
        yield* Effect.forEach(names, (key) =>
          Effect.gen(function*() {
            const tokenOf = Effect.scoped(Effect.map(Mutex.acquire(key), (lease) => lease.token))
            const former = yield* tokenOf
            yield* RedisFence.set({ resource: key, token: former }, key, "former")
            const latter = yield* tokenOf
            yield* RedisFence.raise({ resource: key, token: latter })
            const late = yield* Effect.flip(RedisFence.set({ resource: key, token: former }, key, "late"))
            assert.deepInclude(late, { _tag: "StaleToken", token: former, largest: latter })
            assert.strictEqual(yield* redis.send("GET", key), "former")
            yield* RedisFence.set({ resource: key, token: latter }, key, "latter")
            const other = RedisKeys.largestToken(key).replace(":simba-token", ":count")
            assert.strictEqual(yield* RedisFence.run(advance, { resource: key, token: latter })(other, 2), 2)
            const repeated = yield* Effect.flip(RedisFence.run(advance, { resource: key, token: former })(other, 2))
            assert.strictEqual(repeated._tag, "StaleToken")
            assert.strictEqual(yield* redis.send("GET", other), "2")
            assert.strictEqual(yield* redis.send("GET", key), "latter")
          }), { concurrency: 8, discard: true })
      }))

    it.effect("a resource refuses stale writes after SCRIPT FLUSH", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        for (let i = 0; i < 12; i++) {
          yield* redis.send("SCRIPT", "FLUSH")
          const key = `${name} forgotten fence ${i}`
          yield* RedisFence.set({ resource: key, token: FencingToken.make(2) }, key, "new")
          yield* redis.send("SCRIPT", "FLUSH")
          assert.strictEqual(
            (yield* Effect.flip(RedisFence.set({ resource: key, token: FencingToken.make(1) }, key, "old")))._tag,
            "StaleToken"
          )
          assert.strictEqual(yield* redis.send("GET", key), "new")
        }
      }))

    it.effect("a blocking command does not delay other commands", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const blocked = yield* Effect.forkChild(Effect.scoped(Effect.flatMap(
          redis.reserve,
          (connection) => connection.send<ReadonlyArray<string>>("BLPOP", "list", "5")
        )))
        yield* Effect.sleep("100 millis")
        yield* redis.send("RPUSH", "list", "one")
        assert.deepStrictEqual(yield* Fiber.join(blocked), ["list", "one"])
      }))
  })
