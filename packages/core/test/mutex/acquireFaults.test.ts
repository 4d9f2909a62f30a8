/**
 * Acquires while something else fails: the tracer throws, the logger throws, the store does not reply, or a lease ends
 * early.
 */
import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, Option, References, Scope, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { instant } from "../../src/internal/lease/instant.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const hold = (name: string) =>
  Effect.flatMap(
    Scope.make(),
    (scope) => Effect.as(Scope.provide(Mutex.acquire(name), scope), Scope.close(scope, Exit.void))
  )

/** A tracer that throws when one of the library's spans begins, is annotated with a lease, or ends. */
const brokenTracer = (when: "begins" | "is annotated" | "ends") => {
  const broken: Array<string> = []
  const fail = (name: string) => {
    broken.push(name)
    throw new Error("the tracer is broken")
  }
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      const { name } = options
      if (!name.startsWith("simba.")) return span
      if (when === "begins") fail(name)
      if (when === "ends") span.end = () => fail(name)
      if (when === "is annotated") span.attribute = (key) => key === "simba.token" ? fail(name) : undefined
      return span
    }
  })
  return { broken, tracer }
}

describe("a tracer that throws", () => {
  it.effect.each(["begins", "is annotated", "ends"] as const)(
    "has no effect if it throws when a span %s",
    (when) =>
      Effect.gen(function*() {
        const { broken, tracer } = brokenTracer(when)
        const program = Effect.gen(function*() {
          assert.strictEqual(yield* Mutex.withLock("m")(Effect.succeed(1)), 1)
          assert.deepStrictEqual(yield* Mutex.withLockIfAvailable("m")(Effect.succeed(2)), Option.some(2))
          assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
          // Another fiber waits behind the holder
          const letGo = yield* hold("m")
          const waiting = yield* start(Mutex.withLock("m")(Effect.succeed(3)))
          yield* TestClock.adjust("1 second")
          yield* letGo
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual(waiting.pollUnsafe(), Exit.succeed(3))
          assert.deepStrictEqual(
            yield* Effect.flip(Mutex.withLock("m")(Effect.fail("the work's own" as const))),
            "the work's own"
          )
        })
        yield* Effect.withTracer(program, tracer)
        yield* TestClock.adjust(1)
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
        assert.includeMembers(broken, ["simba.acquire", "simba.withLock"])
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect.each(["begins", "ends"] as const)(
    "does not stop renewals if it throws when a renewal's span %s",
    (when) => {
      const { broken, tracer } = brokenTracer(when)
      return Effect.gen(function*() {
        const lease = yield* Mutex.acquire("m")
        yield* TestClock.adjust("1 minute")
        assert.isTrue(yield* lease.isHeld)
        assert.include(broken, "simba.renew")
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.withTracer(tracer))
    }
  )
})

describe("a logger that throws", () => {
  const broken = Logger.make<unknown, void>(() => {
    throw new Error("the logger is broken")
  })
  const live = Mutex.layer({ processName: "us" }).pipe(
    Layer.provideMerge(FaultyStore.layer),
    Layer.provideMerge(Logger.layer([broken])),
    Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Trace"))
  )

  it.effect("prevents neither grants nor loss reports", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      assert.strictEqual(yield* Mutex.withLock("m")(Effect.succeed(1)), 1)
      const crashing = Effect.onInterrupt(Effect.never, () => Effect.die("a crash"))
      const losing = yield* start(Effect.flip(Mutex.withLock("m")(crashing)))
      const waiting = yield* start(Mutex.withLock("m")(Effect.succeed(2)))
      yield* TestClock.adjust("1 second")
      faults.guard = "fail"
      yield* TestClock.adjust("20 seconds")
      faults.guard = "work"
      yield* TestClock.adjust("20 seconds")
      assert.deepInclude((yield* Fiber.join(losing)) as object, { _tag: "LeaseLost", reason: { _tag: "BackendGone" } })
      assert.strictEqual(yield* Fiber.join(waiting), 2)
      faults.release = "fail"
      yield* Mutex.withLock("m")(Effect.void)
      yield* TestClock.adjust("20 seconds")
      faults.release = "work"
      assert.strictEqual(yield* Mutex.withLock("m", { timeout: "1 second" })(Effect.succeed(3)), 3)
    }).pipe(Effect.scoped, Effect.provide(live)))
})

describe("a store that does not reply", () => {
  const isOutage = (exit: Exit.Exit<unknown, unknown> | undefined) => {
    assert.isTrue(exit !== undefined && Exit.isFailure(exit))
    assert.deepInclude(Exit.findErrorOption(exit as Exit.Exit<unknown, object>), { _tag: "Some" })
    assert.deepInclude((Exit.findErrorOption(exit as Exit.Exit<unknown, object>) as { value: object }).value, {
      _tag: "BackendError",
      operation: "acquire",
      isRetryable: true
    })
  }

  it.effect(
    "makes every acquire fail after the duration of a lease, without delaying later acquires",
    () =>
      Effect.gen(function*() {
        const faults = yield* FaultyStore.Faults
        faults.acquire = "hang"
        const asking = yield* start(Mutex.withLock("m")(Effect.void))
        const behind = yield* start(Mutex.withLock("m")(Effect.void))
        const trying = yield* start(Mutex.withLockIfAvailable("n")(Effect.void))
        yield* TestClock.adjust("15999 millis")
        assert.isUndefined(asking.pollUnsafe())
        assert.isUndefined(trying.pollUnsafe())
        yield* TestClock.adjust("1 millis")
        for (const fiber of [asking, behind, trying]) isOutage(fiber.pollUnsafe())
        faults.acquire = "work"
        yield* Mutex.withLock("m", { timeout: "1 second" })(Effect.void)
        yield* Mutex.withLock("n", { timeout: "1 second" })(Effect.void)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("makes an acquire fail even if its earlier requests failed in an outage", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      faults.acquire = "fail"
      const asking = yield* start(Mutex.withLock("m")(Effect.void))
      yield* TestClock.adjust("10 seconds")
      faults.acquire = "hang"
      yield* TestClock.adjust("6001 millis")
      isOutage(asking.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("makes each acquire fail after the duration of its own lease, measured from its first request without a reply", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      faults.acquire = "hang"
      const wait = (ttl: number) =>
        start(Mutex.withLock("m", { ttl: ttl * 1000, transition: "6 seconds" })(Effect.void))
      const head = yield* wait(10)
      const long = yield* wait(20)
      const short = yield* wait(3)
      yield* TestClock.adjust("2 seconds")
      const late = yield* wait(4)
      const ended = [short, late, head, long]
      for (const [index, seconds] of [9, 12, 16, 26].entries()) {
        const { monotonic } = instant(yield* Clock.Clock)
        yield* TestClock.adjust(seconds * 1000 - monotonic - 1)
        assert.isUndefined(ended[index]!.pollUnsafe(), `${index}`)
        yield* TestClock.adjust(1)
        isOutage(ended[index]!.pollUnsafe())
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("makes a queued waiter fail after the duration of its own lease", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const waiting = yield* start(Mutex.withLock("m", { ttl: "3 seconds", transition: "3 seconds" })(Effect.void))
      yield* TestClock.adjust(1)
      faults.acquire = "hang"
      // The holder's lease ends after 16 seconds, so the waiter polls no later than that
      yield* TestClock.adjust("30 seconds")
      isOutage(waiting.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("an acquire that times out in an outage does not report a busy mutex", () => {
  const timingOut = Effect.flip(Mutex.withLock("m", { timeout: "3 seconds" })(Effect.void))

  it.effect.each(
    [
      ["fail", "outage"],
      ["hang", "no reply within 3s"],
      [{ late: "4 seconds" }, "no reply within 3s"]
    ] as const
  )("a free mutex (store mode: %j)", ([acquire, cause]) =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      faults.acquire = acquire
      const asks = yield* start(timingOut)
      const waits = yield* start(timingOut)
      yield* TestClock.adjust("2 seconds")
      const late = yield* start(timingOut)
      yield* TestClock.adjust("3 seconds")
      for (const fiber of [asks, waits, late]) {
        const error = yield* Fiber.join(fiber)
        assert.deepInclude(error, { _tag: "BackendError", isRetryable: true })
        assert.include(error.message, cause)
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect.each([["fail", "outage"], ["hang", "no reply"]] as const)(
    "a held mutex whose queue cannot be joined (%s)",
    ([acquire, cause]) =>
      Effect.gen(function*() {
        const faults = yield* FaultyStore.Faults
        yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
        // The layer knows that the mutex is held, so its next acquire queues without a try-acquire
        yield* Mutex.acquireIfAvailable("m")
        faults.acquire = acquire
        const waiting = yield* start(timingOut)
        yield* TestClock.adjust("3 seconds")
        const error = yield* Fiber.join(waiting)
        assert.deepInclude(error, { _tag: "BackendError", isRetryable: true })
        assert.include(error.message, cause)
      }).pipe(Effect.scoped, Effect.provide(TestLive))
  )

  it.effect("a reply after the outage counts", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      faults.acquire = "fail"
      const waiting = yield* start(timingOut)
      yield* TestClock.adjust("1 second")
      faults.acquire = "work"
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude(yield* Fiber.join(waiting), { _tag: "AcquireTimeout", mutex: "m" })
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a timeout reports a busy mutex even if another request has just been sent", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      yield* Effect.provide(Mutex.acquire("m", { ttl: "1 second", transition: "1900 millis" }), yield* another("them"))
      const waiting = yield* start(timingOut)
      yield* TestClock.adjust("1 second")
      faults.acquire = { late: "1 second" }
      // The waiter polls at the time when the last known lease may have ended
      yield* TestClock.adjust("2 seconds")
      assert.deepInclude(yield* Fiber.join(waiting), { _tag: "AcquireTimeout", mutex: "m" })
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("an acquire of a mutex that its own process holds", () => {
  const logging = () => {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
      if (logLevel === "Warn") lines.push(String(message))
    })
    const live = Mutex.layer({ processName: "us" }).pipe(
      Layer.provideMerge(FaultyStore.layer),
      Layer.provideMerge(Logger.layer([logger]))
    )
    return { lines, live }
  }

  it.effect("is reported once, after five seconds, and the timeout error names this process", () => {
    const { lines, live } = logging()
    return Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m")
      const repeated = yield* start(Effect.flip(Mutex.acquire("m", { timeout: "1 minute" })))
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(lines, [])
      yield* TestClock.adjust("1 millis")
      assert.lengthOf(lines, 1)
      assert.include(lines[0], `This process has held mutex "m" for 5s (token ${lease.token})`)
      yield* TestClock.adjust("55 seconds")
      const error = yield* Fiber.join(repeated)
      assert.deepInclude(error, { _tag: "AcquireTimeout", isLocal: true, owner: lease.id })
      assert.include(error.message, "in this process")
      yield* start(Mutex.acquire("m", { timeout: "1 minute" }).pipe(Effect.ignore))
      yield* TestClock.adjust("2 minutes")
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped, Effect.provide(live))
  })

  it.effect("is not reported if leases keep changing hands, or if another process holds the mutex", () => {
    const { lines, live } = logging()
    return Effect.gen(function*() {
      const works = yield* Effect.forEach(
        Array.from({ length: 10 }),
        () => start(Mutex.withLock("m")(Effect.sleep("4 seconds")))
      )
      yield* TestClock.adjust("41 seconds")
      for (const work of works) assert.isDefined(work.pollUnsafe())
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      yield* start(Mutex.acquire("m", { timeout: "10 seconds" }).pipe(Effect.ignore))
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(lines, [])
      yield* Mutex.acquire("n")
      yield* start(Mutex.acquire("n"))
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped, Effect.provide(live))
  })
})

describe("acquireAll", () => {
  it.effect("gives up when the first lease reaches its maxHold", () =>
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

  it.effect("has the time left until its earliest deadline, and no time left after a loss, which names the lost mutex", () =>
    Effect.gen(function*() {
      const letGo = yield* Effect.provide(hold("b"), yield* another("them"))
      const all = yield* start(Mutex.acquireAll(["a", "b"]))
      yield* TestClock.adjust("3 seconds")
      yield* letGo
      const group = yield* Fiber.join(all)
      assert.strictEqual(yield* timeLeft(group), 12_200)
      yield* Mutex.forceRelease("b")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* timeLeft(group), 0)
      assert.deepInclude(yield* Effect.flip(group.ensure), { _tag: "LeaseLost", resource: "b" })
      assert.deepInclude(yield* group.lost, { resource: "b", reason: { _tag: "ForcedRelease" } })
      assert.isTrue(yield* group.leases[0]!.isHeld)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("sends no more requests after its timeout, even if no timer has fired", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const faults = yield* FaultyStore.Faults
        faults.acquire = { late: "500 millis" }
        const all = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b"], { timeout: "1 second" }))))
        stall.millis = 2000
        yield* TestClock.adjust("500 millis")
        const error = yield* Fiber.join(all)
        assert.deepInclude(error, { _tag: "AcquireTimeout", mutex: "b", timeout: Duration.seconds(1) })
        assert.deepStrictEqual(faults.calls, ["acquire try", "release"])
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }).pipe(Effect.scoped))

  it.effect("fails immediately if it loses a lease while it waits for the next one", () =>
    Effect.gen(function*() {
      const letGo = yield* Effect.provide(hold("c"), yield* another("them"))
      const all = yield* start(Effect.flip(Effect.scoped(Mutex.acquireAll(["a", "b", "c"]))))
      yield* TestClock.adjust("1 second")
      yield* Mutex.forceRelease("b")
      yield* TestClock.adjust("1 second")
      assert.isDefined(all.pollUnsafe(), "fails even though the third mutex is still held")
      const error = yield* Fiber.join(all)
      assert.deepInclude(error, { _tag: "LeaseLost", resource: "b", reason: { _tag: "ForcedRelease" } })
      assert.strictEqual((yield* Mutex.owner("a"))._tag, "Free")
      assert.strictEqual((yield* Mutex.inspect("c")).waiting, 0)
      yield* letGo
      assert.strictEqual((yield* Mutex.owner("c"))._tag, "Free")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("an acquire's request", () => {
  it.effect("is repeated if the granted lease has no more than the margin left", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      for (const [late, requests] of [[15_199, 1], [15_200, 2], [15_300, 2]] as const) {
        faults.calls.length = 0
        faults.acquire = { late }
        const asking = yield* start(Mutex.acquire(`m ${late}`))
        yield* TestClock.adjust("1 second")
        faults.acquire = "work"
        yield* TestClock.adjust(late - 1000)
        assert.strictEqual(yield* timeLeft(yield* Fiber.join(asking)), 15_200, "renewed, or granted again")
        assert.lengthOf(faults.calls.filter((call) => call === "acquire try"), requests, String(late))
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("is retried after pauses that start at 50 ms and double, with a jitter of a fifth", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      faults.acquire = "fail"
      yield* start(Effect.ignore(Mutex.acquire("m")))
      const sent: Array<number> = []
      for (const millis of [39, 22, 120, 240]) {
        yield* TestClock.adjust(millis)
        sent.push(faults.calls.length)
      }
      assert.deepStrictEqual([sent[0], sent[1]], [1, 2])
      assert.isAtLeast(sent[2]!, 3)
      assert.isAtLeast(sent[3]!, 4)
      assert.isAtMost(sent[3]!, 5)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})
