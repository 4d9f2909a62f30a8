import { FencingToken, Mutex, MutexMetrics, MutexName, type SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, Metric, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import * as grantingStore from "../support/grantingStore.ts"
import { Backend, GrantingLive, outage, turn } from "../support/grantingStore.ts"
import { guarding } from "../support/requests.ts"
import { start } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

describe("onOverrun", { tags: ["B26"] }, () => {
  const overrunning = (overruns: Array<SimbaError.LeaseLost>, hook: Effect.Effect<void> = Effect.void) =>
    Mutex.layer({
      onOverrun: (loss) =>
        Effect.suspend(() => {
          overruns.push(loss)
          return hook
        })
    }).pipe(Layer.provideMerge(FaultyStore.layer), Layer.provideMerge(Logger.layer([])))

  const stubborn = (duration: Duration.Input) => Effect.uninterruptible(Effect.sleep(duration))

  it.effect("runs once, when the lease has ended on the server but uninterruptible work has not", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const faults = yield* Faults
      const fiber = yield* start(Effect.flip(Mutex.withLock("m")(stubborn("1 minute"))))
      faults.guard = "fail"
      // The deadline is at 15.2 s, and the lease ends on the server at 16 s
      yield* TestClock.adjust("15999 millis")
      assert.strictEqual(overruns.length, 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(overruns.length, 1)
      assert.deepInclude(overruns[0], { resource: "m", reason: { _tag: "BackendGone" } })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "LeaseLost")
      assert.strictEqual(overruns.length, 1)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.overruns)).count, 1)
    }).pipe(
      Effect.provide(Layer.fresh(overrunning(overruns))),
      Effect.provideService(Metric.MetricRegistry, new Map())
    )
  })

  it.effect("does not run after its layer has closed", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const scope = yield* Scope.make()
      const mutex = yield* Layer.buildWithScope(overrunning(overruns), scope)
      yield* start(Effect.flip(Effect.provide(Mutex.withLock("m")(stubborn("1 minute")), mutex)))
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("700 millis")
      assert.isUndefined(closing.pollUnsafe(), "the close waits for the work")
      yield* TestClock.adjust("1400 millis")
      yield* Fiber.join(closing)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(overruns, [])
    })
  })

  it.effect("does not run if the work ends within the margin, or if the lease has no work", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      yield* start(Effect.flip(Mutex.withLock("m")(Effect.onInterrupt(Effect.never, () => Effect.sleep("700 millis")))))
      yield* Mutex.acquire("bare")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(overruns.length, 0)
    }).pipe(Effect.provide(overrunning(overruns)))
  })

  it.effect("does not run if the work ends immediately because its lease expired in its first step", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const work = Mutex.withLock("m")((lease) =>
          Effect.suspend(() => {
            stall.millis = 15_500
            return Effect.andThen(lease.isHeld, Effect.never)
          })
        )
        assert.strictEqual((yield* Effect.flip(work))._tag, "LeaseLost")
        yield* TestClock.adjust("1 hour")
        assert.strictEqual(overruns.length, 0)
      }).pipe(Effect.provide(overrunning(overruns)), Effect.provideService(Clock.Clock, clock))
    })
  })

  it.effect("runs one margin after a renewal finds that the lease is gone", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const mutex = MutexName.MutexName.make("m")
      const body = (id: MutexName.LeaseId) =>
        Effect.andThen(
          MutexStore.release(store, { mutex, id, confirm: Duration.seconds(1), lease: Duration.seconds(16) }),
          stubborn("1 minute")
        )
      yield* start(Effect.flip(Mutex.withLock("m")((lease) => body(lease.id))))
      yield* TestClock.adjust("10799 millis")
      assert.strictEqual(overruns.length, 0)
      yield* TestClock.adjust("1 millis")
      assert.deepInclude(overruns[0], { reason: { _tag: "Vanished" } })
      yield* TestClock.adjust("1 minute")
    }).pipe(Effect.provide(overrunning(overruns)))
  })

  it.effect("runs when a grant by message has ended on the server, if no reply has extended it", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const { micros, notify, reply } = yield* Backend
      const unrenewed = MutexStore.MutexStore.of({ ...store, guard: guarding(() => Effect.fail(outage)) })
      const mutex = yield* Layer.build(
        Layer.fresh(Mutex.layer({ onOverrun: (loss) => Effect.sync(() => void overruns.push(loss)) })).pipe(
          Layer.provide(Layer.succeed(MutexStore.MutexStore, unrenewed))
        )
      )
      yield* start(Effect.flip(Effect.provide(Mutex.withLock("m")(stubborn("1 minute")), mutex)))
      yield* TestClock.adjust(0)
      yield* reply(Exit.succeed(grantingStore.refusal({ micros: micros(0), token: 7 })))
      yield* TestClock.adjust(0)
      notify(turn({ token: FencingToken.FencingToken.make(8), micros: micros(0) }))
      // The deadline is at 1.4 s. The interrupted work has a margin, 0.8 s, to end
      yield* TestClock.adjust(2199)
      assert.strictEqual(overruns.length, 0)
      yield* TestClock.adjust(1)
      assert.deepInclude(overruns[0], { reason: { _tag: "BackendGone" } })
      yield* TestClock.adjust("1 minute")
    }).pipe(Effect.scoped, Effect.provide(GrantingLive))
  })

  it.effect("runs only after the lease has ended on the server, even if maxHold ended it earlier for its owner", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      yield* start(Effect.flip(Mutex.withLock("m", { maxHold: "20 seconds" })(stubborn("1 minute"))))
      yield* TestClock.adjust("25999 millis")
      assert.strictEqual(overruns.length, 0)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(overruns.length, 1)
      yield* TestClock.adjust("1 minute")
    }).pipe(Effect.provide(overrunning(overruns)))
  })

  it.effect("does no harm if it dies", () => {
    const overruns: Array<SimbaError.LeaseLost> = []
    return Effect.gen(function*() {
      yield* start(Effect.flip(Mutex.withLock("a", { maxHold: "1 second" })(stubborn("1 minute"))))
      yield* start(Effect.flip(Mutex.withLock("b", { maxHold: "2 seconds" })(stubborn("1 minute"))))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(overruns.map((loss) => loss.resource), ["a", "b"])
      yield* Mutex.withLock("a")(Effect.void)
    }).pipe(Effect.provide(overrunning(overruns, Effect.die("broken"))))
  })

  it.effect("defaults to logging an error that names the mutex and the token", () => {
    const lines: Array<{ readonly level: string; readonly text: string; readonly annotations: unknown }> = []
    const logger = Logger.make((entry) => {
      lines.push({
        level: entry.logLevel,
        text: [entry.message].flat().map(String).join(" "),
        annotations: entry.fiber.getRef(References.CurrentLogAnnotations)
      })
    })
    const live = Mutex.layer().pipe(Layer.provideMerge(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
    return Effect.gen(function*() {
      let token = 0
      yield* start(Effect.flip(
        Mutex.withLock("m", { maxHold: "1 second" })((lease) => {
          token = lease.token
          return stubborn("1 minute")
        })
      ))
      yield* TestClock.adjust("1 minute")
      const errors = lines.filter((line) => line.level === "Error")
      assert.strictEqual(errors.length, 1)
      assert.include(errors[0]!.text, `lease ${token} of mutex "m"`)
      assert.deepInclude(errors[0]!.annotations as object, { mutex: "m", token })
    }).pipe(Effect.provide(live))
  })
})
