/** A contender's loop in rare situations: outages, interruptions between two steps, and calls from finalizers. */
import { Leadership, Mutex } from "@effect-simba/core"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Logger, References, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { jobHost } from "../../src/internal/leadership/jobHost.ts"
import { outage, refusal, silentStore } from "../support/faultyStore.ts"
import * as Fleet from "../support/fleet.ts"
import { acquiring, guarding } from "../support/requests.ts"
import { start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

const mutex = MutexName.make("jobs")
const times = { lease: Duration.seconds(16), confirm: Duration.seconds(1) }

/** A store that counts requests. All of them fail while `failure` is set. */
const counting = () => {
  const state = { acquired: 0, owners: 0, failure: undefined as typeof outage | undefined }
  const through = <A, E>(
    count: "acquired" | "owners" | undefined,
    effect: Effect.Effect<A, E>
  ): Effect.Effect<A, E | typeof outage> =>
    Effect.suspend((): Effect.Effect<A, E | typeof outage> => {
      if (count !== undefined) state[count]++
      return state.failure === undefined ? effect : Effect.fail(state.failure)
    })
  const layer = Layer.effect(
    MutexStore.MutexStore,
    Effect.map(MutexStore.MutexStore, (store) => ({
      ...store,
      isReady: () => false,
      acquire: acquiring((request) => through("acquired", MutexStore.acquire(store, request))),
      guard: guarding((requests) => through(undefined, MutexStore.guard(store, requests))),
      owner: (name) => through("owners", store.owner(name)),
      inspect: (name, limit) => through(undefined, store.inspect(name, limit))
    }))
  ).pipe(Layer.provide(MutexStore.layerMemory))
  return { state, live: Mutex.layer().pipe(Layer.provide(layer), Layer.provideMerge(Logger.layer([]))) }
}

describe("a contender in an outage", () => {
  it.effect("only reads the owner until the backend replies, because that request is cheap", () => {
    const { live, state } = counting()
    return Effect.gen(function*() {
      state.failure = outage
      const jobs = yield* Mutex.contend("jobs")
      // The first acquire repeats its request for as long as a lease lasts
      yield* TestClock.adjust("40 seconds")
      Object.assign(state, { acquired: 0, owners: 0 })
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(state.acquired, 0)
      // The pauses have grown to ten seconds, plus or minus a fifth
      assert.isAbove(state.owners, 24)
      assert.isBelow(state.owners, 39)
      state.failure = undefined
      state.owners = 0
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* jobs.state)._tag, "Leading")
      assert.deepStrictEqual([state.owners, state.acquired], [1, 1])
      // The outage has ended
      yield* jobs.stepDown
      yield* settle
      assert.strictEqual((yield* jobs.state)._tag, "Leading")
      assert.deepStrictEqual([state.owners, state.acquired], [1, 2])
    }).pipe(Effect.provide(live))
  })

  it.effect("repeats its acquire after a refusal, which is not an outage", () => {
    const { live, state } = counting()
    return Effect.gen(function*() {
      state.failure = refusal
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      state.failure = undefined
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* jobs.state)._tag, "Leading")
      assert.strictEqual(state.owners, 0)
    }).pipe(Effect.provide(live))
  })

  it.effect("immediately publishes that it is stopping, and ends its change streams when its scope closes", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const store = yield* MutexStore.MutexStore
        const scope = yield* Scope.make()
        const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
        yield* settle
        const { id } = yield* Effect.flatMap(jobs.lease, Effect.fromOption)
        // No message reports who owns the mutex after this lease
        stall.millis = 20_000
        assert.deepInclude(yield* jobs.state, {
          ...{ _tag: "Following", leader: id, isInTtl: false, isInTransition: false, until: undefined }
        })
        yield* settle
        yield* jobs.stop
        yield* MutexStore.acquire(store, { mutex, id: "1-bbbbbbbbbbbb:them" as LeaseId, mode: "try", ...times })
        yield* jobs.start
        yield* settle
        const noted: Array<string> = []
        const reader = yield* start(
          Stream.runForEach(jobs.changes, ({ _tag }) => Effect.sync(() => noted.push(_tag)))
        )
        yield* settle
        yield* start(jobs.stop)
        yield* Effect.yieldNow
        assert.deepStrictEqual(noted, ["Following", "Stopped"])
        yield* Scope.close(scope, Exit.void)
        yield* settle
        assert.isDefined(reader.pollUnsafe())
      }).pipe(
        Effect.provide(Mutex.layer().pipe(Layer.provideMerge(silentStore), Layer.provideMerge(Logger.layer([])))),
        Effect.provideService(Clock.Clock, clock)
      )
    }))
})

