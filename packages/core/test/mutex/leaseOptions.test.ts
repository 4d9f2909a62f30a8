import { Mutex, type SimbaError } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber, Layer, Logger, Option, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import { start, TestLive, timeLeft } from "../support/setup.ts"

const calls = (name: string) =>
  Effect.map(Faults, (faults) => faults.calls.filter((call) => call.startsWith(name)).length)

const tagOf = (ownership: { readonly _tag: string }) => ownership._tag

/** A probe that returns the current value of `reply` and counts its calls. */
const probe = (reply: Effect.Effect<boolean, unknown>) => {
  const asked = { times: 0 }
  const alive = Effect.suspend(() => {
    asked.times++
    return reply
  })
  return { asked, alive }
}

describe("maxHold", { tags: ["B31"] }, () => {
  it.effect("ends a lease that is still being renewed, but not too early", () =>
    Effect.gen(function*() {
      const fiber = yield* start(Effect.flip(Mutex.withLock("m", { maxHold: "1 hour" })(Effect.never)))
      yield* TestClock.adjust(Duration.millis(3_600_000 - 1))
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const loss = yield* Fiber.join(fiber)
      assert.deepInclude(loss, { _tag: "LeaseLost", reason: { _tag: "Expired" } })
      yield* Effect.yieldNow
      assert.strictEqual(tagOf(yield* Mutex.owner("m")), "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("stops renewals once the lease lasts until the end of maxHold", () =>
    Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m", { maxHold: "25 seconds" })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* timeLeft(lease), 15_000)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* calls("guard"), 1)
      assert.strictEqual((yield* lease.lost).reason._tag, "Expired")
    }).pipe(Effect.provide(TestLive)))

  it.effect("may be shorter than ttl, and is measured from when the request was sent", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "300 millis" }
      const acquiring = yield* start(Mutex.acquire("m", { maxHold: "1 second" }))
      yield* TestClock.adjust("300 millis")
      const lease = yield* Fiber.join(acquiring)
      assert.strictEqual(yield* timeLeft(lease), 700)
      yield* TestClock.adjust("700 millis")
      assert.isFalse(yield* lease.isHeld)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* calls("guard"), 0)
    }).pipe(Effect.provide(TestLive)))

  it.effect("ends the lease without a retry if it passes before the grant is known", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "20 millis" }
      let ran = false
      const options = { maxHold: "10 millis", timeout: "5 minutes" } as const
      const fiber = yield* start(Effect.flip(Mutex.withLock("m", options)(Effect.sync(() => ran = true))))
      yield* TestClock.adjust("20 millis")
      assert.deepInclude(yield* Fiber.join(fiber), { _tag: "LeaseLost", reason: { _tag: "Expired" } })
      assert.isFalse(ran)
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      assert.deepStrictEqual(faults.calls, ["acquire try", "release"])
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "releases the mutex only after the work and its finalizers have ended",
    () =>
      Effect.gen(function*() {
        const fiber = yield* start(
          Effect.flip(
            Mutex.withLock("m", { maxHold: "5 seconds" })(
              Effect.onInterrupt(Effect.never, () => Effect.sleep("3 seconds"))
            )
          )
        )
        yield* TestClock.adjust("7999 millis")
        assert.isUndefined(fiber.pollUnsafe())
        assert.strictEqual(tagOf(yield* Mutex.owner("m")), "Held")
        yield* TestClock.adjust("1 millis")
        assert.strictEqual((yield* Fiber.join(fiber))._tag, "LeaseLost")
        yield* Effect.yieldNow
        assert.strictEqual(tagOf(yield* Mutex.owner("m")), "Free")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["L4"] }
  )

  it.effect("is an option for every way to acquire", () =>
    Effect.gen(function*() {
      const options = { maxHold: "2 seconds" } as const
      const tried = Option.getOrThrow(yield* Mutex.acquireIfAvailable("a", options))
      const group = yield* Mutex.acquireAll(["b", "c"], options)
      const available = yield* start(Effect.flip(Mutex.withLockIfAvailable("d", options)(Effect.never)))
      yield* TestClock.adjust("2 seconds")
      assert.isFalse(yield* tried.isHeld)
      assert.isFalse(yield* group.isHeld)
      assert.strictEqual((yield* Fiber.join(available))._tag, "LeaseLost")
    }).pipe(Effect.provide(TestLive)))
})

