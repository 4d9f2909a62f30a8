/** If a lease ends while its renewal is in flight, it is never renewed again and does not delay other leases. */
import { type Lease, Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, type Fiber, Logger, Random, Scheduler } from "effect"
import { TestClock } from "effect/testing"
import { supervise } from "../../src/internal/lease/backgroundLoop.ts"
import { DueLeases } from "../../src/internal/lease/dueLeases.ts"
import { TrackedLease } from "../../src/internal/lease/leaseDeadline.ts"
import { Faults } from "../support/faultyStore.ts"
import { calls } from "../support/hands.ts"
import { start, TestLive } from "../support/setup.ts"

/**
 * Runs `draw` when a retry's delay is computed: after the reply to a renewal, but before the reply takes effect.
 */
const drawing = (draw: () => void) =>
  Effect.provideService(Random.Random, {
    nextIntUnsafe: () => 0,
    nextDoubleUnsafe: () => {
      draw()
      return 0.5
    }
  })

/** Holds the mutex until it is interrupted. */
const holder = (name: string, options?: Mutex.AcquireOptions) =>
  start(Effect.scoped(Effect.andThen(Mutex.acquire(name, options), Effect.never)))

/** Asserts that the lease is still being renewed, and is lost at its deadline once renewals hang. */
const isWatched = (lease: Lease.Lease) =>
  Effect.gen(function*() {
    const faults = yield* Faults
    faults.guard = "work"
    yield* TestClock.adjust("1 minute")
    assert.isTrue(yield* lease.isHeld)
    faults.guard = "hang"
    const loss = yield* start(lease.lost)
    yield* TestClock.adjust("16 seconds")
    assert.strictEqual(loss.pollUnsafe()?._tag, "Success")
  })

