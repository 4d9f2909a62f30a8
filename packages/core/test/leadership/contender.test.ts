import { Leadership, Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Logger, References, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import { acquiring } from "../support/requests.ts"
import { start, TestLive } from "../support/setup.ts"

/** Runs every fiber that can run, without moving the clock. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

const ownerOf = (mutex: string) => Effect.orDie(Effect.map(Mutex.owner(mutex), ({ _tag }) => _tag))

const isDone = (fiber: Fiber.Fiber<unknown, unknown>) => fiber.pollUnsafe() !== undefined

describe("stop", () => {
  /** Work whose first run takes five seconds to end after an interruption. */
  const slowToEnd = () => {
    let runs = 0
    return Effect.suspend(() =>
      runs++ > 0 ? Effect.never : Effect.onInterrupt(Effect.never, () => Effect.sleep("5 seconds"))
    )
  }

  it.effect("waits for the work, and stays in effect when an earlier step-down completes", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* start(jobs.whileLeader(slowToEnd()))
      yield* settle
      const down = yield* start(jobs.stepDown)
      yield* TestClock.adjust("1 second")
      const stop = yield* start(jobs.stop)
      yield* TestClock.adjust("3900 millis")
      assert.deepStrictEqual([isDone(down), isDone(stop)], [false, false])
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual([isDone(down), isDone(stop)], [true, true])
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* ownerOf("jobs"), "Free")
      yield* jobs.start
      yield* settle
      assert.strictEqual(yield* ownerOf("jobs"), "Held")
    }).pipe(Effect.provide(TestLive)))

  it.effect("lasts until start is called, which is possible even while the work is still ending", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      yield* jobs.stop
      yield* jobs.stepDown
      yield* settle
      assert.strictEqual(yield* ownerOf("jobs"), "Free")
      yield* jobs.start
      yield* start(jobs.whileLeader(slowToEnd()))
      yield* settle
      const stop = yield* start(jobs.stop)
      yield* TestClock.adjust("1 second")
      yield* jobs.start
      yield* TestClock.adjust("3 seconds")
      assert.isFalse(isDone(stop))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(isDone(stop))
      assert.strictEqual(yield* ownerOf("jobs"), "Held")
    }).pipe(Effect.provide(TestLive)))

  it.effect("continues even if its caller is interrupted", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* start(jobs.whileLeader(slowToEnd()))
      yield* settle
      yield* Fiber.interrupt(yield* start(jobs.stop))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* ownerOf("jobs"), "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("a contender never contends again once its scope is closed", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
      yield* start(jobs.whileLeader(slowToEnd()))
      yield* settle
      const asked = [yield* start(jobs.stepDown)]
      const closed = yield* start(Scope.close(scope, Exit.void))
      asked.push(yield* start(jobs.stepDown), yield* start(jobs.start), yield* start(jobs.stop))
      yield* TestClock.adjust("4 seconds")
      assert.isFalse(isDone(closed))
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([closed, ...asked].map(isDone), [true, true, true, true, true])
      yield* jobs.start
      yield* jobs.stepDown
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* ownerOf("jobs"), "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "closing releases the mutex only after the work has ended, even if the work closes the scope in its first step",
    () =>
      Effect.gen(function*() {
        const owners: Array<string> = []
        const scope = yield* Scope.make()
        const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
        yield* settle
        const work = Effect.andThen(
          Effect.forkDetach(Scope.close(scope, Exit.void), { startImmediately: true }),
          Effect.never
        ).pipe(Effect.ensuring(
          Effect.andThen(Effect.sleep("5 seconds"), Effect.map(ownerOf("jobs"), (owner) => owners.push(owner)))
        ))
        yield* start(jobs.whileLeader(work))
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(owners, ["Held"])
        assert.strictEqual(yield* ownerOf("jobs"), "Free")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["S13"] }
  )
})

