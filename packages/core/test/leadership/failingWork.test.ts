/** Failing work ends the leadership, unless the caller handles failures itself. */
import { Contender, Leadership, Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Latch, Layer, Logger, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Fleet from "../support/fleet.ts"
import { start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

describe("a leader's work that fails", () => {
  for (
    const [how, failure] of [
      ["fails", Effect.fail("no disk")],
      ["dies", Effect.die(new Error("a bug"))],
      ["interrupts itself", Effect.interrupt]
    ] as ReadonlyArray<readonly [string, Effect.Effect<never, string>]>
  ) {
    it.effect(`makes another node lead when it ${how}, and the log says why`, () =>
      Effect.gen(function*() {
        const fleet = yield* Fleet.make
        const ran: Array<string> = []
        const lines: Array<unknown> = []
        const logger = Logger.make(({ logLevel, message }) => {
          if (logLevel === "Error") lines.push((message as ReadonlyArray<unknown>)[0])
        })
        for (const name of ["a", "b"]) {
          const node = yield* fleet.node(name)
          const jobs = yield* node.here(Mutex.contend("jobs"))
          const work = Effect.andThen(Effect.sync(() => ran.push(name)), name === "a" ? failure : Effect.never)
          yield* node.start(jobs.whileLeader(work).pipe(Effect.provide(Logger.layer([logger]))))
          yield* Effect.yieldNow
        }
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(ran, ["a", "b"])
        assert.deepStrictEqual(lines, ["The leader's work failed, so its leadership ends"])
      }))
  }

  it.effect("is retried on a node without rivals, after pauses that double with each consecutive failure, up to 10 seconds", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const begin = clock.currentTimeMillisUnsafe()
      const at: Array<number> = []
      const jobs = yield* Mutex.contend("jobs")
      let isBroken = true
      yield* start(jobs.whileLeader(Effect.suspend(() => {
        at.push(clock.currentTimeMillisUnsafe() - begin)
        return isBroken ? Effect.fail("no") : Effect.never
      })))
      yield* settle
      yield* TestClock.adjust("35 seconds")
      assert.deepStrictEqual(at, [0, 100, 300, 700, 1500, 3100, 6300, 12_700, 22_700, 32_700])
      assert.strictEqual((yield* jobs.state)._tag, "Vacant")
      isBroken = false
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(at.length, 11)
      // A long leadership ends the series of consecutive failures
      isBroken = true
      yield* jobs.stepDown
      yield* settle
      yield* TestClock.adjust("350 millis")
      assert.strictEqual(at.length, 14)
    }).pipe(Effect.provide(TestLive)))

  const pausedFor = Effect.fnUntraced(function*(act: (jobs: Contender.Contender) => Effect.Effect<void>) {
    const jobs = yield* Mutex.contend("jobs")
    let runs = 0
    yield* start(jobs.whileLeader(Effect.suspend(() => {
      runs++
      return Effect.fail("no")
    })))
    yield* settle
    // The seventh run failed after 6.3 seconds, so the eighth one may start after 12.7 seconds
    yield* TestClock.adjust("7 seconds")
    assert.strictEqual(runs, 7)
    yield* act(jobs)
    yield* TestClock.adjust("5600 millis")
    assert.strictEqual(runs, 7)
    yield* TestClock.adjust("1200 millis")
    assert.strictEqual(runs, 8)
  }, Effect.provide(TestLive))

  for (
    const [how, act] of [
      ["leaves", (jobs) => jobs.leave],
      ["leaves and is restarted", (jobs) => Effect.andThen(jobs.leave, jobs.start)],
      ["is stopped and restarted", (jobs) => Effect.andThen(jobs.stop, jobs.start)],
      ["is asked to step down", (jobs) => jobs.stepDown]
    ] as ReadonlyArray<readonly [string, (jobs: Contender.Contender) => Effect.Effect<void>]>
  ) it.effect(`is not retried before its pause has ended, even if the contender ${how}`, () => pausedFor(act))

  it.effect("is retried after pauses even if it steps down in its finalizers", () =>
    Effect.gen(function*() {
      const begin = yield* Clock.currentTimeMillis
      const at: Array<number> = []
      const jobs = yield* Mutex.contend("jobs")
      const work = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        at.push(now - begin)
        return at.length > 20 ? Effect.never : Effect.fail("no")
      })
      yield* start(jobs.whileLeader(Effect.ensuring(work, jobs.stepDown)))
      yield* settle
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(at, [0, 100, 300, 700, 1500])
    }).pipe(Effect.provide(TestLive)))

  it.effect("is retried after a pause even if the contender steps down or loses its lease while job runs are ending", () =>
    Effect.gen(function*() {
      const ends = [
        (jobs: Contender.Contender) => jobs.stepDown,
        (jobs: Contender.Contender) => Effect.asVoid(Mutex.forceRelease(jobs.mutex))
      ]
      for (const [i, end] of ends.entries()) {
        const jobs = yield* Mutex.contend(`jobs ${i}`)
        let runs = 0
        const failing = Effect.suspend(() => ++runs === 1 ? Effect.fail("no") : Effect.never)
        yield* start(
          Leadership.runJobs(jobs, [{ name: "slow", schedule: Leadership.every("1 day"), run: Effect.never }])
        )
        yield* settle
        yield* start(jobs.whileLeader(failing))
        yield* TestClock.adjust("1 second")
        assert.strictEqual((yield* jobs.state)._tag, "Leading")
        yield* end(jobs)
        yield* TestClock.adjust("90 millis")
        assert.strictEqual(runs, 1)
        yield* TestClock.adjust("20 millis")
        assert.strictEqual(runs, 2)
      }
    }).pipe(Effect.provide(TestLive)))

  it.effect("leaves no timers behind if its leadership ends while job runs are ending", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      let sleeping = 0
      const counting: Clock.Clock = {
        ...clock,
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        sleep: (duration) =>
          Duration.toHours(duration) !== 5
            ? clock.sleep(duration)
            : Effect.acquireUseRelease(
              Effect.sync(() => sleeping++),
              () => clock.sleep(duration),
              () => Effect.sync(() => sleeping--)
            )
      }
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs", { drainTimeout: "5 hours" })
        yield* start(
          Leadership.runJobs(jobs, [{ name: "slow", schedule: Leadership.every("1 hour"), run: Effect.never }])
        )
        yield* settle
        const failing = yield* start(jobs.whileLeader(Effect.fail("no")))
        yield* settle
        assert.strictEqual(sleeping, 1)
        yield* Fiber.interrupt(failing)
        yield* jobs.stepDown
        yield* settle
        assert.strictEqual(sleeping, 0)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, counting))
    }))

  it.effect("ends the leadership if it fails with the loss of an earlier lease, even if both leases have the same id", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      yield* settle
      const first = yield* Effect.fromOption(yield* jobs.lease)
      const other = yield* Latch.make(false)
      yield* start(Mutex.withLock("jobs")(other.await))
      yield* jobs.stepDown
      yield* settle
      // Both hand-offs happen within one turn, so the backend knows only one lease
      yield* other.open
      yield* settle
      const second = yield* Effect.fromOption(yield* jobs.lease)
      assert.strictEqual(second.id, first.id)
      yield* start(jobs.whileLeader(first.ensure))
      yield* settle
      assert.isFalse(yield* second.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("does not end the next leadership if it fails while its own leadership is ending", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      let runs = 0
      const work = Effect.suspend(() => {
        runs++
        const cleanUp = runs === 1 ? Effect.andThen(Effect.sleep("1 second"), Effect.fail("cleaning up")) : Effect.void
        return Effect.onExit(Effect.never, () => cleanUp)
      })
      yield* start(jobs.whileLeader(work))
      yield* settle
      yield* start(jobs.stepDown)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(runs, 2)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(runs, 2)
      assert.strictEqual((yield* jobs.state)._tag, "Leading")
    }).pipe(Effect.provide(TestLive)))

  it.effect("does not count as failed if it is interrupted from outside", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const fiber = yield* start(jobs.whileLeader(Effect.never))
      yield* settle
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* jobs.state)._tag, "Leading")
    }).pipe(Effect.provide(TestLive)))

  it.effect("does not restart a contender that is closed afterwards", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const jobs = yield* Scope.provide(Mutex.contend("jobs"), scope)
      yield* start(jobs.whileLeader(Effect.fail("no")))
      yield* Scope.close(scope, Exit.void)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* jobs.state)._tag, "Stopped")
      assert.strictEqual((yield* Mutex.owner("jobs"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))
})

