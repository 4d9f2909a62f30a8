/** Forced releases that the owner hears about before it receives the reply with its grant. */
import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { calls } from "../support/hands.ts"
import { another, start, TestLive } from "../support/setup.ts"

const hold = (name: string, millis: number) => Mutex.withLock(name)(Effect.sleep(millis))

/** Ways in which this layer is granted "m" by a reply that is half a second late. */
const grants = {
  "to the first request": Effect.gen(function*() {
    const faults = yield* Faults
    faults.acquire = { late: "500 millis" }
    return { waiting: yield* start(Mutex.acquire("m")) }
  }),
  "to a waiter": Effect.gen(function*() {
    const faults = yield* Faults
    yield* Effect.provide(start(hold("m", 1000)), yield* another("them"))
    const waiting = yield* start(Mutex.acquire("m"))
    yield* TestClock.adjust("990 millis")
    faults.acquire = { late: "500 millis" }
    yield* TestClock.adjust("10 millis")
    return { waiting }
  }),
  "by the release of its own layer": Effect.gen(function*() {
    const faults = yield* Faults
    yield* start(hold("m", 1000))
    const waiting = yield* start(Mutex.acquire("m"))
    yield* TestClock.adjust("990 millis")
    faults.release = { late: "500 millis" }
    yield* TestClock.adjust("10 millis")
    return { waiting }
  })
}

describe("a forced release that overtakes the reply to the acquire", () => {
  it.effect.each(Object.entries(grants))(
    "ends the lease immediately, as a forced release (%s)",
    ([, grant]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const { waiting: acquiring } = yield* grant
        yield* TestClock.adjust("100 millis")
        yield* Mutex.forceRelease("m")
        faults.acquire = faults.release = "work"
        const successor = yield* start(Effect.provide(Mutex.acquire("m"), yield* another("next")))
        yield* TestClock.adjust("399 millis")
        assert.isUndefined(acquiring.pollUnsafe())
        yield* TestClock.adjust("2 millis")
        const lease = yield* Fiber.join(acquiring)
        assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "ForcedRelease")
        assert.isTrue(yield* (yield* Fiber.join(successor)).isHeld)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("ends only that lease, and the layer's next lease is not probed", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const { waiting: acquiring } = yield* grants["to the first request"]
      yield* TestClock.adjust("100 millis")
      yield* Mutex.forceRelease("m")
      faults.acquire = "work"
      yield* TestClock.adjust("1 second")
      assert.isFalse(yield* (yield* Fiber.join(acquiring)).isHeld)
      assert.strictEqual(yield* calls("guard"), 1)
      const lease = yield* Mutex.acquire("m")
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* lease.isHeld)
      assert.strictEqual(yield* calls("guard"), 1)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

it.effect("a forced release during a renewal is detected by the next renewal, immediately after the reply", () =>
  Effect.gen(function*() {
    const faults = yield* Faults
    const lease = yield* Mutex.acquire("m")
    faults.guard = { late: "500 millis" }
    yield* TestClock.adjust("10 seconds")
    yield* TestClock.adjust("100 millis")
    yield* Mutex.forceRelease("m")
    yield* TestClock.adjust("399 millis")
    assert.strictEqual(yield* calls("guard"), 1)
    faults.guard = "work"
    yield* TestClock.adjust("1 millis")
    assert.strictEqual(yield* calls("guard"), 2)
    assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "ForcedRelease")
  }).pipe(Effect.scoped, Effect.provide(TestLive)))
