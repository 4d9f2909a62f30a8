/** All waiters in a layer share one place in the queue. */
import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Faults } from "../support/faultyStore.ts"
import { another, MemoryLive, start, TestLive, timeLeft } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"
import { grows, hold, makeLine, ownerId, queue, settle } from "../support/waiters.ts"

const collect = (() => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
})()

/** Options that limit each turn to one holder. */
const strict = { localTurn: 0 }

describe("one place in the queue for all waiters in a layer", () => {
  it.effect("a thousand waiters behind a holder need one subscription and nothing else", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold()
      const waiters = yield* Effect.forEach(Array.from({ length: 1000 }), () => start(Mutex.acquire("m")))
      yield* settle
      assert.deepStrictEqual(faults.calls, ["acquire try", "listen"])
      assert.strictEqual(yield* queue, 0)
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(faults.calls.slice(2).every((call) => call === "guard 1"))
      yield* Fiber.interruptAll(waiters)
      yield* holder.letGo
      assert.strictEqual(yield* ownerId, undefined)
      assert.strictEqual(yield* queue, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("waiters share one place if they find a sibling's lease expired after a stall", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const faults = yield* Faults
        yield* Mutex.acquire("m")
        faults.acquire = "hang"
        faults.calls.length = 0
        // No timer has fired yet, so the first request notices the end of the lease
        stall.millis = 20_000
        for (let i = 0; i < 3; i++) yield* start(Mutex.acquire("m", i === 1 ? undefined : { timeout: "1 minute" }))
        yield* settle
        assert.deepStrictEqual(faults.calls.filter((call) => call.startsWith("acquire")), ["acquire try"])
        assert.deepStrictEqual(yield* Mutex.acquireIfAvailable("m"), Option.none())
        faults.acquire = "work"
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("an acquire queues immediately if the mutex was busy last time, and tries first if it was free", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const once = Effect.scoped(Mutex.acquire("m"))
      const requests = Effect.sync(() => faults.calls.splice(0).filter((call) => call.startsWith("acquire")))
      yield* once
      assert.deepStrictEqual(yield* requests, ["acquire try"])
      const them = yield* another("them")
      for (const asked of [["acquire try", "acquire wait"], ["acquire wait"], ["acquire wait"]]) {
        const scope = yield* Scope.make()
        yield* Scope.provide(Effect.provide(Mutex.acquire("m"), them), scope)
        yield* requests
        const waiter = yield* start(once)
        assert.deepStrictEqual(yield* requests, asked)
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.join(waiter)
        yield* settle
      }
      yield* requests
      // The layer expects the mutex to be busy, but finds it free
      yield* once
      assert.deepStrictEqual(yield* requests, ["acquire wait"])
      yield* once
      assert.deepStrictEqual(yield* requests, ["acquire try"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a thousand waiters behind another layer are one entry in the queue", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* Effect.provide(hold(), yield* another("them"))
      faults.calls.length = 0
      yield* Effect.forEach(Array.from({ length: 1000 }), () => start(Mutex.acquire("m")))
      yield* settle
      assert.deepStrictEqual(faults.calls, ["acquire try", "listen", "acquire wait"])
      assert.strictEqual(yield* queue, 1)
      yield* holder.letGo
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "waiters that share a place are served in order of arrival, with one release per hand-off",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const line = makeLine(strict)
        const names = Array.from({ length: 20 }, (_, n) => `${n}`)
        for (const name of names) yield* line.wait(name)
        yield* settle
        faults.calls.length = 0
        for (const name of names) yield* line.letGo(name)
        assert.deepStrictEqual(line.served, names)
        grows(line.tokens)
        assert.strictEqual(new Set(line.ids).size, names.length, "each turn has its own lease id")
        const [releases, subscriptions] = ["release", "listen"].map((call) =>
          faults.calls.filter((other) => other === call).length
        )
        assert.deepStrictEqual([releases, subscriptions, faults.calls.length], [20, 18, 38])
        assert.strictEqual(yield* ownerId, undefined)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect(
    "a fiber whose own request was refused is served before fibers that arrived in the meantime",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const holder = yield* Effect.provide(hold(), yield* another("them"))
        const line = makeLine()
        faults.acquire = { late: "100 millis" }
        yield* line.wait("first")
        for (const name of ["second", "third"]) yield* line.wait(name)
        yield* TestClock.adjust("1 second")
        faults.acquire = "work"
        yield* holder.letGo
        for (const name of ["first", "second", "third"]) {
          yield* settle
          yield* line.letGo(name)
        }
        assert.deepStrictEqual(line.served, ["first", "second", "third"])
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect(
    "a place queues behind the others after its turn, so two layers with waiters alternate",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const them = yield* another("them")
        const line = makeLine(strict)
        for (let i = 0; i < 6; i++) {
          yield* line.wait(`us ${i}`)
          yield* Effect.provide(line.wait(`them ${i}`), them)
          yield* settle
        }
        faults.calls.length = 0
        for (let i = 0; i < 12; i++) yield* line.letGo(line.served[i]!)
        const requests = ["release", "acquire wait"].map((call) =>
          faults.calls.filter((other) => other === call).length
        )
        assert.deepStrictEqual(requests, [12, 11], "each hand-off is a release and a confirmation, and nobody polls")
        assert.deepStrictEqual(line.served, Array.from({ length: 6 }, (_, i) => [`us ${i}`, `them ${i}`]).flat())
        grows(line.tokens)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect("acquireIfAvailable does not send a request while a fiber in the same layer holds the mutex or waits for it", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold()
      assert.isTrue(Option.isNone(yield* Mutex.acquireIfAvailable("m")))
      assert.isTrue(Option.isNone(yield* Mutex.withLockIfAvailable("m")(Effect.void)))
      assert.deepStrictEqual(faults.calls, ["acquire try"])
      yield* holder.letGo
      yield* Effect.scoped(Effect.gen(function*() {
        assert.isTrue(Option.isSome(yield* Mutex.acquireIfAvailable("m")))
        const waiter = yield* start(Mutex.acquire("m", { timeout: "1 second" }))
        faults.calls.length = 0
        assert.isTrue(Option.isNone(yield* Mutex.acquireIfAvailable("m")))
        assert.deepStrictEqual(faults.calls, [])
        yield* Fiber.interrupt(waiter)
      }))
      assert.strictEqual(yield* ownerId, undefined)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a waiter that arrives during a sibling's acquireIfAvailable is served after the sibling, or first if the sibling is interrupted", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const end of ["granted", "interrupted"] as const) {
        faults.acquire = { late: "100 millis" }
        faults.calls.length = 0
        const scope = yield* Scope.make()
        const trying = yield* start(Scope.provide(Mutex.acquireIfAvailable("m"), scope))
        const line = makeLine()
        yield* line.wait("next")
        yield* settle
        assert.deepStrictEqual(faults.calls, ["acquire try"])
        if (end === "interrupted") yield* Fiber.interrupt(trying)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(line.served, end === "granted" ? [] : ["next"])
        faults.acquire = "work"
        yield* Scope.close(scope, Exit.void)
        yield* settle
        assert.deepStrictEqual(line.served, ["next"])
        yield* line.letGo("next")
      }
    }).pipe(Effect.provide(TestLive)))

  it.effect("contenders in a layer share the place with its other waiters", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const contentions = yield* Effect.forEach([0, 1, 2], () => Effect.tap(Mutex.contend("m"), settle))
      assert.deepStrictEqual(faults.calls.filter((call) => call.startsWith("acquire")), ["acquire try"])
      const leaders = Effect.map(
        Effect.forEach(contentions, ({ lease }) => lease),
        (leases) => leases.flatMap((lease, n) => Option.isSome(lease) ? [n] : [])
      )
      for (const n of [0, 1, 2, 0]) {
        assert.deepStrictEqual(yield* leaders, [n])
        yield* contentions[n]!.stepDown
        yield* settle
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("each waiter gets the lease that it requested", () =>
    Effect.gen(function*() {
      const line = makeLine()
      const left: Array<number> = []
      yield* line.wait("holder")
      const leases = [{ ttl: "2 seconds" }, { ttl: "20 seconds" }, { ttl: "20 seconds", maxHold: "5 seconds" }] as const
      const waiting = yield* Effect.forEach(leases, (options) =>
        start(
          Mutex.withLock("m", options)((lease) => Effect.map(timeLeft(lease), (millis) => void left.push(millis)))
        ))
      yield* line.letGo("holder")
      yield* Fiber.joinAll(waiting)
      assert.deepStrictEqual(left, [8000 - 400, 26_000 - 1300, 5000])
    }).pipe(Effect.provide(TestLive)))
})

describe("the memory that a layer keeps for its mutexes", () => {
  it.effect("an acquire tries first again after an attempt has found the mutex free", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const them = yield* Scope.make()
      yield* Scope.provide(Effect.provide(Mutex.acquire("m"), yield* another("them")), them)
      assert.deepStrictEqual(yield* Mutex.acquireIfAvailable("m"), Option.none())
      yield* Scope.close(them, Exit.void)
      yield* Effect.scoped(Mutex.acquireIfAvailable("m"))
      faults.calls.length = 0
      yield* Effect.scoped(Mutex.acquire("m"))
      assert.deepStrictEqual(faults.calls, ["acquire try", "release"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("is freed when they are no longer used", () =>
    Effect.gen(function*() {
      const use = Effect.fnUntraced(function*(from: number, count: number) {
        for (let i = from; i < from + count; i++) yield* Mutex.withLock(`m ${i}`)(Effect.void)
        collect()
        return process.memoryUsage().heapUsed
      })
      const before = yield* use(0, 500)
      // A queue takes more than a thousand bytes
      assert.isBelow((yield* use(500, 5000)) - before, 5000 * 200)
    }).pipe(Effect.provide(MemoryLive)))

  it.effect("is freed when they are no longer used, even right after fibers have waited for each other", () =>
    Effect.gen(function*() {
      const use = Effect.fnUntraced(function*(from: number, count: number) {
        for (let i = from; i < from + count; i++) {
          const lock = Mutex.withLock(`m ${i}`)(Effect.yieldNow)
          yield* Effect.all([lock, lock], { concurrency: 2 })
        }
        collect()
        return process.memoryUsage().heapUsed
      })
      const before = yield* use(0, 500)
      assert.isBelow((yield* use(500, 5000)) - before, 5000 * 200)
    }).pipe(Effect.provide(MemoryLive)))

  it.effect("does not contain timers after its waiters have given up on a request without a reply", () =>
    Effect.gen(function*() {
      const { parts: { timers } } = yield* Mutex.Mutex
      const { at } = timers
      const pending = new Set<() => void>()
      Object.assign(timers, {
        at: (monotonic: number, ring: () => void) => {
          const unset = at(monotonic, ring)
          pending.add(unset)
          return () => {
            pending.delete(unset)
            unset()
          }
        }
      })
      const faults = yield* Faults
      faults.acquire = "hang"
      const waiting = yield* Effect.forEach([1, 2, 3], () => start(Mutex.acquire("m")))
      assert.isAbove(pending.size, 1)
      yield* Fiber.interruptAll(waiting)
      assert.strictEqual(pending.size, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a fiber fails and does not wait if its layer closes during its request", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("m")
      const scope = yield* Scope.make()
      const us = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer()), scope)
      faults.acquire = { late: "1 second" }
      const asking = yield* start(Effect.flip(Effect.provide(Effect.scoped(Mutex.acquire("m")), us)))
      yield* TestClock.adjust("500 millis")
      yield* Scope.close(scope, Exit.void)
      const error = yield* Fiber.join(asking)
      assert.include(error.message, "closed")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("waiters", () => {
  it.effect("do not give up while the lease that they wait for is being renewed", () =>
    Effect.gen(function*() {
      const them = yield* Scope.make()
      yield* Scope.provide(Effect.provide(Mutex.acquire("m"), yield* another("them")), them)
      yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("1 second")
      yield* Scope.close(them, Exit.void)
      yield* settle
      const behind = yield* start(Effect.scoped(Mutex.acquire("m")))
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(behind.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("give up after the duration of their own lease, regardless of their position", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const wait = (ttl: number) =>
        start(Mutex.withLock("m", { ttl: ttl * 1000, transition: "3 seconds" })(Effect.void))
      const [long, short, middle] = [yield* wait(30), yield* wait(3), yield* wait(20)]
      yield* TestClock.adjust("1 second")
      // The waiters poll when the holder's lease should have ended, but get no reply
      faults.acquire = "hang"
      yield* TestClock.adjust(15_001 + 5999)
      assert.deepStrictEqual([long, short, middle].map((fiber) => fiber.pollUnsafe() === undefined), [true, true, true])
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([long, short, middle].map((fiber) => fiber.pollUnsafe() === undefined), [
        true,
        false,
        true
      ])
      yield* TestClock.adjust(17_000)
      assert.deepStrictEqual([long, middle].map((fiber) => fiber.pollUnsafe() === undefined), [true, false])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})
