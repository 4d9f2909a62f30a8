/** Waiters that share one place while others leave, leases are lost, or the backend fails. */
import { Mutex, MutexMetrics, type SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive } from "../support/setup.ts"
import { hold, makeLine, ownerId, queue, settle } from "../support/waiters.ts"

describe("a waiter that leaves", () => {
  const cases = [
    ["behind a holder in this layer", Effect.map(hold(), (holder) => ({ ...holder, them: undefined }))],
    [
      "behind a holder in another layer",
      Effect.gen(function*() {
        const them = yield* another("them")
        return { ...(yield* Effect.provide(hold(), them)), them }
      })
    ]
  ] as const

  it.effect.each(cases)(
    "%s: the others keep their order, and the queue is empty once the last one has left",
    ([, held]) =>
      Effect.gen(function*() {
        for (const leaving of [["a"], ["b"], ["c"], ["a", "b"], ["b", "c"], ["a", "c"], ["a", "b", "c"]]) {
          const holder = yield* held
          const line = makeLine()
          const fibers = new Map<string, Fiber.Fiber<unknown, unknown>>()
          for (const name of ["a", "b", "c"]) fibers.set(name, yield* line.wait(name))
          yield* settle
          for (const name of leaving) {
            yield* Fiber.interrupt(fibers.get(name)!)
            yield* settle
          }
          yield* holder.letGo
          yield* settle
          const staying = ["a", "b", "c"].filter((name) => !leaving.includes(name))
          for (const name of staying) yield* line.letGo(name)
          assert.deepStrictEqual(line.served, staying)
          assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
        }
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("times out in the queue with an error that names the owner", () =>
    Effect.gen(function*() {
      const holder = yield* hold()
      const lease = yield* holder.lease
      const errors: Array<SimbaError.AcquireTimeout> = []
      const timing = yield* Effect.forEach([3, 1, 2], (seconds) =>
        start(
          Mutex.withLock("m", { timeout: `${seconds} seconds` })(Effect.void).pipe(
            Effect.catchTag("AcquireTimeout", (error) => Effect.sync(() => errors.push(error)))
          )
        ))
      const line = makeLine()
      yield* line.wait("patient")
      for (let i = 1; i <= 3; i++) {
        yield* TestClock.adjust("999 millis")
        assert.strictEqual(errors.length, i - 1)
        yield* TestClock.adjust("1 millis")
        assert.strictEqual(errors.length, i)
      }
      yield* Fiber.joinAll(timing)
      for (const error of errors) {
        assert.strictEqual(error.owner, lease.id)
      }
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual(line.served, ["patient"])
      yield* line.letGo("patient")
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("makes way for the next waiter while a release is queueing its place", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const rest of [[], ["next"]]) {
        const holder = yield* hold({ localTurn: 0 })
        const line = makeLine()
        const leaving = yield* line.wait("leaving")
        for (const name of rest) yield* line.wait(name, { ttl: "20 seconds" })
        yield* settle
        faults.release = { late: "200 millis" }
        const letting = yield* start(holder.letGo)
        yield* TestClock.adjust("100 millis")
        yield* Fiber.interrupt(leaving)
        faults.release = "work"
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(letting)
        assert.deepStrictEqual(line.served, rest)
        for (const millis of line.left) assert.isAbove(millis, 20_000, "its own lease, not its predecessor's")
        for (const name of rest) yield* line.letGo(name)
        assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
      }
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("makes way for the next waiter if its grant is in flight", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const rest of [[], ["next"]]) {
        const holder = yield* Effect.provide(hold(), yield* another("them"))
        const line = makeLine()
        const leaving = yield* line.wait("leaving")
        for (const name of rest) yield* line.wait(name, { ttl: "20 seconds" })
        yield* settle
        faults.acquire = { late: "200 millis" }
        yield* holder.letGo
        yield* TestClock.adjust("100 millis")
        yield* Fiber.interrupt(leaving)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(line.served, rest)
        for (const millis of line.left) assert.isAbove(millis, 20_000, "its own lease, not its predecessor's")
        faults.acquire = "work"
        for (const name of rest) yield* line.letGo(name)
        assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("waiters in one place are counted individually, by gauges and by outcome", () =>
    Effect.gen(function*() {
      const holder = yield* hold()
      const line = makeLine()
      const leaving = yield* line.wait("leaving")
      yield* line.wait("timing", { timeout: "1 second" })
      yield* line.wait("served")
      const gauges = Effect.all([Metric.value(MutexMetrics.mutex.waiters), Metric.value(MutexMetrics.mutex.held)])
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [3, 1])
      yield* Fiber.interrupt(leaving)
      yield* TestClock.adjust("2 seconds")
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [0, 1])
      yield* line.letGo("served")
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [0, 0])
      const { count, max, min } = yield* Metric.value(MutexMetrics.mutex.waitTime)
      assert.deepStrictEqual([count, min, max], [3, 0, 2000])
      for (const [outcome, times] of [["granted", 2], ["interrupted", 1], ["timeout", 1], ["refused", 0]] as const) {
        assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.attempts[outcome])).count, times, outcome)
      }
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.handOffs)).count, 1)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("waiters in one place when something fails", () => {
  const outcomes = [
    ["fails temporarily", "fail", "work"],
    ["gets no reply", "hang", "work"],
    ["is executed, but its reply is late", { late: "1 minute" }, "work"]
  ] as const

  it.effect.each(outcomes)(
    "the next waiter is served once if a release %s",
    ([, mode]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const holder = yield* hold()
        const lease = yield* holder.lease
        const line = makeLine()
        for (const name of ["a", "b"]) yield* line.wait(name)
        yield* settle
        faults.release = mode
        const letting = yield* start(holder.letGo)
        yield* settle
        faults.release = "work"
        // A hanging release is retried for at most releaseTimeout, so the lease has to expire
        yield* TestClock.adjust(mode === "hang" ? "20 seconds" : "5 seconds")
        yield* Fiber.join(letting)
        assert.deepStrictEqual(line.served, ["a"])
        assert.isAbove(line.tokens[0]!, lease.token)
        yield* line.letGo("a")
        assert.deepStrictEqual(line.served, ["a", "b"])
        yield* line.letGo("b")
        assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
      }).pipe(Effect.provide(TestLive))
  )

  it.effect("waiters get the mutex after a loss, once it is free again", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      const lease = yield* Mutex.acquire("m")
      const line = makeLine()
      for (const name of ["a", "b"]) yield* line.wait(name)
      yield* TestClock.adjust("15199 millis")
      assert.deepStrictEqual([yield* lease.isHeld, line.served.length], [true, 0])
      yield* TestClock.adjust("1 millis")
      assert.isFalse(yield* lease.isHeld)
      assert.strictEqual(yield* queue, 1)
      yield* TestClock.adjust("800 millis")
      assert.deepStrictEqual(line.served, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(line.served, ["a"])
      assert.isAbove(line.tokens[0]!, lease.token)
      yield* line.letGo("a")
      assert.deepStrictEqual(line.served, ["a", "b"])
      yield* line.letGo("b")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("in an outage, each waiter gives up after the duration of its own lease", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* Effect.provide(hold(), yield* another("them"))
      const line = makeLine()
      yield* line.wait("short", { ttl: "2 seconds" })
      yield* line.wait("long", { ttl: "40 seconds" })
      yield* settle
      faults.acquire = "fail"
      // No waiter polls before the last known lease could have ended
      yield* TestClock.adjust("16 seconds")
      const failedAfter = Effect.fnUntraced(function*(millis: number) {
        yield* TestClock.adjust(millis)
        return line.failed.map(([name]) => name)
      })
      assert.deepStrictEqual(yield* failedAfter(5001), [])
      yield* line.wait("late", { ttl: "10 seconds" })
      assert.deepStrictEqual(yield* failedAfter(2900), [])
      assert.deepStrictEqual(yield* failedAfter(1500), ["short"])
      assert.deepStrictEqual(yield* failedAfter(11_500), ["short"])
      assert.deepStrictEqual(yield* failedAfter(1500), ["short", "late"])
      assert.deepStrictEqual(yield* failedAfter(23_500), ["short", "late"])
      assert.deepStrictEqual(yield* failedAfter(2000), ["short", "late", "long"])
      for (const [, error] of line.failed) assert.strictEqual(error, "BackendError")
      faults.acquire = "work"
      yield* line.wait("after")
      yield* holder.letGo
      yield* settle
      assert.include(line.served, "after")
      yield* line.letGo("after")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("in an outage, each waiter gives up at its own time, regardless of the lease options of the waiter in front", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = "fail"
      const line = makeLine()
      yield* line.wait("asks", { ttl: "1 hour", transition: "10 minutes" })
      yield* line.wait("short", { ttl: "2 seconds" })
      yield* line.wait("usual")
      yield* TestClock.adjust("7900 millis")
      assert.deepStrictEqual(line.failed, [])
      yield* TestClock.adjust("1500 millis")
      assert.deepStrictEqual(line.failed, [["short", "BackendError"]])
      yield* line.wait("late")
      yield* TestClock.adjust("6500 millis")
      assert.deepStrictEqual(line.failed, [["short", "BackendError"]])
      yield* TestClock.adjust("1500 millis")
      assert.deepStrictEqual(line.failed, [["short", "BackendError"], ["usual", "BackendError"]])
      assert.notInclude(faults.calls, "listen")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(line.served, ["asks"])
      // A past outage does not count
      faults.acquire = "fail"
      yield* line.letGo("asks")
      yield* TestClock.adjust("15 seconds")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(line.served, ["asks", "late"])
      yield* line.letGo("late")
    }).pipe(Effect.provide(TestLive)))

  it.effect("in an outage, waiters that arrived together give up together", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = "fail"
      const line = makeLine()
      for (const name of ["asks", "waits"]) yield* line.wait(name)
      yield* TestClock.adjust("15900 millis")
      assert.deepStrictEqual(line.failed, [])
      yield* TestClock.adjust("1500 millis")
      assert.sameDeepMembers(line.failed, [["asks", "BackendError"], ["waits", "BackendError"]])
    }).pipe(Effect.provide(TestLive)))

  it.effect("a permanent refusal fails only one waiter, and the next one sends its own request", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* Effect.provide(hold(), yield* another("them"))
      const line = makeLine()
      for (const name of ["a", "b", "c"]) yield* line.wait(name)
      yield* settle
      faults.refusals = 2
      yield* TestClock.adjust("1 minute")
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual(line.failed, [["a", "BackendError"], ["b", "BackendError"]])
      assert.deepStrictEqual(line.served, ["c"])
      yield* line.letGo("c")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("when the layer closes, waiters fail and leave nothing behind", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const them = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer({ processName: "them" })), scope)
      const holder = yield* hold()
      const line = makeLine()
      for (const name of ["a", "b"]) yield* Effect.provide(line.wait(name), them)
      yield* settle
      assert.strictEqual(yield* queue, 1)
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.deepStrictEqual(line.failed, [["a", "BackendError"], ["b", "BackendError"]])
      assert.strictEqual(yield* queue, 0)
      yield* holder.letGo
    }).pipe(Effect.provide(TestLive)))
})