describe("a lease that ends during its renewal", () => {
  it.effect("is not renewed again if it is released while the retry's delay is being computed", () => {
    let release = () => {}
    return Effect.gen(function*() {
      const faults = yield* Faults
      const victims = yield* Effect.forEach(["a", "b", "c"], (name) => holder(name))
      const other = yield* Mutex.acquire("other")
      faults.guard = "fail"
      release = () => {
        release = () => {}
        for (const victim of victims) victim.interruptUnsafe()
      }
      yield* TestClock.adjust("10 seconds")
      for (const victim of victims) assert.isDefined(victim.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.notInclude(faults.calls.slice(faults.calls.indexOf("guard 4") + 1).join(), "guard 4")
      yield* isWatched(other)
    }).pipe(Effect.scoped, Effect.provide(TestLive), drawing(() => release()))
  })

  it.effect("is not renewed if its own probe releases it, regardless of the probe's result", () =>
    Effect.gen(function*() {
      const other = yield* Mutex.acquire("other")
      for (const isAlive of [true, false]) {
        const victim: Fiber.Fiber<unknown, unknown> = yield* holder(`watched ${isAlive}`, {
          isAlive: Effect.sync(() => {
            victim.interruptUnsafe()
            return isAlive
          })
        })
        yield* TestClock.adjust("10 seconds")
        assert.isDefined(victim.pollUnsafe())
      }
      yield* isWatched(other)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("is not probed if it was released by another lease's probe", () =>
    Effect.gen(function*() {
      const victims: Array<Fiber.Fiber<unknown, unknown>> = []
      const asked: Array<number> = []
      for (const i of [0, 1, 2]) {
        const isAlive = Effect.sync(() => {
          asked.push(i)
          for (const victim of victims) victim.interruptUnsafe()
          return true
        })
        victims.push(yield* holder(`m${i}`, { isAlive }))
      }
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(asked, [0])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* calls("guard"), 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

class TestLease extends TrackedLease<TrackedLease<never>["options"]> {
  isOver = false
  override isOpen() {
    return !this.isOver
  }
  override get annotations() {
    return {}
  }
}

const lease = (deadlines: DueLeases<TestLease>) => {
  const options = { usable: 1000, margin: 100, renewAfter: 500, early: 0, maxHold: Infinity }
  return new TestLease(options as never, deadlines.now())
}

describe("a layer's deadlines", () => {
  it.effect("refuse a lease that has ended", () =>
    Effect.gen(function*() {
      const deadlines = new DueLeases<TestLease>(yield* Clock.Clock, () => {})
      const ended = lease(deadlines)
      ended.isOver = true
      assert.throws(() => deadlines.place(ended.group), "a lease that has ended")
      assert.isUndefined(deadlines.first)
    }))

  it.effect("end all expired leases even if ending one of them crashes, and do not retry that one in a loop", () =>
    Effect.gen(function*() {
      const ended: Array<TestLease> = []
      let crashes = 3
      const deadlines = new DueLeases<TestLease>(yield* Clock.Clock, (over) => {
        for (const lease of over) {
          if (crashes-- > 0) throw new Error("mistake")
          lease.isOver = true
          ended.push(lease)
        }
      })
      const leases = Array.from({ length: 5 }, () => lease(deadlines))
      for (const each of leases) {
        each.group.nextRenewal = Infinity
        deadlines.place(each.group)
      }
      let turns = 0
      const loop = deadlines.loop({ renew: () => ++turns > 1000, late: () => {} })
      yield* start(supervise("The loop", loop).pipe(Effect.provide(Logger.layer([]))))
      yield* TestClock.adjust("2 seconds")
      assert.sameMembers(ended, leases)
      assert.isUndefined(deadlines.first)
      assert.isBelow(turns, 20)
    }))

  it.effect("end leases in the same turn as their timer, even if fibers yield after each operation", () =>
    Effect.gen(function*() {
      let millis = 0
      let ring = () => {}
      const clock: Clock.Clock = {
        ...yield* Clock.Clock,
        monotonicTimeNanosUnsafe: () => BigInt(millis) * 1_000_000n,
        currentTimeMillisUnsafe: () => millis,
        sleep: () =>
          Effect.callback((resume) => {
            ring = () => resume(Effect.void)
          })
      }
      let yields = false
      const scheduler = yield* Scheduler.Scheduler
      let ended = 0
      const deadlines = new DueLeases<TestLease>(clock, (over) => {
        for (const lease of over) {
          lease.isOver = true
          ended++
        }
      })
      const over = lease(deadlines)
      over.group.nextRenewal = Infinity
      deadlines.place(over.group)
      yield* start(
        deadlines.loop({ renew: () => false, late: () => {} }).pipe(
          Effect.provideService(Clock.Clock, clock),
          Effect.provideService(Scheduler.Scheduler, { ...scheduler, shouldYield: () => yields })
        )
      )
      yield* Effect.yieldNow
      yields = true
      millis = 1000
      ring()
      assert.strictEqual(ended, 1)
      yields = false
    }))

  it.effect("drop a closed lease, but keep a lease that is due for renewal until it ends", () =>
    Effect.gen(function*() {
      const ended: Array<TestLease> = []
      const deadlines = new DueLeases<TestLease>(yield* Clock.Clock, (over) => {
        for (const lease of over) {
          lease.isOver = true
          ended.push(lease)
        }
      })
      const [due, closed] = [lease(deadlines), lease(deadlines)]
      deadlines.place(closed.group)
      closed.isOver = true
      deadlines.place(due.group)
      let turns = 0
      yield* start(deadlines.loop({
        renew: () => {
          turns++
          return false
        },
        late: () => {}
      }))
      yield* TestClock.adjust("520 millis")
      assert.strictEqual(closed.group.position, -1)
      assert.strictEqual(deadlines.takeDue(() => true), due.group)
      assert.isUndefined(deadlines.takeDue(() => true))
      assert.deepStrictEqual(ended, [])
      yield* TestClock.adjust("480 millis")
      assert.deepStrictEqual(ended, [due])
      assert.isBelow(turns, 5)
    }))
})