describe("a leadership", () => {
  it.effect("that is interrupted before its work begins does not prevent later leaderships from running the work", () =>
    Effect.gen(function*() {
      const idle: Array<number> = []
      const run = Effect.runForkWith(yield* Effect.context<never>())
      for (let ops = 3; ops <= 40; ops++) {
        let isFirst = true
        let stepDown: Effect.Effect<void> = Effect.void
        const logger = Logger.make(({ message }) => {
          if (!isFirst || String(message) !== "Leadership begins") return
          isFirst = false
          run(stepDown)
        })
        let running: number | undefined
        yield* Effect.gen(function*() {
          const jobs = yield* Mutex.contend(`jobs ${ops}`)
          stepDown = jobs.stepDown
          yield* start(
            jobs.whileLeader((lease) => Effect.andThen(Effect.sync(() => running = lease.token), Effect.never))
          )
          yield* settle
          yield* TestClock.adjust("1 second")
          const lease = yield* Effect.flatMap(jobs.lease, Effect.fromOption)
          if (running !== lease.token) idle.push(ops)
        }).pipe(
          Effect.scoped,
          Effect.provideService(References.MaxOpsBeforeYield, ops),
          Effect.provide(Logger.layer([logger]))
        )
      }
      assert.deepStrictEqual(idle, [])
    }).pipe(Effect.provide(TestLive)))

  it.effect("runs work only once if the work ends", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      let runs = 0
      yield* start(jobs.whileLeader(Effect.sync(() => runs++)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(runs, 1)
      yield* jobs.stepDown
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(runs, 2)
    }).pipe(Effect.provide(TestLive)))

  it.effect("continues when whileLeader's caller is interrupted, unless a finalizer fails", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Error") lines.push(String([message].flat()[0]))
    })
    return Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const token = Effect.map(Effect.flatMap(jobs.lease, Effect.fromOption), (lease) => lease.token)
      const interrupted = (work: Effect.Effect<never>) =>
        Effect.gen(function*() {
          const fiber = yield* start(jobs.whileLeader(work))
          yield* settle
          yield* Fiber.interrupt(fiber)
          yield* TestClock.adjust("1 second")
          return yield* token
        })
      yield* settle
      const first = yield* token
      assert.strictEqual(yield* interrupted(Effect.never), first)
      assert.deepStrictEqual(lines, [])
      assert.notStrictEqual(yield* interrupted(Effect.ensuring(Effect.never, Effect.die("a bug"))), first)
      assert.deepStrictEqual(lines, ["The leader's work failed, so its leadership ends"])
    }).pipe(Effect.provide(
      Mutex.layer().pipe(
        Layer.provide(MutexStore.layerMemory),
        Layer.provideMerge(Logger.layer([logger]))
      )
    ))
  })

  it.effect("does not report renewals, and a new reader starts with the current state", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs")
        const events: Array<string> = []
        yield* start(Stream.runForEach(jobs.events, ({ _tag }) => Effect.sync(() => events.push(_tag))))
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(events, ["Acquired"])
        stall.millis = 20_000
        const noted: Array<string> = []
        yield* start(Stream.runForEach(jobs.changes, ({ _tag }) => Effect.sync(() => noted.push(_tag))))
        assert.notStrictEqual(noted[0], "Leading")
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("does not start a run once its lease has expired by the clock, even before it notices the loss", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs")
        yield* settle
        const lease = yield* Effect.flatMap(jobs.lease, Effect.fromOption)
        stall.millis = 20_000
        assert.isFalse(jobHost(jobs).mayStart(lease))
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("does not start a run after its end, and cannot end the next leadership", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      const host = jobHost(jobs)
      const first = yield* Effect.flatMap(jobs.lease, Effect.fromOption)
      assert.isTrue(host.mayStart(first))
      yield* jobs.stop
      assert.isFalse(host.mayStart(first))
      host.resign(first)
      yield* jobs.start
      yield* settle
      const second = yield* Effect.flatMap(jobs.lease, Effect.fromOption)
      assert.isFalse(host.mayStart(first))
      assert.isUndefined(host.startRun(first))
      host.resign(first)
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* second.isHeld)
      // The second leadership resigns and waits for its run
      const ended = host.startRun(second)!
      host.resign(second)
      yield* settle
      assert.isTrue(yield* second.isHeld)
      assert.isFalse(host.mayStart(second))
      assert.isUndefined(host.startRun(second))
      ended()
      yield* settle
      assert.isFalse(yield* second.isHeld)
    }).pipe(Effect.provide(TestLive)))
})

