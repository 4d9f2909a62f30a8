/** What renewals log and count, and what a renewal schedule does after failures and crashes. */
import { Mutex, MutexMetrics, type MutexSchedule } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Layer, Logger, Metric, Schedule, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import { Faults } from "../support/faultyStore.ts"

/** A layer that records its error log lines and the times of its renewals, in milliseconds. */
const setup = Effect.fnUntraced(function*(guard?: MutexSchedule.MutexSchedule) {
  const errors: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Error") errors.push(String([message].flat()[0]))
  })
  const context = yield* Layer.build(
    Layer.fresh(
      Mutex.layer({ guard }).pipe(
        Layer.provideMerge(Layer.fresh(FaultyStore.layer)),
        Layer.provideMerge(Logger.layer([logger]))
      )
    )
  )
  const here = Effect.provideContext(context)
  const faults = yield* Effect.provideContext(Effect.service(Faults), context)
  const clock = yield* Clock.Clock
  const begun = clock.currentTimeMillisUnsafe()
  /** The start times of the renewals within the next `millis`. */
  const renewals = Effect.fnUntraced(function*(millis: number) {
    const at: Array<number> = []
    for (let passed = 0; passed < millis; passed += 10) {
      const before = faults.calls.filter((call) => call.startsWith("guard")).length
      yield* TestClock.adjust(10)
      const after = faults.calls.filter((call) => call.startsWith("guard")).length
      if (after > before) at.push(clock.currentTimeMillisUnsafe() - begun)
    }
    return at
  })
  return { errors, faults, here, renewals }
})

/** The intervals between consecutive instants. */
const gaps = (at: ReadonlyArray<number>) => at.slice(1).map((each, i) => each - at[i]!)

describe("a guard", () => {
  it.effect("restarts its backoff in each new series of failures", () =>
    Effect.gen(function*() {
      const { faults, here, renewals } = yield* setup()
      yield* here(Mutex.acquire("m"))
      for (const _ of [1, 2]) {
        faults.guard = "fail"
        const [first, second] = gaps(yield* renewals(11_500))
        assert.isAtMost(first!, 130)
        assert.isAbove(second!, first!)
        faults.guard = "work"
        yield* renewals(2000)
      }
    }).pipe(Effect.scoped))

  it.effect("keeps its state across renewals if it is a user's schedule", () =>
    Effect.gen(function*() {
      const growing = Schedule.fromStep(Effect.sync(() => {
        let seconds = 1
        return () => Effect.sync((): [number, Duration.Duration] => [seconds, Duration.seconds(seconds++)])
      }))
      const { here, renewals } = yield* setup(growing)
      yield* here(Mutex.acquire("m"))
      assert.deepStrictEqual(yield* renewals(10_500), [1000, 3000, 6000, 10_000])
    }).pipe(Effect.scoped))

  it.effect("decides when failed renewals are retried if it is a user's schedule, even near the deadline", () =>
    Effect.gen(function*() {
      const { faults, here, renewals } = yield* setup(Schedule.spaced("3 seconds"))
      yield* here(Mutex.acquire("m"))
      faults.guard = "fail"
      assert.deepStrictEqual(yield* renewals(15_500), [3000, 6000, 9000, 12_000, 15_000])
    }).pipe(Effect.scoped))

  it.effect.each([["crashes", Effect.die("boom")], ["interrupts itself", Effect.interrupt]] as const)(
    "is logged if it %s after a grant, and the lease is renewed at its ttl",
    ([, end]) =>
      Effect.gen(function*() {
        const { errors, here, renewals } = yield* setup(Schedule.fromStep(end))
        yield* here(Mutex.acquire("m"))
        assert.deepStrictEqual(errors, ["The guard crashed; renewing at ttl"])
        assert.deepStrictEqual(yield* renewals(21_000), [10_000, 20_000])
      }).pipe(Effect.scoped)
  )

  it.effect("is logged if it crashes after a failure, and the lease is renewed a second later", () =>
    Effect.gen(function*() {
      const { errors, faults, here, renewals } = yield* setup(
        Schedule.fromStep(
          Effect.succeed((_now: number, outcome: { readonly _tag: string }) =>
            outcome._tag === "Failed" ? Effect.die("boom") : Effect.succeed([0, Duration.seconds(2)] as never)
          )
        ) as never
      )
      yield* here(Mutex.acquire("m"))
      faults.guard = "fail"
      assert.deepStrictEqual(yield* renewals(2500), [2000])
      assert.deepStrictEqual(errors.map((line) => line.split(";")[0]), ["The renewal of a lease crashed"])
      faults.guard = "work"
      assert.deepStrictEqual(yield* renewals(3000), [3000, 5000])
      assert.lengthOf(errors, 1)
    }).pipe(Effect.scoped))

  it.effect("retries one second after each failure once it has ended", () =>
    Effect.gen(function*() {
      const { faults, here, renewals } = yield* setup(Schedule.recurs(0))
      yield* here(Mutex.acquire("m"))
      faults.guard = "fail"
      assert.deepStrictEqual(yield* renewals(13_500), [10_000, 11_000, 12_000, 13_000])
    }).pipe(Effect.scoped))
})

describe("a renewal", () => {
  it.effect("does not count as crashed if the lease is released in the meantime", () =>
    Effect.gen(function*() {
      for (const guard of [{ late: "500 millis" }, "hang"] as const) {
        const { errors, faults, here, renewals } = yield* setup()
        const [scope, other] = [yield* Scope.make(), yield* Scope.make()]
        yield* here(Scope.provide(Mutex.acquire("m"), scope))
        yield* here(Scope.provide(Mutex.acquire("other"), other))
        faults.guard = guard
        assert.lengthOf(yield* renewals(10_100), 1)
        yield* here(Scope.close(scope, { _tag: "Success", value: undefined } as never))
        yield* renewals(2000)
        assert.deepStrictEqual(errors, [])
      }
    }).pipe(Effect.scoped))

  it.effect("does not record a remaining time if it fails", () =>
    Effect.suspend(() =>
      Effect.gen(function*() {
        const { faults, here, renewals } = yield* setup()
        yield* here(Mutex.acquire("m"))
        faults.guard = "fail"
        yield* renewals(10_500)
        const left = Effect.map(here(Metric.value(MutexMetrics.mutex.timeLeftAtRenewal)), ({ count }) => count)
        assert.strictEqual(yield* left, 0)
        faults.guard = "work"
        yield* renewals(2000)
        assert.strictEqual(yield* left, 1)
      }).pipe(Effect.scoped, Effect.provideService(Metric.MetricRegistry, new Map()))
    ))

  it.effect("counts one loss if the lease was released by force", () =>
    Effect.suspend(() =>
      Effect.gen(function*() {
        const { here, renewals } = yield* setup()
        yield* here(Mutex.acquire("m"))
        yield* here(Mutex.forceRelease("m"))
        yield* renewals(11_000)
        assert.strictEqual((yield* here(Metric.value(MutexMetrics.mutex.renewals.lost))).count, 1)
      }).pipe(Effect.scoped, Effect.provideService(Metric.MetricRegistry, new Map()))
    ))
})
