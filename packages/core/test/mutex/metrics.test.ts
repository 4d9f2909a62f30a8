import { Mutex, MutexMetrics } from "@effect-simba/core"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Clock,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Metric,
  Option,
  References,
  Scope,
  Tracer
} from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import { Faults } from "../support/faultyStore.ts"
import { another, start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

/** Runs the effect with its own metric registry. */
const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

const count = (metric: Metric.Counter<number>) => Effect.map(Metric.value(metric), (state) => state.count)
const gauge = (metric: Metric.Gauge<number>) => Effect.map(Metric.value(metric), (state) => state.value)
const histogram = (metric: Metric.Histogram<number>) =>
  Effect.map(Metric.value(metric), ({ count, max, min }) => ({ count, min, max }))

const noGaugeIsUp = Effect.gen(function*() {
  assert.strictEqual(yield* gauge(MutexMetrics.mutex.held), 0)
  assert.strictEqual(yield* gauge(MutexMetrics.mutex.waiters), 0)
})

describe("metrics", () => {
  it.effect("counters for alerts exist from the start, because an alert would miss the first increase of a new series", () =>
    Effect.gen(function*() {
      const exported = (yield* PrometheusMetrics.format()).split("\n")
      for (const reason of ["Expired", "TakenOver", "Vanished", "BackendGone", "ForcedRelease"]) {
        assert.include(exported, `simba_mutex_losses{reason="${reason}"} 0`)
      }
      assert.include(exported, "simba_mutex_overruns 0")
    }).pipe(Effect.provide(TestLive), isolated))

  it.effect("attempts are counted by outcome", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("m")
      yield* Effect.scoped(Mutex.acquireIfAvailable("m"))
      const timing = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("m", { timeout: "1 second" }))))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(timing)
      yield* Fiber.interrupt(yield* start(Effect.scoped(Mutex.acquire("m"))))
      faults.acquire = "fail"
      yield* Effect.flip(Effect.scoped(Mutex.acquireIfAvailable("n")))
      yield* Effect.flip(Effect.scoped(Mutex.acquire(" ")))
      for (const outcome of ["granted", "refused", "timeout", "interrupted", "error"] as const) {
        assert.strictEqual(yield* count(MutexMetrics.mutex.attempts[outcome]), 1, outcome)
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("an attempt that crashes counts as an error", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const acquire = () => {
        throw new Error("a bug")
      }
      const crashing = Layer.fresh(Mutex.layer()).pipe(
        Layer.provide(Layer.succeed(MutexStore.MutexStore, { ...store, acquire }))
      )
      yield* Effect.exit(Effect.provide(Effect.scoped(Mutex.acquire("m")), crashing))
      assert.strictEqual(yield* count(MutexMetrics.mutex.attempts.error), 1)
      assert.strictEqual(yield* count(MutexMetrics.mutex.attempts.interrupted), 0)
    }).pipe(Effect.provide(TestLive), isolated))

  it.effect("record request latency and the time spent waiting and holding", () =>
    Effect.gen(function*() {
      yield* TestClock.adjust("1 second")
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Effect.provide(Scope.provide(Mutex.acquire("m"), scope), yield* another("them"))
      const waiter = yield* start(Mutex.withLock("m")(Effect.sleep("2 seconds")))
      yield* TestClock.adjust("3 seconds")
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(waiter)
      assert.deepStrictEqual(yield* histogram(MutexMetrics.mutex.waitTime), { count: 1, min: 3000, max: 3000 })
      assert.deepStrictEqual(yield* histogram(MutexMetrics.mutex.holdTime), { count: 2, min: 2000, max: 3000 })
      assert.strictEqual(yield* count(MutexMetrics.mutex.handOffs), 1)
      faults.acquire = { late: "70 millis" }
      const late = yield* start(Effect.scoped(Mutex.acquire("n")))
      yield* TestClock.adjust("70 millis")
      yield* Fiber.join(late)
      assert.deepStrictEqual(yield* histogram(MutexMetrics.mutex.acquireLatency), { count: 5, min: 0, max: 70 })
      yield* noGaugeIsUp
    }).pipe(Effect.provide(TestLive), isolated))

  it.effect(
    "record the outcomes of renewals, and how much time was left when a renewal succeeded",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const lease = yield* Mutex.acquire("m")
        faults.guard = { late: "200 millis" }
        yield* TestClock.adjust("10200 millis")
        assert.deepStrictEqual(yield* histogram(MutexMetrics.mutex.timeLeftAtRenewal), {
          count: 1,
          min: 5000,
          max: 5000
        })
        faults.guard = "fail"
        yield* TestClock.adjust("20 seconds")
        assert.isFalse(yield* lease.isHeld)
        assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.renewed), 1)
        assert.isAbove(yield* count(MutexMetrics.mutex.renewals.failed), 3)
        assert.strictEqual(yield* count(MutexMetrics.mutex.losses.BackendGone), 1)
        let probes = 0
        yield* Mutex.acquire("n", { isAlive: Effect.sync(() => ++probes === 0) })
        yield* TestClock.adjust("20 seconds")
        assert.isAbove(probes, 3)
        assert.strictEqual(yield* count(MutexMetrics.mutex.renewals.notAlive), probes)
        assert.strictEqual(yield* count(MutexMetrics.mutex.losses.Expired), 1)
        yield* noGaugeIsUp
      }).pipe(Effect.scoped, Effect.provide(TestLive), isolated),
    { tags: ["B15"] }
  )

  it.effect("gauges increase, and return to zero however a wait or lease ends", () =>
    Effect.gen(function*() {
      yield* Effect.scoped(Effect.gen(function*() {
        const faults = yield* Faults
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("a"), scope)
        yield* Mutex.acquire("b")
        const expired = yield* start(Effect.flip(Mutex.withLock("c", { maxHold: "1 second" })(Effect.never)))
        const granted = yield* start(Effect.scoped(Mutex.acquire("a")))
        const interrupted = yield* start(Effect.scoped(Mutex.acquire("b")))
        const timing = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("b", { timeout: "2 seconds" }))))
        assert.strictEqual(yield* gauge(MutexMetrics.mutex.held), 3)
        assert.strictEqual(yield* gauge(MutexMetrics.mutex.waiters), 3)
        yield* Scope.close(scope, Exit.void)
        yield* Fiber.join(granted)
        yield* Fiber.interrupt(interrupted)
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.joinAll([timing, expired])
        assert.strictEqual(yield* gauge(MutexMetrics.mutex.held), 1)
        assert.strictEqual(yield* gauge(MutexMetrics.mutex.waiters), 0)
        // A grant to a waiter that has left
        faults.acquire = { late: "500 millis" }
        const unwanted = yield* start(Effect.scoped(Mutex.acquire("d")))
        yield* Fiber.interrupt(unwanted)
      }))
      yield* noGaugeIsUp
    }).pipe(Effect.provide(TestLive), isolated))

  it.effect("gauges return to zero if the layer closes while a lease is held", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Effect.scoped(Effect.gen(function*() {
        const context = yield* Layer.build(TestLive)
        yield* Scope.provide(Effect.provide(Mutex.acquire("m"), context), scope)
        assert.strictEqual(yield* gauge(MutexMetrics.mutex.held), 1)
      }))
      yield* noGaugeIsUp
      assert.strictEqual(yield* count(MutexMetrics.mutex.losses.BackendGone), 1)
      yield* Scope.close(scope, Exit.void)
      yield* noGaugeIsUp
    }).pipe(isolated))

  it.effect("hand-offs are grants by a release, not grants after a loss", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* start(Effect.flip(Mutex.withLock("m")(Effect.never)))
      yield* start(Mutex.withLock("m")(Effect.never))
      yield* TestClock.adjust("1 second")
      faults.guard = faults.release = "fail"
      yield* TestClock.adjust("17 seconds")
      assert.strictEqual(yield* count(MutexMetrics.mutex.losses.BackendGone), 1)
      assert.strictEqual(yield* gauge(MutexMetrics.mutex.held), 1)
      // Nor is a grant in reply to a poll after the owner's lease has expired
      const store = yield* MutexStore.MutexStore
      const gone = { mutex: MutexName.make("n"), id: "1-bbbbbbbbbbbb:them" as LeaseId, mode: "try" } as const
      yield* MutexStore.acquire(store, { ...gone, lease: Duration.seconds(16), confirm: Duration.seconds(1) })
      yield* start(Mutex.withLock("n")(Effect.never))
      yield* TestClock.adjust("17 seconds")
      assert.strictEqual(yield* count(MutexMetrics.mutex.handOffs), 0)
      // Nor is a grant after the backend has forgotten the owner
      faults.guard = faults.release = "work"
      yield* start(
        Effect.flip(
          Mutex.withLock("o")(({ id, mutex }) =>
            Effect.andThen(
              MutexStore.release(store, { mutex, id, lease: Duration.seconds(16), confirm: Duration.seconds(1) }),
              Effect.never
            )
          )
        )
      )
      const next = yield* start(Mutex.acquire("o"))
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(next.pollUnsafe())
      assert.strictEqual(yield* count(MutexMetrics.mutex.losses.Vanished), 1)
      assert.strictEqual(yield* count(MutexMetrics.mutex.handOffs), 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive), isolated))

  it.effect("a lease counts as lost if it ends during a stall before its release", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(Mutex.acquire("m"), scope)
        stall.millis = 20_000
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual(yield* count(MutexMetrics.mutex.losses.Expired), 1)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }).pipe(isolated))

  const labels = Effect.map(
    Metric.snapshot,
    (snapshot) =>
      snapshot.flatMap(({ attributes }) => Object.entries(attributes ?? {}).map(([key, value]) => `${key}=${value}`))
  )

  it.effect("labels do not contain the names of mutexes or contenders", () =>
    Effect.gen(function*() {
      for (let i = 0; i < 20; i++) yield* Effect.scoped(Mutex.acquire(`secret-${i}`))
      assert.isEmpty((yield* labels).filter((label) => /secret|us/.test(label)))
    }).pipe(Effect.provide(TestLive), isolated))

  it.effect("metricsByMutex adds only the mutex name", () =>
    Effect.gen(function*() {
      yield* Mutex.withLock("a")(Effect.void)
      yield* Mutex.withLock("a")(Effect.void)
      yield* Mutex.withLock("b")(Effect.void)
      assert.includeMembers([...yield* labels], ["mutex=a", "mutex=b"])
      const granted = Metric.withAttributes(MutexMetrics.mutex.attempts.granted, { mutex: "a" })
      assert.strictEqual(yield* count(granted), 2)
      assert.strictEqual(yield* gauge(Metric.withAttributes(MutexMetrics.mutex.held, { mutex: "a" })), 0)
    }).pipe(
      Effect.provide(Mutex.layerMemory({ metricsByMutex: true })),
      isolated
    ))
})

