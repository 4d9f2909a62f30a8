/** A lease that is handed on within its layer. */
import { type Lease, Mutex, MutexMetrics } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Metric } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"
import { grows, hold, makeLine, ownerId, queue, settle } from "../support/waiters.ts"

describe("maxLocalHandOffs", () => {
  const bound = 3

  it.effect("hands the lease from fiber to fiber without a request, up to the bound, with tokens of their own", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const line = makeLine({ maxLocalHandOffs: bound })
      const names = Array.from({ length: 12 }, (_, n) => `${n}`)
      for (const name of names) yield* line.wait(name)
      faults.calls.length = 0
      for (const name of names) yield* line.letGo(name)
      assert.deepStrictEqual(line.served, names)
      grows(line.tokens)
      const runs = [0, 4, 8].map((at) => line.tokens.slice(at, at + 4))
      for (const run of runs) assert.deepStrictEqual(run, [0, 1, 2, 3].map((n) => run[0]! + n))
      assert.strictEqual(new Set(line.ids).size, 3)
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 3)
      assert.isAtMost(faults.calls.length, 5)
      assert.strictEqual(yield* ownerId, undefined)
    }).pipe(Effect.provide(TestLive)))

  it.effect("tokens that nobody had are given back, so that they do not run ahead of the clock", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1000)
      const locked = (options: Mutex.AcquireOptions) =>
        Mutex.withLock("m", options)((lease) => Effect.succeed(lease.token))
      const many = { maxLocalHandOffs: 10_000 }
      const tokens: Array<number> = []
      for (let i = 0; i < 5; i++) tokens.push(yield* locked({ ...many, unfair: i % 2 === 1 }))
      const line = makeLine(many)
      for (const name of ["a", "b"]) yield* line.wait(name)
      yield* line.wait("c", { maxLocalHandOffs: 0 })
      for (const name of ["a", "b", "c"]) yield* line.letGo(name)
      tokens.push(...line.tokens, yield* locked({}))
      assert.deepStrictEqual(tokens, Array.from({ length: 9 }, (_, n) => 1_000_000 + n))
    }).pipe(Effect.provide(TestLive)))

  it.effect("other processes have their turn after the bound", () =>
    Effect.gen(function*() {
      const them = yield* another("them")
      const line = makeLine({ maxLocalHandOffs: bound })
      for (let i = 0; i < 10; i++) yield* line.wait(`us ${i}`)
      for (let i = 0; i < 10; i++) yield* Effect.provide(line.wait(`them ${i}`), them)
      yield* settle
      for (let i = 0; i < 20; i++) yield* line.letGo(line.served[i]!)
      const turns = line.served.map((name) => name.split(" ")[0]).join(" ").replaceAll("us", "u").replaceAll(
        "them",
        "t"
      )
      assert.strictEqual(turns.replaceAll(" ", ""), "uuuuttttuuuuttttuutt")
      grows(line.tokens)
    }).pipe(Effect.provide(TestLive)))

  it.effect("the layer's own is the default, and an acquire may have another", () =>
    Effect.gen(function*() {
      const us = yield* Layer.build(Layer.fresh(Mutex.layer({ maxLocalHandOffs: bound })))
      const faults = yield* Faults
      const line = makeLine()
      for (const name of ["a", "b"]) yield* Effect.provide(line.wait(name), us)
      yield* Effect.provide(line.wait("c", { maxLocalHandOffs: 0 }), us)
      yield* Effect.provide(line.wait("d"), us)
      faults.calls.length = 0
      for (const name of ["a", "b"]) yield* line.letGo(name)
      assert.notInclude(faults.calls, "release")
      yield* line.letGo("c")
      assert.include(faults.calls, "release")
      assert.deepStrictEqual(line.served, ["a", "b", "c", "d"])
      yield* line.letGo("d")
    }).pipe(Effect.provide(TestLive)))

  it.effect("the next begins after the work before it has ended, finalizers included", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const work = (name: string) =>
        Mutex.withLock("m", { maxLocalHandOffs: bound })(
          Effect.onExit(Effect.sync(() => log.push(`${name} works`)), () =>
            Effect.andThen(
              Effect.sleep("1 second"),
              Effect.sync(() => log.push(`${name} ends`))
            ))
        )
      const fibers = yield* Effect.forEach(["a", "b", "c"], (name) => start(work(name)))
      yield* TestClock.adjust("2999 millis")
      assert.deepStrictEqual(log, ["a works", "a ends", "b works", "b ends", "c works"])
      yield* TestClock.adjust("1 second")
      yield* Fiber.joinAll(fibers)
    }).pipe(Effect.provide(TestLive)), { tags: ["L4"] })

  it.effect("the predecessor's lease is released", () =>
    Effect.gen(function*() {
      const holder = yield* hold({ maxLocalHandOffs: bound })
      const lease = yield* holder.lease
      const line = makeLine()
      yield* line.wait("next")
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual([line.served, line.ids], [["next"], [lease.id]])
      assert.deepStrictEqual([yield* lease.isHeld, (yield* Effect.flip(lease.ensure)).reason._tag], [false, "Released"])
      yield* line.letGo("next")
    }).pipe(Effect.provide(TestLive)))

  it.effect("the lease goes on as it is: it ends no later, and is renewed in time", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold({ maxLocalHandOffs: bound })
      const next = yield* hold()
      yield* TestClock.adjust("9 seconds")
      yield* holder.letGo
      yield* settle
      const lease = yield* next.lease
      assert.deepStrictEqual(yield* timeLeft(lease), 16_000 - 800 - 9000)
      faults.calls.length = 0
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(faults.calls, ["guard 1"])
      assert.deepStrictEqual(yield* timeLeft(lease), 16_000 - 800)
      yield* next.letGo
    }).pipe(Effect.provide(TestLive)), { tags: ["L1"] })

  it.effect(
    "what the clocks have taken from the lease stays taken: a wall clock set back, then a suspension",
    () =>
      Effect.gen(function*() {
        const base = yield* Clock.Clock
        let step = 0
        const clock: Clock.Clock = { ...base, currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + step }
        yield* Effect.gen(function*() {
          const holder = yield* hold({ maxLocalHandOffs: bound })
          const next = yield* hold({ maxLocalHandOffs: bound })
          step = 5000
          yield* TestClock.adjust("1 second")
          step -= 60_000
          yield* TestClock.adjust("1 second")
          yield* holder.letGo
          yield* settle
          const lease = yield* next.lease
          assert.strictEqual(lease.id, (yield* holder.lease).id)
          assert.strictEqual(yield* timeLeft(lease), 16_000 - 800 - 2000 - 5000)
          yield* next.letGo
          const other = yield* hold({ maxLocalHandOffs: bound })
          const last = yield* hold({ maxLocalHandOffs: bound })
          step -= 60_000
          yield* TestClock.adjust("1 second")
          yield* other.letGo
          yield* settle
          step += 20_000
          assert.isFalse(yield* (yield* last.lease).isHeld)
        }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
      }),
    { tags: ["L1"] }
  )

  const through = [
    ["that is due for renewal", { guard: "fail" }, {}, "12 seconds"],
    ["that the next one wants with another ttl", {}, { ttl: "11 seconds" }, 0],
    ["that the next one wants with another transition", {}, { transition: "7 seconds" }, 0]
  ] as const

  it.effect.each(through)(
    "a lease %s goes through the backend",
    ([, switches, options, after]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        Object.assign(faults, switches)
        const holder = yield* hold({ maxLocalHandOffs: bound })
        const line = makeLine()
        yield* line.wait("next", options)
        yield* TestClock.adjust(after)
        faults.calls.length = 0
        yield* holder.letGo
        yield* settle
        assert.deepStrictEqual(line.served, ["next"])
        assert.include(faults.calls, "release")
        assert.notStrictEqual(line.ids[0], (yield* holder.lease).id)
        yield* line.letGo("next")
      }).pipe(Effect.provide(TestLive))
  )

  it.effect("maxHold counts from the hand-over", () =>
    Effect.gen(function*() {
      const options = { maxLocalHandOffs: bound, maxHold: "4 seconds" } as const
      const holder = yield* hold(options)
      const next = yield* hold(options)
      yield* TestClock.adjust("3 seconds")
      yield* holder.letGo
      yield* settle
      const lease: Lease.Lease = yield* next.lease
      assert.strictEqual(lease.id, (yield* holder.lease).id)
      yield* TestClock.adjust("3999 millis")
      assert.isTrue(yield* lease.isHeld)
      yield* TestClock.adjust("1 millis")
      assert.isFalse(yield* lease.isHeld)
      yield* next.letGo
      assert.strictEqual(yield* ownerId, undefined)
    }).pipe(Effect.provide(TestLive)))

  it.effect("a lease that was taken away is lost for its present holder", () =>
    Effect.gen(function*() {
      const line = makeLine({ maxLocalHandOffs: bound })
      for (const name of ["a", "b", "c"]) yield* line.wait(name)
      yield* line.letGo("a")
      yield* Effect.flatMap(Mutex.Mutex, (mutex) => mutex.forceRelease("m"))
      yield* settle
      assert.deepStrictEqual(line.failed, [["b", "LeaseLost"]])
      assert.deepStrictEqual(line.served, ["a", "b", "c"])
      assert.notStrictEqual(line.ids[2], line.ids[1])
      grows(line.tokens)
      yield* line.letGo("c")
    }).pipe(Effect.provide(TestLive)))

  it.effect("a waiter that is interrupted when it is served passes the lease on", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold({ maxLocalHandOffs: 64 })
      const line = makeLine({ maxLocalHandOffs: 64 })
      // So many go on in a row; whoever comes after them is granted the mutex, and goes on when others have had a turn
      const atOnce = 32
      for (let i = 0; i < atOnce; i++) yield* start(Mutex.withLock("m", { maxLocalHandOffs: 64 })(Effect.void))
      const gone = yield* line.wait("gone")
      yield* line.wait("next")
      faults.calls.length = 0
      yield* holder.letGo
      gone.interruptUnsafe()
      yield* settle
      assert.deepStrictEqual(line.served, ["next"])
      assert.deepStrictEqual(line.tokens, [(yield* holder.lease).token + atOnce + 2])
      assert.deepStrictEqual(faults.calls, [])
      yield* line.letGo("next")
      assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
    }).pipe(Effect.provide(TestLive)))

  it.effect("ten thousand waiters do not overflow the stack", () =>
    Effect.gen(function*() {
      let served = 0
      const holder = yield* hold({ maxLocalHandOffs: 10_000 })
      const work = Mutex.withLock("m", { maxLocalHandOffs: 10_000 })(Effect.sync(() => served++))
      const fibers = yield* Effect.forEach(Array.from({ length: 10_000 }), () => start(work))
      yield* holder.letGo
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(served, 10_000)
      assert.strictEqual((yield* Metric.value(MutexMetrics.localHandOffs)).count, 10_000)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect.each([-1, 0.5, 10_001, NaN])("%s is refused", (maxLocalHandOffs) =>
    Effect.gen(function*() {
      const errors = [
        yield* Effect.flip(MutexConfig.make({ maxLocalHandOffs })),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("m", { maxLocalHandOffs })))
      ]
      for (const error of errors) assert.deepInclude(error, { _tag: "InvalidConfig", option: "maxLocalHandOffs" })
    }).pipe(Effect.provide(TestLive)))
})
