import { Mutex, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"
import { suspending } from "../support/suspending.ts"

/** Another program that calls the store without a layer. */
const stranger = Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const id = "1-aaaaaaaaaaaa:stranger" as MutexName.LeaseId
  const mutex = MutexName.MutexName.make("m")
  const period = { lease: Duration.seconds(16), confirm: Duration.millis(1500) }
  return {
    id,
    take: MutexStore.acquire(store, { mutex, id, mode: "try", ...period }),
    release: (victim: MutexName.LeaseId) => MutexStore.release(store, { mutex, id: victim, ...period })
  }
})

const calls = (name: string) =>
  Effect.map(Faults, (faults) => faults.calls.filter((call) => call.startsWith(name)).length)

describe("a lease in its scope", () => {
  it.effect("is released only when the scope closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      yield* TestClock.adjust("1 hour")
      assert.isTrue(yield* lease.isHeld)
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      assert.isFalse(yield* lease.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("fails with Released after its scope has closed", () =>
    Effect.gen(function*() {
      const lease = yield* Effect.scoped(Mutex.acquire("m"))
      const error = yield* Effect.flip(lease.ensure)
      assert.strictEqual(error.reason._tag, "Released")
      const protectedError = yield* Effect.flip(lease.protect(Effect.void))
      assert.strictEqual(protectedError._tag, "LeaseLost")
      assert.strictEqual(yield* timeLeft(lease), 0)
    }).pipe(Effect.provide(TestLive)))

  it.effect("`lost` never returns if the lease is released during the wait, but returns immediately after a release", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      const before = yield* start(lease.lost)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(before.pollUnsafe())
      assert.strictEqual((yield* lease.lost).reason._tag, "Released")
    }).pipe(Effect.provide(TestLive)))

  it.effect("has a token that grows with every grant", () =>
    Effect.gen(function*() {
      const tokens: Array<number> = []
      for (let i = 0; i < 5; i++) tokens.push((yield* Effect.scoped(Mutex.acquire("m"))).token)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
    }).pipe(Effect.provide(TestLive)))

  it.effect("has a new id each time", () =>
    Effect.gen(function*() {
      const first = yield* Effect.scoped(Mutex.acquire("m"))
      const second = yield* Effect.scoped(Mutex.acquire("m"))
      assert.notStrictEqual(first.id, second.id)
      assert.match(first.id, /^\d+-[0-9a-z]{12}:us$/)
    }).pipe(Effect.provide(TestLive)), { tags: ["H7"] })
})

describe("the local deadline", { tags: ["L1"] }, () => {
  it.effect(
    "is measured from when the command was sent, not from when its reply arrived",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.acquire = { late: "900 millis" }
        const fiber = yield* start(Mutex.acquire("m"))
        yield* TestClock.adjust("900 millis")
        // 16 s, less the margin of 0.8 s, less the 0.9 s that the reply took
        assert.strictEqual(yield* timeLeft(yield* Fiber.join(fiber)), 14_300)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["S10", "B23"] }
  )

  it.effect("is extended by a renewal from when the renewal was sent", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const lease = yield* Mutex.acquire("m")
      faults.guard = { late: "700 millis" }
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* timeLeft(lease), 5_200)
      yield* TestClock.adjust("700 millis")
      assert.strictEqual(yield* timeLeft(lease), 14_500)
    }).pipe(Effect.provide(TestLive)))

  it.effect("ends the lease even if every renewal hangs", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "hang"
      const lease = yield* Mutex.acquire("m")
      const lost = yield* start(lease.lost)
      yield* TestClock.adjust("15199 millis")
      assert.isTrue(yield* lease.isHeld)
      assert.isUndefined(lost.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isFalse(yield* lease.isHeld)
      assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "BackendGone")
    }).pipe(Effect.provide(TestLive)), { tags: ["S11"] })

  it.effect(
    "is noticed by `ensure` after an event-loop stall, before any timer has fired",
    () =>
      Effect.gen(function*() {
        const { clock, stall } = yield* stalling
        yield* Effect.gen(function*() {
          const lease = yield* Mutex.acquire("m")
          stall.millis = 15_199
          yield* lease.ensure
          stall.millis = 15_200
          const error = yield* Effect.flip(lease.ensure)
          assert.strictEqual(error.reason._tag, "Expired")
        }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
      }),
    { tags: ["B20"] }
  )

  it.effect("is also checked against the wall clock, so a suspension ends the lease", () =>
    Effect.gen(function*() {
      const base = yield* Clock.Clock
      let suspended = 0
      const clock: Clock.Clock = {
        ...base,
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + suspended,
        monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
        sleep: (duration) => base.sleep(duration)
      }
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        const lost = yield* start(lease.lost)
        suspended = 60_000
        assert.isFalse(yield* lease.isHeld)
        assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "Expired")

        const unasked = yield* Mutex.acquire("n")
        const noticed = yield* start(unasked.lost)
        suspended = 120_000
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(noticed)).reason._tag, "Expired")
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))
})