describe("a contender's state", () => {
  it.effect("cannot be set from outside, and always follows the clock", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs")
        yield* settle
        assert.strictEqual((yield* jobs.state)._tag, "Leading")
        // The process was suspended until after the end of its lease, and no timer has fired
        stall.millis = 20_000
        const state = yield* jobs.state
        assert.strictEqual(state._tag, "Vacant")
        assert.isTrue(Option.isNone(yield* jobs.lease))
        assert.isTrue(Effect.isEffect(jobs.state))
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("shows that it is stopped, and who leads in the meantime", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const observed: Array<string> = []
      yield* start(Stream.runForEach(jobs.changes, ({ _tag }) => Effect.sync(() => observed.push(_tag))))
      yield* settle
      yield* jobs.stop
      yield* settle
      assert.strictEqual((yield* jobs.state)._tag, "Stopped")
      yield* jobs.start
      yield* settle
      // The second "Stopped" state shows that nobody leads
      assert.deepStrictEqual(observed.slice(0, 6), ["Vacant", "Leading", "Stopped", "Stopped", "Vacant", "Leading"])
    }).pipe(Effect.provide(TestLive)))

  it.effect("skips changes for slow readers, but never the last one", () =>
    Effect.gen(function*() {
      const jobs = yield* Mutex.contend("jobs")
      const observed: Array<string> = []
      yield* start(Stream.runForEach(jobs.changes, ({ _tag }) =>
        Effect.andThen(
          Effect.sync(() => observed.push(_tag)),
          Effect.sleep("1 hour")
        )))
      yield* settle
      for (let i = 0; i < 100; i++) {
        yield* jobs.stop
        yield* settle
        yield* jobs.start
        yield* settle
      }
      yield* jobs.stop
      yield* TestClock.adjust("30 hours")
      assert.isBelow(observed.length, 30)
      assert.strictEqual(observed.at(-1), "Stopped")
    }).pipe(Effect.provide(TestLive)))
})

describe("contender classes", () => {
  class Reports extends Contender.Service<Reports>()("test/Reports") {}
  class Archive extends Contender.Service<Archive>()("test/Archive") {}

  it.effect("two classes for one mutex are separate services with their own options", () =>
    Effect.gen(function*() {
      const [reports, archive] = [yield* Reports, yield* Archive]
      yield* settle
      assert.notStrictEqual(reports, archive)
      assert.strictEqual(reports.mutex, archive.mutex)
      const states = [(yield* reports.state)._tag, (yield* archive.state)._tag].sort()
      assert.deepStrictEqual(states, ["Following", "Leading"])
    }).pipe(Effect.provide(
      Layer.merge(Reports.layer("books"), Archive.layer("books", { pollInterval: "5 seconds" })).pipe(
        Layer.provide(Mutex.layer()),
        Layer.provide(MutexStore.layerMemory),
        Layer.provideMerge(Logger.layer([]))
      )
    )))
})
