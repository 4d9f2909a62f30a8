/** The fibers in a layer share a turn: they hand its lease from one to the next. */
import { type Lease, Mutex, MutexMetrics } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Fiber, Layer, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"
import { grows, hold, makeLine, ownerId, queue, settle } from "../support/waiters.ts"

describe("localTurn", () => {
  const long = { localTurn: "1 minute" } as const

  it.effect("hands the lease from fiber to fiber without requests until the turn ends, with a new token each time", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1000)
      const faults = yield* Faults
      const line = makeLine()
      const names = Array.from({ length: 12 }, (_, n) => `${n}`)
      for (const name of names) yield* line.wait(name)
      faults.calls.length = 0
      for (const name of names) {
        // By default, a turn takes 10 ms from the grant, not from the last hand-off
        yield* TestClock.adjust(4)
        yield* line.letGo(name)
      }
      assert.deepStrictEqual(line.served, names)
      grows(line.tokens)
      const runs = [0, 3, 6, 9].map((at) => line.tokens.slice(at, at + 3))
      for (const run of runs) assert.deepStrictEqual(run, [0, 1, 2].map((n) => run[0]! + n))
      assert.strictEqual(new Set(line.ids).size, 4)
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 4)
      // Each place also subscribes before it is queued
      assert.isAtMost(faults.calls.length, 4 + 3)
      assert.strictEqual(yield* ownerId, undefined)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.localHandOffs)).count, 8)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect("ends a turn when its stride of tokens has been used up", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1000)
      const faults = yield* Faults
      const line = makeLine(long)
      const names = Array.from({ length: 150 }, (_, n) => `${n}`)
      for (const name of names) yield* line.wait(name)
      faults.calls.length = 0
      for (const name of names) yield* line.letGo(name)
      assert.deepStrictEqual(line.served, names)
      assert.deepStrictEqual(line.tokens.slice(0, 100), Array.from({ length: 100 }, (_, n) => 1_000_100 + n))
      // A second grant in the same millisecond has no stride
      assert.deepStrictEqual(line.tokens.slice(100), Array.from({ length: 50 }, (_, n) => 1_000_201 + n))
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 51)
    }).pipe(Effect.provide(TestLive)))

  it.effect("other processes get their turns when the turn ends", () =>
    Effect.gen(function*() {
      const them = yield* another("them")
      const line = makeLine({ localTurn: 100 })
      for (let i = 0; i < 10; i++) yield* line.wait(`us ${i}`)
      for (let i = 0; i < 10; i++) yield* Effect.provide(line.wait(`them ${i}`), them)
      yield* settle
      for (let i = 0; i < 20; i++) {
        yield* TestClock.adjust(25)
        yield* line.letGo(line.served[i]!)
      }
      const turns = line.served.map((name) => name.startsWith("us") ? "u" : "t")
      assert.strictEqual(turns.join(""), "uuuuttttuuuuttttuutt")
      grows(line.tokens)
    }).pipe(Effect.provide(TestLive)))

  it.effect("limits each turn to one holder if it is zero", () =>
    Effect.gen(function*() {
      const them = yield* another("them")
      const line = makeLine({ localTurn: 0 })
      for (let i = 0; i < 4; i++) yield* line.wait(`us ${i}`)
      for (let i = 0; i < 4; i++) yield* Effect.provide(line.wait(`them ${i}`), them)
      yield* settle
      for (let i = 0; i < 8; i++) yield* line.letGo(line.served[i]!)
      assert.strictEqual(line.served.map((name) => name.startsWith("us") ? "u" : "t").join(""), "utututut")
      grows(line.tokens)
    }).pipe(Effect.provide(TestLive)))

  it.effect("ends with a long hold, because a renewed lease is not handed on", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const line = makeLine({ localTurn: "5 seconds" })
      for (const name of ["a", "b"]) yield* line.wait(name)
      yield* TestClock.adjust("10 seconds")
      assert.include(faults.calls, "guard 1")
      yield* line.letGo("a")
      assert.include(faults.calls, "release")
      assert.notStrictEqual(line.ids[0], line.ids[1])
      yield* line.letGo("b")
    }).pipe(Effect.provide(TestLive)))

  it.effect("defaults to the layer's option, and may be overridden by an acquire", () =>
    Effect.gen(function*() {
      const us = yield* Layer.build(Layer.fresh(Mutex.layer(long)))
      const faults = yield* Faults
      const line = makeLine()
      for (const name of ["a", "b"]) yield* Effect.provide(line.wait(name), us)
      yield* Effect.provide(line.wait("c", { localTurn: 0 }), us)
      yield* Effect.provide(line.wait("d"), us)
      faults.calls.length = 0
      yield* line.letGo("a")
      assert.notInclude(faults.calls, "release")
      // So that the next grant has a stride
      yield* TestClock.adjust(1)
      // Both the holder and the next waiter must allow the hand-off
      yield* line.letGo("b")
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 1)
      yield* line.letGo("c")
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 2)
      assert.deepStrictEqual(line.served, ["a", "b", "c", "d"])
      yield* line.letGo("d")
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "the next work begins only after the previous work and its finalizers have ended",
    () =>
      Effect.gen(function*() {
        const log: Array<string> = []
        const work = (name: string) =>
          Mutex.withLock("m", long)(
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
      }).pipe(Effect.provide(TestLive)),
    { tags: ["L4"] }
  )

  it.effect("the predecessor's lease is released", () =>
    Effect.gen(function*() {
      const holder = yield* hold(long)
      const lease = yield* holder.lease
      const line = makeLine()
      yield* line.wait("next")
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual([line.served, line.ids], [["next"], [lease.id]])
      assert.deepStrictEqual([yield* lease.isHeld, (yield* Effect.flip(lease.ensure)).reason._tag], [false, "Released"])
      yield* line.letGo("next")
    }).pipe(Effect.provide(TestLive)))

  it.effect("a hand-off does not extend the lease, which is still renewed in time", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold(long)
      const next = yield* hold(long)
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
    "a lease that was shortened by a suspension or a clock change stays so after a hand-off",
    () =>
      Effect.gen(function*() {
        const base = yield* Clock.Clock
        let step = 0
        const clock: Clock.Clock = { ...base, currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + step }
        yield* Effect.gen(function*() {
          const holder = yield* hold(long)
          const next = yield* hold(long)
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
          const other = yield* hold(long)
          const last = yield* hold(long)
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
    ["whose next holder has a different ttl", {}, { ttl: "11 seconds" }, 0],
    ["whose next holder has a different ttl and an equal lease", {}, { ttl: "11 seconds", transition: "5 seconds" }, 0],
    ["whose next holder has a different transition", {}, { transition: "7 seconds" }, 0]
  ] as const

  it.effect.each(through)(
    "a lease %s is released, not handed on",
    ([, switches, options, after]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        Object.assign(faults, switches)
        const holder = yield* hold(long)
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

  it.effect("each holder has its own maxHold, measured from the hand-off", () =>
    Effect.gen(function*() {
      const holder = yield* hold({ ...long, maxHold: "5 seconds" })
      const next = yield* hold({ ...long, maxHold: "4 seconds" })
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

  it.effect("a forced release ends the current holder's lease as a loss", () =>
    Effect.gen(function*() {
      const line = makeLine(long)
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

  it.effect("a waiter that is interrupted as it is served passes the lease on", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold(long)
      const line = makeLine(long)
      // The maximum number of fibers that continue in one slice. The next one continues in a later event loop turn.
      const atOnce = 32
      for (let i = 0; i < atOnce; i++) yield* start(Mutex.withLock("m", long)(Effect.void))
      const gone = yield* line.wait("gone")
      yield* line.wait("next")
      faults.calls.length = 0
      yield* holder.letGo
      gone.interruptUnsafe()
      yield* settle
      assert.deepStrictEqual(line.served, ["next"])
      assert.deepStrictEqual(line.tokens, [(yield* holder.lease).token + atOnce + 2])
      assert.deepStrictEqual(faults.calls, [])
      const exit = yield* Fiber.await(gone)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      yield* line.letGo("next")
      assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
    }).pipe(Effect.provide(TestLive)))

  it.effect("a waiter that is served as its layer closes loses the lease, and leaves nothing behind", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const us = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer(long)), scope)
      const line = makeLine()
      const served = yield* Effect.gen(function*() {
        const holder = yield* hold()
        // As above: the waiter behind them is served in a later event loop turn
        for (let i = 0; i < 32; i++) yield* start(Mutex.withLock("m")(Effect.void))
        for (const name of ["served", "next"]) yield* line.wait(name)
        yield* holder.letGo
        return line.served.length
      }).pipe(Effect.provide(us))
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.deepStrictEqual([served, line.served], [0, []])
      assert.deepStrictEqual(line.failed, [["served", "LeaseLost"], ["next", "BackendError"]])
      assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
    }).pipe(Effect.provide(TestLive)))

  it.effect("ten thousand waiters do not overflow the stack", () =>
    Effect.gen(function*() {
      let served = 0
      const holder = yield* hold(long)
      const work = Mutex.withLock("m", long)(Effect.sync(() => served++))
      const fibers = yield* Effect.forEach(Array.from({ length: 10_000 }), () => start(work))
      yield* holder.letGo
      yield* Fiber.joinAll(fibers)
      assert.strictEqual(served, 10_000)
      assert.isAtLeast((yield* Metric.value(MutexMetrics.mutex.localHandOffs)).count, 98)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))

  it.effect.each([-1, "forever" as never, Infinity])("%s is refused", (localTurn) =>
    Effect.gen(function*() {
      const errors = [
        yield* Effect.flip(MutexConfig.make({ localTurn })),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("m", { localTurn })))
      ]
      for (const error of errors) assert.deepInclude(error, { _tag: "InvalidConfig", option: "localTurn" })
    }).pipe(Effect.provide(TestLive)))
})