describe("calls from outside and inside the work", () => {
  it.effect("leave returns once the contender has left the queue, even if that takes until earlier work has ended", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      let runs = 0
      const slowToEnd = Effect.suspend(() =>
        runs++ > 0 ? Effect.never : Effect.onInterrupt(Effect.never, () => Effect.sleep("5 seconds"))
      )
      yield* start(jobs.whileLeader(slowToEnd))
      yield* settle
      yield* Mutex.forceRelease("jobs")
      yield* TestClock.adjust("1 second")
      assert.notStrictEqual((yield* jobs.state)._tag, "Leading")
      const leaving = yield* start(jobs.leave)
      yield* TestClock.adjust("1 second")
      assert.isUndefined(leaving.pollUnsafe())
      yield* TestClock.adjust("5 seconds")
      assert.isDefined(leaving.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect("stop in a finalizer of the work does not ask the backend for the owner", () => {
    const { live, state } = counting()
    return Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* start(jobs.whileLeader(Effect.ensuring(Effect.never, jobs.stop)))
      yield* settle
      yield* jobs.stepDown
      yield* settle
      assert.deepStrictEqual([(yield* jobs.state)._tag, state.owners], ["Stopped", 0])
    }).pipe(Effect.provide(live))
  })

  it.effect("a resigning leader does not claim runs, and does not start runs whose claims are confirmed", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const { here, start } = yield* fleet.node("a", { logger: Logger.make(() => {}) })
      const jobs = yield* here(Mutex.contend("jobs", { drainTimeout: "5 seconds" }))
      const ran: Array<string> = []
      const job = (
        name: string,
        run: Effect.Effect<unknown, unknown>,
        onError: "continue" | "stepDown" = "continue"
      ) => ({
        name,
        onError,
        schedule: Leadership.every("1 hour"),
        run: Effect.andThen(Effect.sync(() => ran.push(name)), run)
      })
      yield* start(Leadership.runJobs(jobs, [
        job("endless", Effect.never),
        job("bad", Effect.delay(Effect.fail("no"), "1 second"), "stepDown")
      ]))
      yield* TestClock.adjust("500 millis")
      fleet.faults.jobOperations.claim = { late: "2 seconds" }
      yield* start(Leadership.runJobs(jobs, [job("late", Effect.void)]))
      yield* TestClock.adjust("1 second")
      const claims = fleet.faults.jobCalls.filter(([operation]) => operation === "claim").length
      yield* start(Leadership.runJobs(jobs, [job("later", Effect.void)]))
      yield* TestClock.adjust("3 seconds")
      assert.lengthOf(fleet.faults.jobCalls.filter(([operation]) => operation === "claim"), claims)
      assert.deepStrictEqual([ran, (yield* jobs.state)._tag], [["endless", "bad"], "Leading"])
      const { jobs: known } = yield* here(Mutex.Mutex.use(({ parts }) => parts.store.jobs.read({ mutex, jobs: [] })))
      assert.deepInclude(known.get("late")!.run!, { outcome: "unstarted", attempt: 0 })
    }))
})