describe("a machine that wakes from a suspension", { tags: ["L1"] }, () => {
  it.effect("keeps all leases that are due by either clock by renewing them in batches", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      yield* Effect.gen(function*() {
        const leases = yield* Effect.forEach(Array.from({ length: 600 }), (_, i) => Mutex.acquire(`m${i}`))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* calls("guard"), 0)
        suspension.millis = 12_000
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* calls("guard"), 2)
        yield* TestClock.adjust("1 hour")
        for (const lease of leases) assert.isTrue(yield* lease.isHeld)
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("does not renew leases that are not yet due", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      yield* Effect.gen(function*() {
        yield* Mutex.acquire("m")
        suspension.millis = 6000
        yield* TestClock.adjust("3900 millis")
        assert.strictEqual(yield* calls("guard"), 0)
        yield* TestClock.adjust("100 millis")
        assert.strictEqual(yield* calls("guard"), 1)
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("loses a lease by the wall clock, even if that clock was set back before", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      yield* Effect.gen(function*() {
        const lost = yield* start((yield* Mutex.acquire("m")).lost)
        suspension.millis = -60_000
        yield* TestClock.adjust("1 second")
        suspension.millis += 20_000
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "Expired")
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect.each([["suspended", 8000, 10_000], ["set back", -60_000, 18_000]] as const)(
    "ends a lease after maxHold on the faster clock, if the wall clock was %s",
    ([, step, left]) =>
      Effect.gen(function*() {
        const { clock, suspension } = yield* suspending
        yield* Effect.gen(function*() {
          const lease = yield* Mutex.acquire("m", { maxHold: "30 seconds" })
          yield* TestClock.adjust("12 seconds")
          suspension.millis = step
          yield* TestClock.adjust(left - 1)
          assert.isTrue(yield* lease.isHeld)
          yield* TestClock.adjust(1)
          assert.isFalse(yield* lease.isHeld)
        }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
      })
  )
})

describe("a waiter on a machine that wakes from a suspension", () => {
  it.effect("polls within a second, even though its timer was suspended", () =>
    Effect.gen(function*() {
      const { clock, suspension } = yield* suspending
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const us = yield* Effect.provideService(another("us"), Clock.Clock, clock)
      yield* start(Effect.provide(Mutex.withLock("m")(Effect.void), us))
      yield* TestClock.adjust("1 second")
      const before = yield* calls("acquire")
      suspension.millis = 15_000
      yield* TestClock.adjust("1 second")
      assert.isAbove(yield* calls("acquire"), before)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("a busy process", { tags: ["L1"] }, () => {
  it.effect("interrupts the work of all overdue leases as soon as any lease is used, before a timer fires", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        let interrupted = 0
        const body = Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
        for (let i = 0; i < 100; i++) yield* start(Mutex.withLock(`m${i}`)(body))
        const lease = yield* Mutex.acquire("m", { ttl: "1 minute" })
        stall.millis = 15_199
        yield* lease.ensure
        assert.strictEqual(interrupted, 0)
        stall.millis = 15_200
        yield* lease.ensure
        assert.strictEqual(interrupted, 100)
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("warns at most once a minute if timers are late by half a margin", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        yield* Mutex.acquire("m")
        yield* TestClock.adjust("2 seconds")
        const late = Effect.fnUntraced(function*(millis: number) {
          stall.millis += millis
          yield* TestClock.adjust("1 second")
          return lines.splice(0).filter((line) => line.includes("paused or too busy"))
        })
        assert.lengthOf(yield* late(399), 0)
        const [warning] = yield* late(400)
        assert.include(warning, "timers fire 400 ms late. Leases have a margin of 800 ms")
        assert.lengthOf(yield* late(700), 0)
        yield* TestClock.adjust("1 minute")
        assert.lengthOf(yield* late(700), 1)
      }).pipe(
        Effect.scoped,
        Effect.provide(
          Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory), Layer.provide(Logger.layer([logger])))
        ),
        Effect.provideService(Clock.Clock, clock)
      )
    })
  })

  it.effect("is warned about timers that are late by half of the smallest margin of its leases", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        yield* Mutex.acquire("first")
        yield* Mutex.acquire("shorter", { ttl: "500 millis", transition: "1500 millis" })
        yield* Mutex.acquire("last")
        yield* TestClock.adjust("2500 millis")
        for (const [millis, warnings] of [[49, 0], [50, 1]] as const) {
          stall.millis += millis
          yield* TestClock.adjust("1 second")
          assert.lengthOf(lines.splice(0).filter((line) => line.includes("Leases have a margin of 100 ms")), warnings)
        }
      }).pipe(
        Effect.scoped,
        Effect.provide(
          Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory), Layer.provide(Logger.layer([logger])))
        ),
        Effect.provideService(Clock.Clock, clock)
      )
    })
  })
})

