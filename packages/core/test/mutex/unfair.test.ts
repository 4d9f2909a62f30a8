import { Mutex, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { MemoryLive, start, TestLive } from "../support/setup.ts"

const unfair = { unfair: true } as const

/** One that subscribed and queued, and says nothing when it is told that it is its turn. */
const silentWaiter = Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const mutex = MutexName.MutexName.make("m")
  const id = "1-aaaaaaaaaaaa:silent" as MutexName.LeaseId
  yield* MutexStore.wakeUps(store, mutex, id)
  const result = yield* store.acquire({
    mutex,
    id,
    mode: "wait",
    lease: Duration.seconds(16),
    confirm: Duration.millis(1500)
  })
  assert.strictEqual(result._tag, "Refused")
})

describe("unfair", () => {
  it.effect("an unfair holder takes the mutex again before a woken waiter", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", unfair), scope)
      const waiter = yield* start(Mutex.withLock("m")(Effect.sync(() => order.push("waiter"))))
      yield* Scope.close(scope, Exit.void)
      yield* Mutex.withLock("m", unfair)(Effect.sync(() => order.push("barger")))
      yield* Fiber.join(waiter)
      assert.deepStrictEqual(order, ["barger", "waiter"])
    }).pipe(Effect.provide(TestLive)))

  it.effect("its release wakes the first waiter at once", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", unfair), scope)
      const waiters = yield* Effect.forEach([1, 2, 3], () => start(Mutex.withLock("m")(Effect.void)))
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.joinAll(waiters)
    }).pipe(Effect.provide(TestLive)), { tags: ["H4"] })

  it.effect(
    "a waiter that lost the race keeps its place and is woken again, round after round",
    () =>
      Effect.gen(function*() {
        const order: Array<number> = []
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("m", unfair), scope)
        const waiters = yield* Effect.forEach(
          [1, 2],
          (n) => start(Mutex.withLock("m")(Effect.sync(() => order.push(n))))
        )
        let last = scope
        for (let round = 0; round < 5; round++) {
          const next = yield* Scope.make()
          yield* Scope.close(last, Exit.void)
          yield* Scope.provide(Mutex.acquire("m", unfair), next)
          last = next
        }
        assert.deepStrictEqual(order, [])
        yield* Scope.close(last, Exit.void)
        yield* Fiber.joinAll(waiters)
        assert.deepStrictEqual(order, [1, 2])
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H4"] }
  )

  it.effect("a fair newcomer does not barge, although the mutex is free", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const mutex = MutexName.MutexName.make("m")
      const order: Array<string> = []
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m", unfair)
        const waiter = yield* start(Mutex.withLock("m")(Effect.sync(() => order.push("waiter"))))
        // Without a turn for the waiter between the two
        const { ownership: owner } = yield* MutexStore.release(store, {
          mutex,
          id: lease.id,
          confirm: Duration.seconds(1),
          lease: Duration.seconds(16),
          unfair: true
        })
        assert.strictEqual(owner._tag, "Free")
        const newcomer = { mutex, id: "1-bbbbbbbbbbbb:new" as MutexName.LeaseId, mode: "try" as const }
        const periods = { lease: Duration.seconds(16), confirm: Duration.seconds(1) }
        const fair = yield* store.acquire({ ...newcomer, ...periods })
        assert.strictEqual(fair._tag, "Refused")
        yield* Fiber.join(waiter)
      }))
      assert.deepStrictEqual(order, ["waiter"])
    }).pipe(Effect.provide(MemoryLive)), { tags: ["H1"] })

  it.effect("a fair holder hands over, and no unfair waiter can barge", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), scope)
      const waiter = yield* start(Mutex.withLock("m")(Effect.sync(() => order.push("waiter"))))
      yield* Scope.close(scope, Exit.void)
      yield* Mutex.withLock("m", unfair)(Effect.sync(() => order.push("unfair")))
      yield* Fiber.join(waiter)
      assert.deepStrictEqual(order, ["waiter", "unfair"])
    }).pipe(Effect.provide(TestLive)), { tags: ["H1"] })

  it.effect("acquireIfAvailable takes a free mutex that others wait for", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", unfair), scope)
      const waiter = yield* start(Effect.scoped(Mutex.acquire("m")))
      yield* Scope.close(scope, Exit.void)
      yield* Effect.scoped(Effect.gen(function*() {
        assert.isTrue(Option.isSome(yield* Mutex.acquireIfAvailable("m", unfair)))
      }))
      yield* Fiber.join(waiter)
    }).pipe(Effect.provide(TestLive)))

  it.effect("unfair waiters queue, too, and are served", () =>
    Effect.gen(function*() {
      let inside = 0
      const workers = yield* Effect.forEach(
        [1, 2, 3, 4],
        (n) =>
          start(Effect.forEach([1, 2, 3], () =>
            Mutex.withLock("m", n % 2 === 0 ? unfair : {})(Effect.gen(function*() {
              assert.strictEqual(++inside, 1)
              yield* Effect.sleep("10 millis")
              assert.strictEqual(inside--, 1)
            }))))
      )
      yield* TestClock.adjust("500 millis")
      yield* Fiber.joinAll(workers)
    }).pipe(Effect.provide(TestLive)))

  it.effect("a silent waiter costs the one behind it two confirm periods at most", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", unfair), scope)
      yield* silentWaiter
      const behind = yield* start(Effect.scoped(Mutex.acquire("m")))
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1400 millis")
      assert.isUndefined(behind.pollUnsafe())
      yield* TestClock.adjust("1610 millis")
      yield* Fiber.join(behind)
    }).pipe(Effect.provide(MemoryLive)), { tags: ["H3"] })

  it.effect("a waiter that leaves passes its wake-up on", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const mutex = MutexName.MutexName.make("m")
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m", unfair), scope)
      const id = "1-cccccccccccc:leaving" as MutexName.LeaseId
      const confirm = Duration.minutes(1)
      yield* MutexStore.wakeUps(store, mutex, id)
      yield* store.acquire({ mutex, id, mode: "wait", lease: Duration.seconds(16), confirm })
      const behind = yield* start(Effect.scoped(Mutex.acquire("m")))
      yield* Scope.close(scope, Exit.void)
      yield* MutexStore.release(store, { mutex, id, confirm, lease: Duration.seconds(16) })
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(behind)
    }).pipe(Effect.provide(MemoryLive)), { tags: ["H4"] })

  it.effect("tokens grow", () =>
    Effect.gen(function*() {
      const tokens: Array<number> = []
      for (let i = 0; i < 6; i++) {
        tokens.push((yield* Effect.scoped(Mutex.acquire("m", i % 2 === 0 ? unfair : {}))).token)
      }
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
    }).pipe(Effect.provide(TestLive)))
})
