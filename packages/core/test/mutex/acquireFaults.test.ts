/** Acquires that something outside of them fails: a tracer, a store that is silent, a lease that ends too early. */
import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Scope, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { instant } from "../../src/internal/lease/instant.ts"
import * as timerQueue from "../../src/internal/lease/timerQueue.ts"
import * as attempt from "../../src/internal/mutex/attempt.ts"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"

const hold = Effect.fnUntraced(function*(name: string) {
  const scope = yield* Scope.make()
  yield* Scope.provide(Mutex.acquire(name), scope)
  return Scope.close(scope, Exit.void)
})

/** Throws once: when a span of an acquire begins, or when it ends. */
const brokenTracer = (when: "begins" | "ends") => {
  let isBroken = true
  const fail = () => {
    isBroken = false
    throw new Error("the tracer is broken")
  }
  return Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      if (options.name !== "simba.acquire" || !isBroken) return span
      if (when === "begins") fail()
      const end = span.end.bind(span)
      span.end = (time, exit) => isBroken ? fail() : end(time, exit)
      return span
    }
  })
}

describe("a tracer that throws once", () => {
  const broken = (["begins", "ends"] as const).flatMap((when) =>
    ([["fair", {}], ["unfair", { unfair: true }]] as const).map(([name, options]) => [when, name, options] as const)
  )

  it.effect.each(broken)(
    "when the span %s leaves neither a lease nor a place in line behind (%s)",
    ([when, , options]) =>
      Effect.gen(function*() {
        const tracer = brokenTracer(when)
        assert.isTrue(
          Exit.hasDies(yield* Effect.exit(Effect.withTracer(Mutex.withLock("m", options)(Effect.void), tracer)))
        )
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
        yield* Mutex.withLock("m", { ...options, timeout: "1 second" })(Effect.void)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect.each(broken)(
    "when the span of a try %s leaves nothing behind (%s)",
    ([when, , options]) =>
      Effect.gen(function*() {
        const tracer = brokenTracer(when)
        const asking = Effect.withTracer(Mutex.withLockIfAvailable("m", options)(Effect.void), tracer)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(asking)))
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
        yield* Mutex.withLock("m", { ...options, timeout: "1 second" })(Effect.void)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("when the span of a waiter begins keeps nobody else waiting", () =>
    Effect.gen(function*() {
      const letGo = yield* hold("m")
      const waiting = Effect.withTracer(Mutex.withLock("m")(Effect.void), brokenTracer("begins"))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(waiting)))
      const next = yield* start(Mutex.withLock("m")(Effect.void))
      yield* letGo
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(next.pollUnsafe(), Exit.void)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("a store that does not answer", () => {
  const isOutage = (exit: Exit.Exit<unknown, unknown> | undefined) => {
    assert.isTrue(exit !== undefined && Exit.isFailure(exit))
    assert.deepInclude(Exit.findErrorOption(exit as Exit.Exit<unknown, object>), { _tag: "Some" })
    assert.deepInclude((Exit.findErrorOption(exit as Exit.Exit<unknown, object>) as { value: object }).value, {
      _tag: "BackendError",
      operation: "acquire",
      retryable: true
    })
  }

  it.effect.each([["fair", {}], ["unfair", { unfair: true }]] as const)(
    "fails every acquire after a lease, and holds up none behind it (%s)",
    ([, options]) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        faults.acquire = "hang"
        const asking = yield* start(Mutex.withLock("m", options)(Effect.void))
        const behind = yield* start(Mutex.withLock("m", options)(Effect.void))
        const trying = yield* start(Mutex.withLockIfAvailable("n", options)(Effect.void))
        yield* TestClock.adjust("15999 millis")
        assert.isUndefined(asking.pollUnsafe())
        assert.isUndefined(trying.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        for (const fiber of [asking, behind, trying]) isOutage(fiber.pollUnsafe())
        faults.acquire = "work"
        yield* Mutex.withLock("m", { ...options, timeout: "1 second" })(Effect.void)
        yield* Mutex.withLock("n", { ...options, timeout: "1 second" })(Effect.void)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("fails an acquire that has seen an outage before, too", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = "fail"
      const asking = yield* start(Mutex.withLock("m")(Effect.void))
      yield* TestClock.adjust("10 seconds")
      faults.acquire = "hang"
      yield* TestClock.adjust("6001 millis")
      isOutage(asking.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect.each(["acquire", "subscribe"] as const)(
    "fails who waits in line, by its own lease (%s)",
    (hanging) =>
      Effect.gen(function*() {
        const faults = yield* Faults
        yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
        if (hanging === "subscribe") faults.subscribe = "hang"
        const waiting = yield* start(Mutex.withLock("m", { ttl: "3 seconds", transition: "3 seconds" })(Effect.void))
        yield* TestClock.adjust(1)
        if (hanging === "acquire") faults.acquire = "hang"
        // The holder's lease ends after 16 seconds, so that a waiter looks after that at the latest
        yield* TestClock.adjust("30 seconds")
        isOutage(waiting.pollUnsafe())
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )
})

describe("acquireAll", () => {
  it.effect("gives up when the first lease has been held for its longest", () =>
    Effect.gen(function*() {
      yield* Effect.provide(Mutex.acquire("b"), yield* another("them"))
      const all = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"], { maxHold: "3 seconds" }))))
      yield* TestClock.adjust("2999 millis")
      assert.isUndefined(all.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const error = yield* Fiber.join(all)
      assert.deepInclude(error, { _tag: "AcquireTimeout", mutex: "b", timeout: Duration.seconds(3) })
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* Mutex.owner("a"))._tag, "Free")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("fails where a lease was lost while the next was waited for", () =>
    Effect.gen(function*() {
      const letGo = yield* Effect.provide(hold("b"), yield* another("them"))
      const all = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"]))))
      yield* TestClock.adjust("1 second")
      yield* Mutex.forceRelease("a")
      yield* TestClock.adjust("1 second")
      yield* letGo
      yield* TestClock.adjust("1 second")
      const error = yield* Fiber.join(all)
      assert.deepInclude(error, { _tag: "BackendError", operation: "acquireAll", retryable: true })
      assert.strictEqual((yield* Mutex.owner("b"))._tag, "Free")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("an answer or a hint that is worth little", () => {
  it.effect("a grant with less than the margin left is asked for again", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.acquire = { late: "15300 millis" }
      const asking = yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("1 second")
      faults.acquire = "work"
      yield* TestClock.adjust("14300 millis")
      assert.isAtLeast(yield* timeLeft(yield* Fiber.join(asking)), 15_200)
      assert.deepStrictEqual(faults.calls, ["acquire try", "acquire try"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a hint to look later does not lengthen a wait", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const timers = yield* timerQueue.make
      const next = Effect.succeed({ _tag: "LookIn", delay: Duration.hours(1) } as const)
      let told = 0
      const once = Effect.suspend(() => told++ === 0 ? next : Effect.never)
      const waiting = yield* start(
        attempt.awaitWakeUp(
          { next: once, bound: undefined },
          { now: () => instant(clock), timers },
          Duration.seconds(10)
        )
      )
      yield* TestClock.adjust("9999 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(waiting.pollUnsafe(), Exit.succeed(false))
    }).pipe(Effect.scoped))
})
