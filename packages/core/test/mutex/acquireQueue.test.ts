import { type Lease, Mutex, MutexConfig, MutexMetrics, type SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Layer, Metric, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

/** Lets every fiber run that can, without moving the clock. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 3 })

const queue = Effect.map(Effect.flatMap(Mutex.Mutex, (mutex) => mutex.inspect("m")), ({ waiting }) => waiting)

const ownerId = Effect.map(Mutex.owner("m"), (owner) => owner._tag === "Held" ? owner.owner : undefined)

/** Holds the mutex until told to let go. */
const hold = Effect.fnUntraced(function*(options?: Mutex.AcquireOptions) {
  const scope = yield* Scope.make()
  const fiber = yield* start(Scope.provide(Mutex.acquire("m", options), scope))
  return { fiber, lease: Fiber.join(fiber), letGo: Scope.close(scope, Exit.void) }
})

/** Waits in line, and holds the mutex until told to let go; says in which order it was served. */
const makeLine = (options?: Mutex.AcquireOptions) => {
  const served: Array<string> = []
  const tokens: Array<number> = []
  const ids: Array<string> = []
  const left: Array<number> = []
  const failed: Array<readonly [string, string]> = []
  const gates = new Map<string, Deferred.Deferred<void>>()
  const wait = (name: string, own?: Mutex.AcquireOptions) =>
    Effect.suspend(() => {
      const gate = Deferred.makeUnsafe<void>()
      gates.set(name, gate)
      return start(
        Mutex.withLock("m", { ...options, ...own })((lease) =>
          Effect.flatMap(timeLeft(lease), (millis) => {
            served.push(name)
            tokens.push(lease.token)
            ids.push(lease.id)
            left.push(millis)
            return Deferred.await(gate)
          })
        ).pipe(Effect.tapError((error) => Effect.sync(() => failed.push([name, error._tag]))), Effect.exit)
      )
    })
  const letGo = (name: string) => Effect.andThen(Deferred.succeed(gates.get(name)!, undefined), settle)
  return { served, tokens, ids, left, failed, wait, letGo }
}

const grows = (tokens: ReadonlyArray<number>) => {
  for (let i = 1; i < tokens.length; i++) assert.isAbove(tokens[i]!, tokens[i - 1]!)
}

describe("one place in the queue for all waiters of a layer", () => {
  it.effect("a thousand waiters behind a holder cost one subscription, and nothing else", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold()
      const waiters = yield* Effect.forEach(Array.from({ length: 1000 }), () => start(Mutex.acquire("m")))
      yield* settle
      assert.deepStrictEqual(faults.calls, ["acquire try", "subscribe"])
      assert.strictEqual(yield* queue, 0)
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(faults.calls.slice(2).every((call) => call === "guard 1"))
      yield* Fiber.interruptAll(waiters)
      yield* holder.letGo
      assert.strictEqual(yield* ownerId, undefined)
      assert.strictEqual(yield* queue, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("after a stall, waiters that find the lease of a sibling over share one place", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const faults = yield* Faults
        yield* Mutex.acquire("m")
        faults.acquire = "hang"
        faults.calls.length = 0
        // No timer has noticed yet: the first to ask does
        stall.millis = 20_000
        for (let i = 0; i < 3; i++) yield* start(Mutex.acquire("m", i === 1 ? undefined : { timeout: "1 minute" }))
        yield* settle
        assert.deepStrictEqual(faults.calls.filter((call) => call.startsWith("acquire")), ["acquire try"])
        assert.deepStrictEqual(yield* Mutex.tryAcquire("m"), Option.none())
        faults.acquire = "work"
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("a mutex that was not free is waited for at once, a free one is tried first", () =>
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
      // It may still be as busy as it was, and is found to be free
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
      assert.deepStrictEqual(faults.calls, ["acquire try", "subscribe", "acquire wait"])
      assert.strictEqual(yield* queue, 1)
      yield* holder.letGo
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "first come, first served within the place; a hand-over is one release, asked in advance to be heard",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const line = makeLine()
        const names = Array.from({ length: 20 }, (_, n) => `${n}`)
        for (const name of names) yield* line.wait(name)
        yield* settle
        faults.calls.length = 0
        for (const name of names) yield* line.letGo(name)
        assert.deepStrictEqual(line.served, names)
        grows(line.tokens)
        assert.strictEqual(new Set(line.ids).size, names.length, "each turn has a wire id of its own")
        const [releases, subscriptions] = ["release", "subscribe"].map((call) =>
          faults.calls.filter((other) => other === call).length
        )
        assert.deepStrictEqual([releases, subscriptions, faults.calls.length], [20, 18, 38])
        assert.strictEqual(yield* ownerId, undefined)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect(
    "the first, who asked by itself and was refused, is served before those who came meanwhile",
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
    "a place that has had its turn goes behind the others, so two layers with lines alternate",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const them = yield* another("them")
        const line = makeLine()
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
        assert.deepStrictEqual(requests, [12, 11], "each hand-off is a release and a confirmation, and nobody looks")
        assert.deepStrictEqual(line.served, Array.from({ length: 6 }, (_, i) => [`us ${i}`, `them ${i}`]).flat())
        grows(line.tokens)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H1"] }
  )

  it.effect(
    "who is queued by a release before it can be heard looks once it can, and then sleeps",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const them = yield* another("them")
        const line = makeLine()
        yield* line.wait("us 0")
        yield* Effect.provide(line.wait("them"), them)
        faults.subscribe = { late: "1 second" }
        yield* line.wait("us 1")
        yield* settle
        faults.calls.length = 0
        yield* line.letGo("us 0")
        assert.deepStrictEqual(line.served, ["us 0", "them"])
        // Handed over to nobody: the place of ours is not heard yet, and found dead
        yield* TestClock.adjust("500 millis")
        yield* line.letGo("them")
        assert.deepStrictEqual(line.served, ["us 0", "them"])
        assert.notInclude(faults.calls.slice(1), "acquire try")
        yield* TestClock.adjust("500 millis")
        yield* settle
        assert.deepStrictEqual(line.served, ["us 0", "them", "us 1"])
        yield* line.letGo("us 1")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["H4"] }
  )

  it.effect("tryAcquire answers without a request while a sibling holds the mutex or waits for it", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold()
      assert.isTrue(Option.isNone(yield* Mutex.tryAcquire("m")))
      assert.isTrue(Option.isNone(yield* Mutex.withLockIfAvailable("m")(Effect.void)))
      assert.deepStrictEqual(faults.calls, ["acquire try"])
      yield* holder.letGo
      yield* Effect.scoped(Effect.gen(function*() {
        assert.isTrue(Option.isSome(yield* Mutex.tryAcquire("m")))
        const waiter = yield* start(Mutex.acquire("m", { timeout: "1 second" }))
        faults.calls.length = 0
        assert.isTrue(Option.isNone(yield* Mutex.tryAcquire("m")))
        assert.deepStrictEqual(faults.calls, [])
        yield* Fiber.interrupt(waiter)
      }))
      assert.strictEqual(yield* ownerId, undefined)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a waiter that comes during a sibling's tryAcquire is served after it, or instead", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const end of ["granted", "interrupted"] as const) {
        faults.acquire = { late: "100 millis" }
        faults.calls.length = 0
        const scope = yield* Scope.make()
        const trying = yield* start(Scope.provide(Mutex.tryAcquire("m"), scope))
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

  it.effect("an unfair waiter asks by itself", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* hold()
      yield* start(Mutex.acquire("m", { unfair: true }))
      assert.deepStrictEqual(faults.calls, ["acquire try", "acquire try", "subscribe", "acquire wait"])
      yield* holder.letGo
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("contenders of one layer share the place, too", () =>
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

  it.effect("each waiter has the lease that it asked for", () =>
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

describe("a waiter that leaves", () => {
  const cases = [
    ["behind a holder of this layer", Effect.map(hold(), (holder) => ({ ...holder, them: undefined }))],
    [
      "behind one of another",
      Effect.gen(function*() {
        const them = yield* another("them")
        return { ...(yield* Effect.provide(hold(), them)), them }
      })
    ]
  ] as const

  it.effect.each(cases)(
    "%s: the others keep their order, whoever leaves, and the last leaves nothing behind",
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

  it.effect("times out in the queue, and names the owner", () =>
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

  it.effect("while the release that queues it is under way", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const rest of [[], ["next"]]) {
        const holder = yield* hold()
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
        for (const millis of line.left) assert.isAbove(millis, 20_000, "its own lease, not that of the one before it")
        for (const name of rest) yield* line.letGo(name)
        assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
      }
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("while the answer that grants it is on the way", () =>
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
        for (const millis of line.left) assert.isAbove(millis, 20_000, "its own lease, not that of the one before it")
        faults.acquire = "work"
        for (const name of rest) yield* line.letGo(name)
        assert.deepStrictEqual([yield* ownerId, yield* queue], [undefined, 0])
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)), { tags: ["H7"] })

  it.effect("gauges and outcomes are right for waiters of one place", () =>
    Effect.gen(function*() {
      const holder = yield* hold()
      const line = makeLine()
      const leaving = yield* line.wait("leaving")
      yield* line.wait("timing", { timeout: "1 second" })
      yield* line.wait("served")
      const gauges = Effect.all([Metric.value(MutexMetrics.waiters), Metric.value(MutexMetrics.held)])
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [3, 1])
      yield* Fiber.interrupt(leaving)
      yield* TestClock.adjust("2 seconds")
      yield* holder.letGo
      yield* settle
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [0, 1])
      yield* line.letGo("served")
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [0, 0])
      const { count, max, min } = yield* Metric.value(MutexMetrics.waitTime)
      assert.deepStrictEqual([count, min, max], [3, 0, 2000])
      for (const [outcome, times] of [["granted", 2], ["interrupted", 1], ["timeout", 1], ["refused", 0]] as const) {
        assert.strictEqual((yield* Metric.value(MutexMetrics.attempts[outcome])).count, times, outcome)
      }
      assert.strictEqual((yield* Metric.value(MutexMetrics.handOffs)).count, 1)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("waiters of one place when things go wrong", () => {
  const outcomes = [
    ["is refused for the moment", "fail", "work"],
    ["is never answered", "hang", "work"],
    ["comes through, and the answer is lost", { late: "1 minute" }, "work"]
  ] as const

  it.effect.each(outcomes)(
    "a release that %s: the next is served all the same, once",
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
        // What never reached the backend is not sent again for longer than releaseTimeout: then the lease has to end
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

  it.effect("a lost lease: the waiters go on when the mutex is free again", () =>
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

  it.effect("an outage: each waiter gives up by itself, after what its lease would last", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const period = { ttl: "5 minutes", transition: "1 minute" } as const
      const holder = yield* Effect.provide(hold(period), yield* another("them"))
      const line = makeLine()
      yield* line.wait("short", { ttl: "2 seconds" })
      yield* line.wait("long", { ttl: "40 seconds" })
      yield* settle
      faults.acquire = "fail"
      // Nobody has to ask before the lease that is known of could have ended
      yield* TestClock.adjust("6 minutes")
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

  it.effect("an outage: waiters give up by their own lease, not by the one in front", () =>
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
      assert.notInclude(faults.calls, "subscribe")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(line.served, ["asks"])
      // What was seen of an outage that has passed does not count
      faults.acquire = "fail"
      yield* line.letGo("asks")
      yield* TestClock.adjust("15 seconds")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(line.served, ["asks", "late"])
      yield* line.letGo("late")
    }).pipe(Effect.provide(TestLive)))

  it.effect("an outage: a waiter and those that came with it give up together", () =>
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

  it.effect("a permanent refusal fails one waiter, and the next asks by itself", () =>
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

  it.effect("closing the layer: waiters fail, and leave nothing behind", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const them = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer({ contender: "them" })), scope)
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
      assert.deepStrictEqual([yield* lease.isHeld, (yield* Effect.flip(lease.ensure)).reason], [false, "Released"])
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
