import { type Lease, Mutex, MutexMetrics, type MutexSchedule, SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, Metric, Schedule, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import { Faults } from "../support/faultyStore.ts"
import { calls, Hands, HandsLive } from "../support/hands.ts"
import { start, TestLive, timeLeft } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

/** Runs the effect with its own metric registry. */
const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

const count = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), (state) => state.count)

const acquireMany = (total: number) =>
  Effect.forEach(Array.from({ length: total }, (_, i) => `m${i}`), (name) => Mutex.acquire(name))

const guards = Effect.map(Faults, ({ calls }) => calls.filter((call) => call.startsWith("guard")))

describe("renewing many leases", () => {
  it.effect("renews at most 500 leases per call", () =>
    Effect.gen(function*() {
      const leases = yield* acquireMany(1050)
      yield* TestClock.adjust("35 seconds")
      for (const lease of leases) assert.isTrue(yield* lease.isHeld)
      const calls = ["guard 500", "guard 500", "guard 50"]
      assert.deepStrictEqual(yield* guards, [...calls, ...calls, ...calls])
      assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.renewed), 3 * 1050)
      const left = yield* Metric.value(MutexMetrics.mutex.timeLeftAtRenewal)
      assert.deepInclude(left, { count: 3 * 3, min: left.max })
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("renews leases that are due soon immediately after a full batch", () =>
    Effect.gen(function*() {
      yield* acquireMany(600)
      yield* TestClock.adjust("500 millis")
      yield* Effect.forEach(Array.from({ length: 600 }, (_, i) => `later${i}`), (name) => Mutex.acquire(name))
      yield* TestClock.adjust("9500 millis")
      assert.deepStrictEqual(yield* guards, ["guard 500", "guard 500", "guard 200"])
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual((yield* guards).length, 3)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("renews two turns earlier while timers are late, and at the usual time once they are punctual again", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        yield* Mutex.acquire("m")
        yield* TestClock.adjust("900 millis")
        stall.millis = 1600
        // The timer for the first second is 1.6 seconds late
        yield* TestClock.adjust("100 millis")
        yield* TestClock.adjust("4100 millis")
        assert.deepStrictEqual(yield* guards, [])
        yield* TestClock.adjust("300 millis")
        assert.deepStrictEqual(yield* guards, ["guard 1"])
        // Timers are punctual for a hundred seconds
        yield* TestClock.adjust("100 seconds")
        const { calls } = yield* Faults
        calls.length = 0
        yield* TestClock.adjust("20 seconds")
        assert.deepStrictEqual(yield* guards, ["guard 1", "guard 1"])
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("records the minimum remaining time of leases that are renewed together", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("first")
      yield* TestClock.adjust("1 second")
      yield* Mutex.acquire("second")
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(yield* guards, ["guard 2"])
      const left = yield* Metric.value(MutexMetrics.mutex.timeLeftAtRenewal)
      assert.deepInclude(left, { count: 1, min: 5200, max: 5200 })
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("renews every lease while other leases are added and released", () =>
    Effect.gen(function*() {
      const scopes: Array<Scope.Closeable> = []
      const held = new Set<string>()
      for (let i = 0; i < 60; i++) {
        const scope = yield* Scope.make()
        scopes.push(scope)
        yield* Scope.provide(Mutex.acquire(`m${i}`), scope)
        held.add(`m${i}`)
        yield* TestClock.adjust(i % 3 === 0 ? "700 millis" : 0)
        const gone = (i * 7) % 60
        if (gone < i && held.delete(`m${gone}`)) yield* Scope.close(scopes[gone]!, Exit.void)
      }
      yield* TestClock.adjust("2 minutes")
      for (let i = 0; i < 60; i++) {
        const owner = yield* Mutex.owner(`m${i}`)
        assert.strictEqual(owner._tag, held.has(`m${i}`) ? "Held" : "Free", `m${i}`)
      }
      yield* Effect.forEach(scopes, (scope) => Scope.close(scope, Exit.void))
    }).pipe(Effect.provide(TestLive)))

  it.effect("is not disturbed by the release of one lease in an in-flight call", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("released"), scope)
      const lease = yield* Mutex.acquire("held")
      faults.guard = { late: "500 millis" }
      yield* TestClock.adjust("10 seconds")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("500 millis")
      faults.guard = "work"
      assert.strictEqual(yield* timeLeft(lease), 16_000 * 0.95 - 500)
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(yield* guards, ["guard 2"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("retries every lease in a call that got no reply in time", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const leases = yield* acquireMany(550)
      faults.guard = "hang"
      yield* TestClock.adjust("10900 millis")
      assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.failed), 0)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.failed), 550)
      faults.guard = "work"
      yield* TestClock.adjust("1 minute")
      for (const lease of leases) assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("renews in time if an outage ends 250 ms before the deadline, however long the outage was", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const leases = yield* acquireMany(20)
      faults.guard = "fail"
      yield* TestClock.adjust("14950 millis")
      faults.guard = "work"
      yield* TestClock.adjust("250 millis")
      for (const lease of leases) assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("abandons a call that got no reply in time", () => {
    const abandoned: Array<number> = []
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(Effect.all([MutexStore.MutexStore, Clock.Clock]), ([store, clock]) => ({
        ...store,
        guard: () => () => void abandoned.push(clock.currentTimeMillisUnsafe())
      }))
    )
    return Effect.gen(function*() {
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(abandoned, [11_000])
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provide(MutexStore.layerMemory)))
    )
  })

  it.effect("abandons a call that is in flight when its layer closes", () => {
    let abandoned = 0
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({ ...store, guard: () => () => void abandoned++ }))
    )
    return Effect.gen(function*() {
      const scope = yield* Scope.make()
      const service = yield* Scope.provide(Layer.build(Layer.fresh(Mutex.layer())), scope)
      yield* Effect.provide(Mutex.acquire("m"), service)
      yield* TestClock.adjust("10500 millis")
      assert.strictEqual(abandoned, 0)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(abandoned, 1)
    }).pipe(Effect.scoped, Effect.provide(store.pipe(Layer.provide(MutexStore.layerMemory))))
  })

  it.effect("ignores a call's timeout once the call has got its reply", () =>
    Effect.gen(function*() {
      yield* acquireMany(3)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.failed), 0)
      assert.strictEqual((yield* guards).length, 360)
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("counts each mutex separately if metricsByMutex is set", () =>
    Effect.gen(function*() {
      yield* acquireMany(3)
      yield* TestClock.adjust("25 seconds")
      for (let i = 0; i < 3; i++) {
        const renewed = Metric.withAttributes(MutexMetrics.mutex.renewals.renewed, { mutex: `m${i}` })
        assert.strictEqual(yield* count(renewed), 2)
        const left = yield* Metric.value(
          Metric.withAttributes(MutexMetrics.mutex.timeLeftAtRenewal, { mutex: `m${i}` })
        )
        assert.strictEqual(left.count, 2)
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer({ metricsByMutex: true }).pipe(Layer.provide(FaultyStore.layer))),
      isolated
    ))

  it.effect("logs nothing when its layer closes during a renewal", () => {
    const lines: Array<unknown> = []
    const logger = Logger.make(({ message }) => void lines.push(message))
    return Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      const service = yield* Scope.provide(Layer.build(Layer.fresh(Mutex.layer())), scope)
      yield* Scope.provide(Effect.provide(Mutex.acquire("m"), service), yield* Scope.make())
      faults.guard = "hang"
      yield* TestClock.adjust("10500 millis")
      assert.strictEqual((yield* guards).length, 1)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(lines.filter((line) => String(line).includes("lease(s)")), [])
    }).pipe(Effect.provide([FaultyStore.layer, Logger.layer([logger])]))
  })

  it.effect("warns once about each outage, with its cause", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function*() {
      const faults = yield* Faults
      yield* acquireMany(2)
      for (const outage of ["12 seconds", "10 seconds"] as const) {
        faults.guard = "hang"
        yield* TestClock.adjust(outage)
        faults.guard = "work"
        yield* TestClock.adjust("2 seconds")
        const warnings = lines.splice(0).filter((line) => line.includes("could not be renewed"))
        // Jitter in earlier retries may have split the two leases into separate calls, which log two warnings
        assert.strictEqual(warnings.reduce((sum, line) => sum + Number.parseInt(line), 0), 2)
        for (const line of warnings) assert.include(line, "no reply within 1s")
      }
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provideMerge([FaultyStore.layer, Logger.layer([logger])])))
    )
  })

  it.effect("keeps every lease in a call with a malformed reply", () => {
    let isShort = true
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        guard: (requests, done) => store.guard(isShort ? [] : requests, done)
      }))
    )
    return Effect.gen(function*() {
      const leases = yield* acquireMany(3)
      yield* TestClock.adjust("10500 millis")
      isShort = false
      yield* TestClock.adjust("1 minute")
      for (const lease of leases) assert.isTrue(yield* lease.isHeld)
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provide(MutexStore.layerMemory)))
    )
  })

  it.effect("uses the replies that a call did get if others are missing", () => {
    let isStuck = false
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        guard: (requests, done, onResult) =>
          store.guard(requests, (exit) => {
            const hasReply = ({ mutex }: MutexStore.GuardRequest) => !isStuck || !mutex.startsWith("slow")
            if (Exit.isSuccess(exit)) {
              exit.value.forEach((result, index) => hasReply(requests[index]!) ? onResult?.(index, result) : undefined)
            }
            if (requests.every(hasReply)) done(exit)
          })
      }))
    )
    return Effect.gen(function*() {
      const slow: Array<Lease.Lease> = []
      const quick: Array<Lease.Lease> = []
      // Enough leases for every call to contain both slow and quick ones
      for (let i = 0; i < 50; i++) {
        slow.push(yield* Mutex.acquire(`slow ${i}`))
        quick.push(yield* Mutex.acquire(`quick ${i}`))
      }
      isStuck = true
      yield* TestClock.adjust("1 hour")
      for (const lease of slow) assert.strictEqual((yield* lease.lost).reason._tag, "BackendGone")
      for (const lease of quick) assert.isTrue(yield* lease.isHeld)
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provide(MutexStore.layerMemory)))
    )
  }, { tags: ["S14"] })

  it.effect.each(
    [
      { ttl: "10 seconds", calls: ["guard 11", "guard 9"] },
      { ttl: "4 seconds", calls: ["guard 6", "guard 6", "guard 6", "guard 2"] }
    ] as const
  )(
    "renews leases that are due a little later in the same wake-up (ttl: $ttl)",
    ({ calls, ttl }) =>
      Effect.gen(function*() {
        for (let i = 0; i < 20; i++) {
          yield* Mutex.acquire(`m${i}`, { ttl })
          yield* TestClock.adjust("100 millis")
        }
        yield* TestClock.adjust(ttl)
        assert.deepStrictEqual(yield* guards, [...calls])
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("retries each lease at its own pace, however many other leases fail", () => {
    const asked: Array<number> = []
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(Effect.all([MutexStore.MutexStore, Clock.Clock]), ([store, clock]) => ({
        ...store,
        guard: (requests, done) => {
          if (requests.some(({ mutex }) => mutex === "first")) asked.push(clock.currentTimeMillisUnsafe())
          done(Exit.fail(new SimbaError.BackendError({ operation: "guard", isRetryable: true, cause: "down" })))
          return () => {}
        }
      }))
    )
    return Effect.gen(function*() {
      yield* Mutex.acquire("first", { ttl: "2 seconds", transition: "1 minute" })
      for (let i = 0; i < 20; i++) {
        yield* Mutex.acquire(`m${i}`, { ttl: 10_000 + 700 * i, transition: "1 minute" })
      }
      yield* TestClock.adjust("30 seconds")
      // By now the pause has reached a second, less jitter of up to a fifth
      const late = asked.filter((at) => at > 9000)
      assert.isAbove(late.length, 10)
      for (const [i, at] of late.slice(1).entries()) assert.isAtLeast(at - late[i]!, 750)
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provide(MutexStore.layerMemory)))
    )
  })

  it.effect("drops a hint of a forced release when a renewal refutes it", () => {
    let isVanished = false
    let guarded = 0
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        inbox: (key, onForced) =>
          Effect.tap(
            store.inbox(key, onForced),
            Effect.forkScoped(Effect.delay(Effect.sync(() => onForced(forced)), 500))
          ),
        guard: (requests, done) => {
          guarded++
          if (!isVanished) return store.guard(requests, done)
          done(Exit.succeed(requests.map(() => ({ _tag: "Lost", ownership: { _tag: "Free" } }))))
          return () => {}
        }
      }))
    )
    let forced = ""
    return Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      forced = lease.id
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* lease.isHeld)
      assert.strictEqual(guarded, 1)
      isVanished = true
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "Vanished")
    }).pipe(
      Effect.scoped,
      Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provide(MutexStore.layerMemory)))
    )
  })

  it.effect(
    "hanging requests for one mutex delay neither renewals nor acquires of other mutexes",
    () =>
      Effect.gen(function*() {
        const { stuck } = yield* Hands
        const slow = yield* Mutex.acquire("slow")
        yield* TestClock.adjust("1500 millis")
        const quick = yield* Mutex.acquire("quick")
        stuck.add("slow")
        const waiting = yield* start(Effect.scoped(Mutex.acquire("slow")))
        yield* TestClock.adjust("10001 millis")
        assert.isAtLeast(yield* timeLeft(quick), 15_199)
        assert.isUndefined(waiting.pollUnsafe())
        yield* Effect.scoped(Mutex.acquire("another"))
        yield* TestClock.adjust("1 hour")
        assert.strictEqual((yield* slow.lost).reason._tag, "BackendGone")
        assert.isTrue(yield* quick.isHeld)
        yield* Fiber.interrupt(waiting)
      }).pipe(Effect.provide(HandsLive)),
    { tags: ["S14"] }
  )

  it.effect(
    "if all renewals fail, the work is interrupted exactly at the deadline",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.guard = "fail"
        let interrupted = false
        const working = yield* start(
          Effect.never.pipe(
            Effect.onInterrupt(() => Effect.sync(() => interrupted = true)),
            Mutex.withLock("m"),
            Effect.flip
          )
        )
        yield* TestClock.adjust("15199 millis")
        assert.isAtLeast(yield* calls("guard"), 5)
        assert.isFalse(interrupted)
        yield* TestClock.adjust("1 millis")
        assert.isTrue(interrupted)
        assert.deepInclude(yield* Fiber.join(working), { _tag: "LeaseLost", reason: { _tag: "BackendGone" } })
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B29"] }
  )
})