describe("a wall clock that is set back", { tags: ["L1"] }, () => {
  it.effect("does not extend a lease if the machine is suspended afterwards", () =>
    Effect.gen(function*() {
      const base = yield* Clock.Clock
      let step = 0
      const clock: Clock.Clock = {
        ...base,
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe() + step,
        monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
        sleep: (duration) => base.sleep(duration)
      }
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        step = -60_000
        yield* TestClock.adjust("1 second")
        assert.isTrue(yield* lease.isHeld)
        step += 20_000
        assert.isFalse(yield* lease.isHeld)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))
})

describe("the guard", { tags: ["L2"] }, () => {
  it.effect("renews at ttl, repeatedly", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(yield* calls("guard"), 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* calls("guard"), 1)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(yield* calls("guard"), 4)
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "keeps the lease by retrying a failed renewal within the transition",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const lease = yield* Mutex.acquire("m")
        faults.guard = "fail"
        yield* TestClock.adjust("14 seconds")
        assert.isAbove(yield* calls("guard"), 3)
        assert.isTrue(yield* lease.isHeld)
        faults.guard = "work"
        yield* TestClock.adjust("1200 millis")
        assert.isTrue(yield* lease.isHeld)
        yield* TestClock.adjust("10 minutes")
        assert.isTrue(yield* lease.isHeld)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["S12", "B13"] }
  )

  it.effect("gives up on a hanging renewal after commandTimeout and retries it", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const lease = yield* Mutex.acquire("m")
      faults.guard = "hang"
      yield* TestClock.adjust("10500 millis")
      faults.guard = "work"
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* calls("guard"), 2)
      yield* TestClock.adjust("1 hour")
      assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("ends the lease if the server names another owner", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      const { id, release, take } = yield* stranger
      yield* release(lease.id)
      assert.strictEqual((yield* take)._tag, "Granted")
      yield* TestClock.adjust("10 seconds")
      const loss = yield* lease.lost
      assert.deepStrictEqual(loss.reason, { _tag: "TakenOver", owner: id })
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "ends the lease if the server reports no owner, and does not reacquire the mutex",
    () =>
      Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        const { release } = yield* stranger
        yield* release(lease.id)
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* lease.lost).reason._tag, "Vanished")
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B18"] }
  )

  it.effect(
    "does not report a loss if the lease is released while a renewal is in flight",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const lost = yield* start(lease.lost)
        faults.guard = { late: "500 millis" }
        yield* TestClock.adjust("10 seconds")
        yield* Scope.close(scope, Exit.void)
        yield* TestClock.adjust("1 minute")
        assert.isUndefined(lost.pollUnsafe())
        assert.strictEqual(yield* calls("guard"), 1)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B19"] }
  )

  it.effect("does not renew after the release", () =>
    Effect.gen(function*() {
      yield* Effect.scoped(Mutex.acquire("m"))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* calls("guard"), 0)
    }).pipe(Effect.provide(TestLive)), { tags: ["B16"] })

  it.effect("renews a thousand leases in batches", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 1000; i++) yield* Mutex.acquire(`m${i}`)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* calls("guard"), 2)
    }).pipe(Effect.provide(TestLive)), { tags: ["L6"] })

  it.effect("renews a lease with a shorter ttl at its own interval", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("slow")
      const quick = yield* Mutex.acquire("quick", { ttl: "1 second", transition: "2 seconds" })
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* calls("guard"), 5)
      assert.isTrue(yield* quick.isHeld)
    }).pipe(Effect.provide(TestLive)))
})