describe("calls from inside the work", () => {
  const asks = ["stepDown", "stop"] as const
  type Asking = (ask: Effect.Effect<void>) => Effect.Effect<void>
  const batch = Effect.sleep("1 second")
  const ways: ReadonlyArray<readonly [string, Asking]> = [
    ["a finalizer", (ask) => Effect.ensuring(batch, ask)],
    ["a finalizer with a time limit", (ask) => Effect.ensuring(batch, Effect.timeoutOption(ask, "1 hour"))],
    ["an uninterruptible region", (ask) => Effect.uninterruptible(Effect.andThen(batch, ask))],
    [
      "fibers that a finalizer waits for",
      (ask) => Effect.ensuring(batch, Effect.all([ask, Effect.sleep(10), ask], { concurrency: "unbounded" }))
    ],
    [
      "a detached fiber that a finalizer waits for",
      (ask) => Effect.ensuring(batch, Effect.flatMap(Effect.forkDetach(ask), Fiber.await))
    ]
  ]

  for (const [way, asking] of ways) {
    it.effect(`from ${way}: return without waiting for that work`, () =>
      Effect.gen(function*() {
        for (const ask of asks) {
          const scope = yield* Scope.make()
          const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
          let runs = 0
          const work = Effect.andThen(Effect.sync(() => runs++), asking(jobs[ask]))
          yield* Effect.forkIn(jobs.whileLeader(work), scope)
          yield* TestClock.adjust("900 millis")
          assert.deepStrictEqual([runs, yield* ownerOf("jobs")], [1, "Held"])
          yield* TestClock.adjust("3200 millis")
          assert.strictEqual(runs, ask === "stop" ? 1 : 5)
          assert.strictEqual(yield* ownerOf("jobs"), ask === "stop" ? "Free" : "Held")
          const closed = yield* start(Scope.close(scope, Exit.void))
          yield* TestClock.adjust("2 seconds")
          assert.isTrue(isDone(closed))
          assert.strictEqual(yield* ownerOf("jobs"), "Free")
        }
      }).pipe(Effect.provide(TestLive)))
  }

  const closings: typeof ways = [["the work itself", (close) => Effect.andThen(batch, close)], ...ways]
  for (const [way, asking] of closings) {
    it.effect(`from ${way}: closing the contender's scope releases the mutex after the work has ended`, () =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
        const work = Effect.ensuring(asking(Scope.close(scope, Exit.void)), Effect.sleep("5 seconds"))
        yield* start(jobs.whileLeader(work))
        yield* TestClock.adjust("5900 millis")
        assert.strictEqual(yield* ownerOf("jobs"), "Held")
        yield* TestClock.adjust("200 millis")
        assert.strictEqual(yield* ownerOf("jobs"), "Free")
        yield* jobs.start
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* ownerOf("jobs"), "Free")
      }).pipe(Effect.provide(TestLive)))
  }

  it.effect("stop in a finalizer returns even if a step-down from outside runs that finalizer", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* start(jobs.whileLeader(Effect.ensuring(Effect.never, jobs.stop)))
      yield* settle
      yield* jobs.stepDown
      yield* settle
      assert.strictEqual(yield* ownerOf("jobs"), "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("stop returns when called from another contender's nested work, or from other work under the same lease", () =>
    Effect.gen(function*() {
      const outer = yield* Mutex.contend("outer")
      const inner = yield* Mutex.contend("inner")
      yield* start(outer.whileLeader(inner.whileLeader(Effect.ensuring(batch, outer.stop))))
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([yield* ownerOf("outer"), yield* ownerOf("inner")], ["Free", "Held"])
      const lease = yield* Effect.fromOption(yield* inner.lease)
      yield* start(Effect.ignore(lease.protect(Effect.ensuring(batch, inner.stop))))
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* ownerOf("inner"), "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("stop interrupts the work, and callers outside wait for the work to end", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const log: Array<string> = []
      const note = (line: string) => Effect.sync(() => void log.push(line))
      const work = Effect.gen(function*() {
        yield* batch
        yield* jobs.stop
        yield* note("went on")
      }).pipe(Effect.onInterrupt(() => Effect.delay(note("ended"), "5 seconds")))
      yield* start(jobs.whileLeader(work))
      yield* TestClock.adjust("2 seconds")
      yield* start(Effect.andThen(jobs.stop, note("stopped")))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(log, ["ended", "stopped"])
    }).pipe(Effect.provide(TestLive)))
})