describe("isAlive", { tags: ["B31"] }, () => {
  it.effect("runs only before each renewal", () =>
    Effect.gen(function*() {
      const { alive, asked } = probe(Effect.succeed(true))
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m", { isAlive: alive }), scope)
      yield* TestClock.adjust("9999 millis")
      assert.strictEqual(asked.times, 0)
      yield* TestClock.adjust("35 seconds")
      assert.strictEqual(asked.times, 4)
      assert.strictEqual(yield* calls("guard"), 4)
      assert.isTrue(yield* lease.isHeld)
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(asked.times, 4)
    }).pipe(Effect.provide(TestLive)))

  const dead: ReadonlyArray<readonly [string, Effect.Effect<boolean, unknown>]> = [
    ["says no", Effect.succeed(false)],
    ["fails", Effect.fail("broken")],
    ["dies", Effect.die("broken")],
    ["hangs", Effect.never],
    ["hangs and cannot be interrupted", Effect.uninterruptible(Effect.as(Effect.sleep("1 minute"), true))]
  ]

  it.effect.each(dead)("ends the lease at its deadline if the probe %s", ([, reply]) =>
    Effect.gen(function*() {
      const { alive, asked } = probe(reply)
      const fiber = yield* start(Effect.flip(Mutex.withLock("m", { isAlive: alive })(Effect.never)))
      yield* TestClock.adjust("15199 millis")
      assert.isUndefined(fiber.pollUnsafe())
      assert.isAbove(asked.times, 0)
      yield* TestClock.adjust("1 millis")
      assert.deepInclude(yield* Fiber.join(fiber), { _tag: "LeaseLost", reason: { _tag: "Expired" } })
      assert.strictEqual(yield* calls("guard"), 0)
      yield* Effect.yieldNow
      assert.strictEqual(tagOf(yield* Mutex.owner("m")), "Free")
      yield* TestClock.adjust("1 minute")
    }).pipe(Effect.provide(TestLive)))

  it.effect("lets a holder that recovers in time keep its lease", () =>
    Effect.gen(function*() {
      let reply = false
      const { alive, asked } = probe(Effect.sync(() => reply))
      const lease = yield* Mutex.acquire("m", { isAlive: alive })
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(asked.times, 1)
      yield* TestClock.adjust("3500 millis")
      assert.isAbove(asked.times, 2)
      assert.strictEqual(yield* calls("guard"), 0)
      reply = true
      yield* TestClock.adjust("1500 millis")
      assert.strictEqual(yield* calls("guard"), 1)
      yield* TestClock.adjust("1 hour")
      assert.isTrue(yield* lease.isHeld)
      reply = false
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* lease.lost).reason._tag, "Expired")
    }).pipe(Effect.provide(TestLive)))

  it.effect("still reports a loss in an outage as BackendGone if the holder is alive", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      const lease = yield* Mutex.acquire("m", { isAlive: Effect.succeed(true) })
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual((yield* lease.lost).reason._tag, "BackendGone")
      assert.isAbove(yield* calls("guard"), 3)
    }).pipe(Effect.provide(TestLive)))

  it.effect("makes the loss Expired if the holder is no longer alive after an outage", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      let reply = true
      const lease = yield* Mutex.acquire("m", { isAlive: Effect.sync(() => reply) })
      yield* TestClock.adjust("11 seconds")
      assert.isAbove(yield* calls("guard"), 0)
      faults.guard = "work"
      reply = false
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* lease.lost).reason._tag, "Expired")
    }).pipe(Effect.provide(TestLive)))

  it.effect("does not delay other leases if the probe is slow", () =>
    Effect.gen(function*() {
      yield* Mutex.acquire("stuck", { isAlive: Effect.never })
      const probed = yield* Mutex.acquire("probed", { isAlive: Effect.succeed(true) })
      const plain = yield* Mutex.acquire("plain")
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* timeLeft(probed), 15_200)
      assert.strictEqual(yield* timeLeft(plain), 15_200)
    }).pipe(Effect.provide(TestLive)))

  it.effect("allows leases to be renewed in batches", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 300; i++) yield* Mutex.acquire(`m${i}`, { isAlive: Effect.succeed(true) })
      yield* TestClock.adjust("10 seconds")
      assert.isAtMost(yield* calls("guard"), 4)
    }).pipe(Effect.provide(TestLive)), { tags: ["L6"] })
})

describe("lease options are checked by the call", () => {
  const wrong: ReadonlyArray<readonly [string, Mutex.LeaseOptions]> = [
    ["maxHold", { maxHold: 0 }],
    ["maxHold", { maxHold: "-1 seconds" }],
    ["maxHold", { maxHold: Duration.infinity }],
    ["maxHold", { maxHold: "soon" as never }],
    ["isAlive", { isAlive: true as never }],
    ["transition", { isAlive: Effect.succeed(true), transition: "2500 millis" }]
  ]

  it.effect.each(wrong)("%s: %j", ([option, options]) =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const errors: ReadonlyArray<SimbaError.InvalidConfig> = (yield* Effect.all([
        Effect.flip(Mutex.acquire("m", options)),
        Effect.flip(Mutex.acquireIfAvailable("m", options)),
        Effect.flip(Mutex.withLock("m", options)(Effect.void)),
        Effect.flip(Mutex.withLockIfAvailable("m", options)(Effect.void)),
        Effect.flip(Mutex.acquireAll(["m"], options))
      ])) as never
      for (const error of errors) assert.deepInclude(error, { _tag: "InvalidConfig", option })
      assert.deepStrictEqual(faults.calls, [])
    }).pipe(Effect.provide(TestLive)))
})

describe("a layer with a very short ttl", () => {
  it.effect.each([[10, 1], ["99 millis", 1], ["100 millis", 0]] as const)(
    "%s: %d warning",
    ([ttl, count]) =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.layer([Logger.make(({ message }) => {
          lines.push(String(message))
        })])
        const layer = Mutex.layerMemory({ ttl, transition: "5 seconds" })
        yield* Effect.scoped(Layer.build(Layer.fresh(layer))).pipe(Effect.provide(logger))
        assert.strictEqual(lines.filter((line) => line.includes("very short")).length, count)
      })
  )
})
