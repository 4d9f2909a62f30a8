/** A contender that loses its lease, or is stopped, while the backend does not reply. */
import * as Mutex from "@effect-simba/core/Mutex"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { Hands, HandsLive, settle, takeFrom } from "../support/hands.ts"
import { another, start, TestLive } from "../support/setup.ts"

describe("a contender", () => {
  it.effect("a late `acquired` message does not make a contender the owner", () =>
    Effect.gen(function*() {
      const { announce } = yield* Hands
      const contention = yield* Mutex.contend("m")
      let begun = 0
      yield* start(contention.whileLeader(Effect.andThen(Effect.sync(() => begun++), Effect.never)))
      yield* settle
      const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
      const stranger = yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* lease.lost).reason._tag, "TakenOver")
      announce({ _tag: "Acquired", owner: lease.id })
      yield* settle
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* contention.state, { _tag: "Following", leader: stranger })
      assert.isFalse(yield* lease.isHeld)
      assert.strictEqual(begun, 1)
    }).pipe(Effect.provide(HandsLive)), { tags: ["S8"] })

  it.effect("contends soon after a second outage, regardless of how long the first one lasted", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const them = yield* another("them")
      yield* Effect.provide(Mutex.acquire("m"), them)
      yield* Mutex.contend("m")
      const waiting = Effect.map(Effect.provide(Mutex.inspect("m"), them), (state) => state.waiting)
      yield* TestClock.adjust("1 hour")
      faults.acquire = faults.owner = "fail"
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* waiting, 0)
      faults.acquire = faults.owner = "work"
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* waiting, 1)
      faults.acquire = faults.owner = "fail"
      while ((yield* waiting) > 0) yield* TestClock.adjust("1 second")
      faults.acquire = faults.owner = "work"
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* waiting, 1)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("leads after an outage even if its last request of the outage never gets a reply", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = "fail"
      faults.owner = "hang"
      const contention = yield* Mutex.contend("m")
      yield* TestClock.adjust("30 seconds")
      faults.acquire = faults.owner = "work"
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* contention.state)._tag, "Leading")
    }).pipe(Effect.provide(TestLive)))

  it.effect("contends soon after a failure that follows a leadership, however many failures preceded it", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const contention = yield* Mutex.contend("m")
      for (const end of [Mutex.forceRelease("m"), contention.stepDown]) {
        yield* contention.stop
        faults.refusals = 12
        yield* contention.start
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(faults.refusals, 0)
        const { token } = yield* Effect.flatMap(contention.lease, Effect.fromOption)
        faults.refusals = 1
        yield* end
        yield* TestClock.adjust("3 seconds")
        assert.isAbove((yield* Effect.flatMap(contention.lease, Effect.fromOption)).token, token)
      }
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "the state shows that the leadership is over even before the work has stopped",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const contention = yield* Mutex.contend("m")
        const gate = yield* Latch.make(false)
        yield* start(contention.whileLeader(Effect.onInterrupt(Effect.never, () => gate.await)))
        yield* settle
        const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
        faults.guard = "hang"
        yield* TestClock.adjust("15199 millis")
        assert.isTrue((yield* contention.state)._tag === "Leading")
        yield* TestClock.adjust("1 millis")
        assert.isFalse((yield* contention.state)._tag === "Leading")
        assert.strictEqual((yield* lease.lost).reason._tag, "BackendGone")
        yield* gate.open
      }).pipe(Effect.provide(TestLive)),
    { tags: ["S15"] }
  )

  it.effect(
    "stopping a contender during an outage takes at most the release timeout plus two seconds and does not delay other leases",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const contention = yield* Mutex.contend("m")
        const other = yield* Mutex.acquire("other")
        yield* settle
        assert.isTrue((yield* contention.state)._tag === "Leading")
        faults.release = faults.owner = "hang"
        const stopping = yield* start(contention.stop)
        yield* settle
        assert.isFalse((yield* contention.state)._tag === "Leading")
        yield* Mutex.acquire("third")
        yield* other.ensure
        yield* TestClock.adjust("3999 millis")
        assert.isUndefined(stopping.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        yield* Fiber.join(stopping)
        yield* TestClock.adjust("1 minute")
        assert.isTrue(yield* other.isHeld)
      }).pipe(Effect.provide(TestLive)),
    { tags: ["S23"] }
  )
})