describe("a contender", () => {
  const counting = () => {
    const work = { runs: 0 }
    return Object.assign(work, { effect: Effect.andThen(Effect.sync(() => work.runs++), Effect.never) })
  }

  it.effect("logs each leadership at the configured level", () => {
    const levels: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (String(message).startsWith("Leadership ")) levels.push(logLevel)
    })
    return Effect.gen(function*() {
      for (const options of [{}, { logLevel: "Debug" }, { logLevel: "Warn" }] as const) {
        const jobs = yield* Mutex.contend("jobs", options)
        yield* settle
        yield* jobs.stop
      }
      assert.deepStrictEqual(levels, ["Info", "Info", "Debug", "Debug", "Warn", "Warn"])
    }).pipe(
      Effect.scoped,
      Effect.provide(
        Mutex.layer().pipe(
          Layer.provide(FaultyStore.layer),
          Layer.provideMerge(Logger.layer([logger])),
          Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "Debug"))
        )
      )
    )
  })

  it.effect("continues even if its loggers and its work throw", () => {
    const notified: Array<string> = []
    const logger = Logger.make(({ message }) => {
      notified.push(String(message))
      throw new Error("a logger")
    })
    return Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      const jobs = yield* Mutex.contend("jobs")
      const work = counting()
      let failed = 0
      const failing = Effect.andThen(Effect.sync(() => failed++), Effect.fail("no"))
      yield* start(jobs.whileLeader(work.effect))
      yield* start(
        Leadership.runJobs(jobs, [{ name: "failing", schedule: Leadership.every("10 seconds"), run: failing }])
      )
      yield* settle
      yield* jobs.stepDown
      yield* settle
      assert.deepStrictEqual([work.runs, failed], [2, 1])
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual([work.runs, failed], [2, 3])
      yield* jobs.stop
      faults.refusals = 3
      yield* jobs.start
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(work.runs, 3)
      assert.includeMembers(notified, ["Leadership begins", "Leadership ends"])
      assert.isTrue(notified.some((line) => line.includes("Cannot contend")))
    }).pipe(Effect.provide(
      Mutex.layer().pipe(Layer.provideMerge(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
    ))
  })

  it.effect("continues even if backend calls interrupt themselves or die", () => {
    let broken: Effect.Effect<never> | undefined
    const through = <A, E>(effect: Effect.Effect<A, E>) => Effect.suspend(() => broken ?? effect)
    const store = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        acquire: acquiring((request) => through(MutexStore.acquire(store, request))),
        inspect: (mutex, limit) => through(store.inspect(mutex, limit))
      }))
    ).pipe(Layer.provide(MutexStore.layerMemory))
    return Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const work = counting()
      yield* start(jobs.whileLeader(work.effect))
      yield* settle
      for (const how of [Effect.interrupt, Effect.die(new Error("a bug"))]) {
        const reader = yield* start(Effect.exit(Stream.runDrain(jobs.events)))
        broken = how
        yield* start(jobs.stepDown)
        yield* TestClock.adjust("20 seconds")
        assert.isTrue(isDone(reader))
        broken = undefined
        yield* TestClock.adjust("20 seconds")
        const { _tag, after } = yield* jobs.state
        assert.deepStrictEqual([_tag, after !== undefined], ["Leading", true])
      }
      assert.strictEqual(work.runs, 3)
      yield* jobs.stop
      yield* TestClock.adjust("2 seconds")
      assert.isUndefined((yield* jobs.state).after)
    }).pipe(Effect.provide(Mutex.layer().pipe(Layer.provide(store), Layer.provideMerge(Logger.layer([])))))
  })
})

describe("a contender's state", () => {
  it.effect("is published only on changes", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const observed: Array<string> = []
      yield* start(
        Stream.runForEach(jobs.changes, (state) => Effect.sync(() => observed.push(JSON.stringify(state))))
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(observed.length, 2)
      yield* jobs.stop
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(observed, [...new Set(observed)])
      assert.strictEqual(observed.at(-1), JSON.stringify(yield* jobs.state))
    }).pipe(Effect.provide(TestLive)))
})

describe("a contender's changes", () => {
  it.effect("end when its scope closes, for current and later readers", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
      const observed: Array<string> = []
      const read = Stream.runForEach(jobs.events, ({ _tag }) => Effect.sync(() => observed.push(_tag)))
      const reader = yield* start(read)
      yield* TestClock.adjust("2 seconds")
      yield* jobs.stop
      yield* TestClock.adjust("2 seconds")
      assert.isFalse(isDone(reader))
      yield* Scope.close(scope, Exit.void)
      yield* settle
      assert.isTrue(isDone(reader))
      yield* Fiber.join(reader)
      assert.deepStrictEqual(observed, ["Acquired", "Released"])
      yield* read
    }).pipe(Effect.provide(TestLive)))
})

describe("a contender's context", () => {
  it.effect("is the context in which it was created", () => {
    const lines: Array<string> = []
    const logger = Logger.map(
      Logger.formatStructured,
      ({ annotations, message, spans }) =>
        lines.push(JSON.stringify([message, Object.keys(annotations).sort(), Object.keys(spans)]))
    )
    const foreign = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      effect.pipe(Effect.annotateLogs({ request: "r1" }), Effect.withLogSpan("request"))
    return Effect.gen(function*() {
      const jobs = yield* Effect.annotateLogs(Mutex.contend("jobs"), { app: "mine" })
      const work = Effect.andThen(Effect.sleep("1 second"), foreign(jobs.stepDown))
      yield* start(jobs.whileLeader(work))
      yield* TestClock.adjust("1500 millis")
      yield* foreign(jobs.stepDown)
      yield* settle
      yield* jobs.stop
      yield* foreign(jobs.start)
      yield* settle
      const begins = JSON.stringify(["Leadership begins", ["app", "lease", "mutex", "token"], []])
      assert.deepStrictEqual(lines.filter((line) => line.includes("begins")), [begins, begins, begins, begins])
    }).pipe(Effect.provide(
      Mutex.layer().pipe(Layer.provide(MutexStore.layerMemory), Layer.provideMerge(Logger.layer([logger])))
    ))
  })
})