describe("a user's guard", () => {
  const guarded = (guard: MutexSchedule.MutexSchedule, lines: Array<string> = []) =>
    Mutex.layer({ guard }).pipe(
      Layer.provideMerge(FaultyStore.layer),
      Layer.provideMerge(Logger.layer([Logger.make(({ message }) => lines.push(String(message)))]))
    )

  /** A schedule with a step that hangs once `isStuck` is set. */
  const stuckOnce = Schedule.fromStep(Effect.sync(() => () =>
    Effect.suspend(() => {
      const pause = Duration.seconds(1)
      const step = isStuck ? Effect.never : Effect.succeed<[Duration.Duration, Duration.Duration]>([pause, pause])
      isStuck = false
      return step
    })
  ))
  let isStuck = false

  it.effect("that never decides about one lease does not delay retries for another", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const leases = yield* acquireMany(2)
      yield* TestClock.adjust("500 millis")
      faults.guard = "fail"
      isStuck = true
      yield* TestClock.adjust("1 second")
      assert.isFalse(isStuck)
      faults.guard = "work"
      yield* TestClock.adjust("20 seconds")
      const held = yield* Effect.forEach(leases, (lease) => lease.isHeld)
      assert.deepStrictEqual(held, [false, true])
    }).pipe(Effect.scoped, Effect.provide(guarded(stuckOnce))))

  /** A schedule that decides for each lease with an effect of the lease's index. */
  const deciding = (decide: (lease: number) => Effect.Effect<void>) => {
    let leases = 0
    return Schedule.fromStep(Effect.sync(() => {
      const lease = leases++
      const second = Duration.seconds(1)
      return () =>
        Effect.as(Effect.suspend(() => decide(lease)), [second, second] as [Duration.Duration, Duration.Duration])
    }))
  }

  it.effect("is ignored if it decides after the lease has ended", () => {
    const lines: Array<string> = []
    const layer = guarded(deciding(() => Effect.sleep("500 millis")), lines)
    const releasedAfter = (millis: number, isAlive: Effect.Effect<boolean> = Effect.succeed(true)) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("m", { isAlive }), scope)
        yield* TestClock.adjust(millis)
        yield* Scope.close(scope, Exit.void)
        yield* TestClock.adjust("10 seconds")
      })
    return Effect.gen(function*() {
      // While the schedule decides about the grant, a holder that is not alive, or a failed renewal
      yield* releasedAfter(200)
      yield* releasedAfter(1200, Effect.succeed(false))
      const faults = yield* Faults
      faults.guard = "fail"
      yield* releasedAfter(1200)
      assert.lengthOf(lines, 2)
      assert.deepStrictEqual(lines.filter((line) => line.includes("crashed")), [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("that dies while deciding about a failed renewal does not end the retries, even if another lease in the call has ended", () => {
    let isFailing = false
    const schedule = deciding((lease) =>
      !isFailing ? Effect.void : lease === 0 ? Effect.never : Effect.andThen(Effect.sleep(500), Effect.die("broken"))
    )
    return Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("ended"), scope)
      const lease = yield* Mutex.acquire("held")
      yield* TestClock.adjust("500 millis")
      faults.guard = "fail"
      isFailing = true
      yield* TestClock.adjust("700 millis")
      yield* Scope.close(scope, Exit.void)
      faults.guard = "work"
      isFailing = false
      yield* TestClock.adjust("20 seconds")
      assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(guarded(schedule)))
  })

  it.effect("that dies while deciding about a holder that is not alive does not end the probes", () => {
    let isAlive = true
    const schedule = deciding(() => isAlive ? Effect.void : Effect.die("broken"))
    return Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m", { isAlive: Effect.sync(() => isAlive) })
      yield* TestClock.adjust("500 millis")
      isAlive = false
      yield* TestClock.adjust("700 millis")
      isAlive = true
      yield* TestClock.adjust("20 seconds")
      assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(guarded(schedule)))
  })

  for (const mode of ["fail", "work"] as const) {
    it.effect(`without pauses does not block the process if renewals return immediately (${mode})`, () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const lease = yield* Mutex.acquire("m")
        faults.guard = mode
        yield* TestClock.adjust("1 second")
        faults.guard = "work"
        assert.isTrue(yield* lease.isHeld)
      }).pipe(Effect.scoped, Effect.provide(guarded(Schedule.forever))))
  }
})