describe("a release", () => {
  it.effect("is timed by the layer's clock even in a fiber with another clock", () =>
    Effect.gen(function*() {
      const other = yield* Mutex.acquire("other")
      yield* TestClock.withLive(Effect.scoped(Mutex.acquire("m")))
      assert.isTrue(yield* other.isHeld)

      const scope = yield* Scope.make()
      const stopped = yield* TestClock.make()
      yield* Scope.provide(Mutex.acquire("m"), scope)
      const outside = yield* start(Effect.provide(Mutex.acquire("m"), yield* another("them")))
      const inside = yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("1 second")
      yield* Effect.provideService(Scope.close(scope, Exit.void), Clock.Clock, stopped)
      yield* TestClock.adjust(1)
      assert.isDefined(outside.pollUnsafe())
      assert.isUndefined(inside.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "takes at most releaseTimeout, after which the scope closes without a failure",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.release = "hang"
        const fiber = yield* start(Effect.scoped(Mutex.acquire("m")))
        yield* TestClock.adjust("1999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(fiber)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["L4"] }
  )

  it.effect("takes at most until the deadline if that comes first", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), scope)
      faults.guard = "hang"
      faults.release = "hang"
      yield* TestClock.adjust("14700 millis")
      const closing = yield* start(Scope.close(scope, Exit.void))
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("500 millis")
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.provide(TestLive)), { tags: ["L4"] })

  it.effect("does not fail the work if the release fails", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.release = "fail"
      assert.strictEqual(yield* Mutex.withLock("m")(Effect.succeed(42)), 42)
      assert.strictEqual(yield* Effect.flip(Mutex.withLock("n")(Effect.fail("mine"))), "mine")
    }).pipe(Effect.provide(TestLive)), { tags: ["L4"] })

  it.effect("is not awaited after a known loss", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      faults.guard = "hang"
      faults.release = "hang"
      yield* TestClock.adjust("20 seconds")
      assert.isFalse(yield* lease.isHeld)
      yield* Scope.close(scope, Exit.void)
      assert.include(faults.calls, "release")
      yield* TestClock.adjust("2 seconds")
    }).pipe(Effect.provide(TestLive)), { tags: ["B24"] })
})