/** A tracer that remembers its spans. */
const tracing = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

const busy = Effect.gen(function*() {
  yield* Effect.scoped(Mutex.acquire("m"))
  yield* Mutex.withLock("m")(Effect.sleep("15 seconds"))
  yield* Effect.scoped(Mutex.acquireIfAvailable("m"))
})

const runBusy = Effect.gen(function*() {
  const fiber = yield* start(busy)
  yield* TestClock.adjust("20 seconds")
  yield* Fiber.join(fiber)
}).pipe(Effect.provide(TestLive))

describe("spans", () => {
  it.effect("are not created by default", () =>
    Effect.gen(function*() {
      const made: Array<string> = []
      const native = Tracer.nativeTracer.span
      // Restored below, because Effect's default tracer is a module-level constant
      Object.assign(Tracer.nativeTracer, {
        span: (options: Parameters<typeof native>[0]) => {
          made.push(options.name)
          return native.call(Tracer.nativeTracer, options)
        }
      })
      yield* Effect.ensuring(
        Effect.withSpan(runBusy, "of the application"),
        Effect.sync(() => Object.assign(Tracer.nativeTracer, { span: native }))
      )
      assert.deepStrictEqual(made, ["of the application"])
    }))

  it.effect("are not created if tracing is off", () => {
    const { spans, tracer } = tracing()
    return runBusy.pipe(
      Effect.withTracerEnabled(false),
      Effect.withTracer(tracer),
      Effect.andThen(Effect.sync(() => assert.isEmpty(spans)))
    )
  })

  it.effect("are created for acquire, withLock and renewals if there is a tracer, with mutex, lease and token", () => {
    const { spans, tracer } = tracing()
    return Effect.gen(function*() {
      yield* runBusy
      assert.deepStrictEqual(
        spans.map((span) => span.name),
        ["simba.acquire", "simba.withLock", "simba.acquire", "simba.renew", "simba.acquire"]
      )
      for (const span of spans) {
        assert.strictEqual(span.attributes.get("simba.mutex"), "m")
        assert.match(String(span.attributes.get("simba.lease")), /^\d+-\w{12}:us$/)
        assert.isAbove(Number(span.attributes.get("simba.token")), 0)
        assert.strictEqual(span.status._tag, "Ended")
      }
      const [, lock, inner, guard] = spans
      assert.strictEqual(Option.getOrUndefined(inner!.parent), lock)
      assert.isTrue(Option.isNone(guard!.parent))
    }).pipe(Effect.withTracer(tracer))
  })

  it.effect("spans in the body are children of the withLock span, which ends with a failure after a loss", () => {
    const { spans, tracer } = tracing()
    return Effect.gen(function*() {
      const body = Effect.withSpan(Effect.never, "body")
      const fiber = yield* start(Effect.flip(Mutex.withLock("m", { maxHold: "1 second" })(body)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      const named = new Map(spans.map((span) => [span.name, span]))
      assert.strictEqual(Option.getOrUndefined(named.get("body")!.parent), named.get("simba.withLock"))
      const { status } = named.get("simba.withLock")!
      assert.isTrue(status._tag === "Ended" && Exit.isFailure(status.exit))
    }).pipe(Effect.provide(TestLive), Effect.withTracer(tracer))
  })
})

describe("logs", () => {
  it.effect("grants are logged at Debug and losses at Warn, with mutex, contender and token", () => {
    const lines: Array<{ readonly level: string; readonly text: string; readonly annotations: object }> = []
    const logger = Logger.make((entry) => {
      lines.push({
        level: entry.logLevel,
        text: [entry.message].flat().map(String).join(" "),
        annotations: entry.fiber.getRef(References.CurrentLogAnnotations)
      })
    })
    const live = Mutex.layer().pipe(Layer.provide(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
    return Effect.gen(function*() {
      const lease = yield* Mutex.acquire("m", { maxHold: "1 second" })
      assert.isEmpty(lines)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(lines.map((line) => line.level), ["Warn"])
      const other = yield* Effect.provideService(Mutex.acquire("n"), References.MinimumLogLevel, "Debug")
      assert.deepStrictEqual(lines.map((line) => line.level), ["Warn", "Debug"])
      assert.deepStrictEqual(lines.map((line) => line.annotations), [
        { mutex: "m", lease: lease.id, token: lease.token },
        { mutex: "n", lease: other.id, token: other.token }
      ])
    }).pipe(Effect.scoped, Effect.provide(live))
  })

  it.effect("a holder that is not alive is logged once with the failure of its probe, and is not renewed", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, logLevel, message }) => {
      if (logLevel === "Warn") lines.push(`${[message].flat().join(" ")}${Cause.pretty(cause)}`)
    })
    const live = Mutex.layer().pipe(Layer.provideMerge(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
    return Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("m", { isAlive: Effect.fail("no database") })
      yield* TestClock.adjust("14 seconds")
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "isAlive did not return true")
      assert.include(lines[0], "no database")
      yield* Mutex.acquire("n", { isAlive: Effect.succeed(false) })
      yield* TestClock.adjust("14 seconds")
      const reported = lines.filter((line) => line.includes("isAlive did not return true"))
      assert.lengthOf(reported, 2)
      assert.isTrue(reported[1]!.endsWith("ends at its deadline"), "there is no cause")
      assert.deepStrictEqual(faults.calls.filter((call) => call.startsWith("guard")), [])
    }).pipe(Effect.scoped, Effect.provide(live))
  })

  it.effect("work that crashes when a loss interrupts it is logged with mutex, contender and token", () => {
    const lines: Array<{ readonly text: string; readonly annotations: object }> = []
    const logger = Logger.make((entry) => {
      lines.push({
        text: String([entry.message].flat()[0]),
        annotations: entry.fiber.getRef(References.CurrentLogAnnotations)
      })
    })
    const live = Mutex.layer().pipe(Layer.provide(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
    return Effect.gen(function*() {
      const crashing = Effect.onInterrupt(Effect.never, () => Effect.die("a crash"))
      const ids: Array<object> = []
      const working = yield* Effect.forkChild(
        Effect.exit(
          Mutex.withLock("m", { maxHold: "1 second" })((lease) => {
            ids.push({ mutex: "m", lease: lease.id, token: lease.token })
            return crashing
          })
        )
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(working)
      const line = lines.find(({ text }) => text.startsWith("Work that lost its lease crashed"))
      assert.deepStrictEqual(line?.annotations, ids[0])
    }).pipe(Effect.scoped, Effect.provide(live))
  })
})

it.effect(
  "a group contains the token of each lease, and each lease counts in the metrics",
  () =>
    Effect.gen(function*() {
      const { token } = yield* Effect.scoped(Mutex.acquire("a"))
      const group = yield* Mutex.acquireAll(["a", "b"])
      assert.isAbove(group.tokens.get("a")!, token)
      const state = yield* Mutex.inspect("b")
      assert.strictEqual(state.token, group.tokens.get("b"))
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.held)).value, 2)
      assert.strictEqual((yield* Metric.value(MutexMetrics.mutex.attempts.granted)).count, 3)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())),
  { tags: ["S24"] }
)
