/** A leader's job loop: which requests it sends, when it sends them, and how it handles failures. */
import { Jobs, Leadership, Mutex } from "@effect-simba/core"
import type { JobRecord } from "@effect-simba/core/JobStore"
import { MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Context, Duration, Effect, Exit, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import * as clockCheck from "../../src/internal/leadership/clockCheck.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import * as JobFleet from "../support/jobFleet.ts"
import { start, TestLive } from "../support/setup.ts"

const { noon } = JobFleet
const minutely = Leadership.every("1 minute")
const cron = Leadership.cron("* * * * *")

/** One leader with one job. The test starts at noon. Times in `calls` are in milliseconds since noon. */
const alone = Effect.fnUntraced(function*(
  options: Partial<Leadership.Job<unknown, never>> = {},
  work?: () => Effect.Effect<unknown, unknown>
) {
  yield* TestClock.setTime(noon)
  const made = yield* JobFleet.make
  const store = Context.get(made.fleet.store, MutexStore.MutexStore)
  const one = yield* made.node("a", (name) => [made.job(name, { schedule: minutely, ...options }, work)])
  return {
    ...made,
    ...one,
    faults: made.fleet.faults,
    store,
    record: Effect.map(
      store.jobs.read({ mutex: MutexName.make("jobs"), jobs: [] }),
      ({ jobs }): JobRecord => jobs.get("job")!
    ),
    calls: (operation: "read" | "claim" | "end") =>
      made.fleet.faults.jobCalls.flatMap(([name, at]) => name === operation ? [at - noon] : [])
  }
})

describe("what a leader requests", { tags: ["B33"] }, () => {
  it.effect("it reads every five seconds and after each run, and claims runs when they are due", () =>
    Effect.gen(function*() {
      const { calls, take } = yield* alone({ schedule: Leadership.every("12 seconds") })
      yield* TestClock.adjust("25 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@12", "a@24"])
      // The node registers its jobs, becomes the leader, and immediately runs the job
      assert.deepStrictEqual(calls("read"), [0, 0, 0, 5000, 10_000, 12_000, 17_000, 22_000, 24_000])
      assert.deepStrictEqual(calls("claim"), [0, 12_000, 24_000])
      assert.deepStrictEqual(calls("end"), [0, 12_000, 24_000])
    }))

  it.effect("it sleeps until something is due", () =>
    Effect.gen(function*() {
      const base = yield* Clock.Clock
      let slept = 0
      const clock: Clock.Clock = {
        ...base,
        currentTimeMillisUnsafe: () => base.currentTimeMillisUnsafe(),
        monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe(),
        sleep: (duration) => {
          slept++
          return base.sleep(duration)
        }
      }
      yield* TestClock.setTime(noon)
      yield* Effect.gen(function*() {
        const jobs = yield* Mutex.contend("jobs", { ttl: "1 minute", pollInterval: "1 minute" })
        yield* start(Leadership.runJobs(jobs, [{ name: "job", schedule: cron, run: Effect.void }]))
        yield* TestClock.adjust("100 millis")
        slept = 0
        yield* TestClock.adjust("4800 millis")
        // The contender polls
        assert.isAtMost(slept, 10)
        const faults = yield* FaultyStore.Faults
        faults.jobOperations.claim = { reply: (now) => ({ _tag: "NotOwner", now, attempt: 0, wait: 0 }) }
        yield* TestClock.adjust("1 minute")
        slept = 0
        yield* TestClock.adjust("5 seconds")
        assert.isAtMost(slept, 30)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))
})

describe("requests that fail", { tags: ["B33"] }, () => {
  const pauses = [0, 100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]

  it.effect("a claim is repeated after pauses that double, up to five seconds", () =>
    Effect.gen(function*() {
      const { calls, faults, ran, record } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = "fail"
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(calls("claim"), pauses.map((pause) => 60_000 + pause))
      faults.jobOperations.claim = "work"
      yield* TestClock.adjust("10 seconds")
      // Late, but not a catch-up, because only the outage delayed the run
      assert.deepStrictEqual(ran, [
        { node: "a", job: "job", at: 81.3, scheduledAt: 60, isCatchUp: false, attempt: 1 }
      ])
      assert.strictEqual((yield* record).run!.outcome, "success")
      // The next failure starts a new series of pauses
      faults.jobOperations.claim = "fail"
      yield* TestClock.adjust("31500 millis")
      assert.deepStrictEqual(calls("claim").slice(-3), [120_000, 120_100, 120_300])
    }))

  it.effect("a read is repeated after the same pauses, while known jobs keep running", () =>
    Effect.gen(function*() {
      const { calls, faults, take, warnings } = yield* alone({ schedule: Leadership.every("30 seconds") })
      yield* TestClock.adjust("4 seconds")
      faults.jobOperations.read = "fail"
      yield* TestClock.adjust("17500 millis")
      assert.deepStrictEqual(calls("read").slice(3), pauses.map((pause) => 5000 + pause))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@30"])
      // Only the message is logged: a stack trace does not help in an outage
      assert.include(warnings, `Cannot read the jobs; retrying: ${FaultyStore.outage.message}`)
      // Until a read succeeds, the leader does not know whether the next scheduled time is settled
      faults.jobOperations.read = "work"
      yield* TestClock.adjust("10 seconds")
      faults.jobCalls.length = 0
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(calls("read"), 2)
      // The next failure starts a new series of pauses
      faults.jobOperations.read = "fail"
      yield* TestClock.adjust("5 seconds")
      const [first, second] = calls("read").slice(2)
      assert.strictEqual(second! - first!, 100)
    }))

  it.effect.each(["read", "claim"] as const)(
    "a %s without a reply fails when a lease has passed",
    (operation) =>
      Effect.gen(function*() {
        const { contender, faults, take, warnings } = yield* alone({ schedule: Leadership.every("20 seconds") })
        const { token } = yield* Effect.flatMap(contender.lease, Effect.fromOption)
        yield* TestClock.adjust("19 seconds")
        faults.jobOperations[operation] = "hang"
        yield* TestClock.adjust("2 seconds")
        faults.jobOperations[operation] = "work"
        yield* TestClock.adjust("1 minute")
        // Meanwhile, the leader has renewed its lease
        assert.strictEqual((yield* Effect.flatMap(contender.lease, Effect.fromOption)).token, token)
        assert.include(warnings.join(), "no reply within 16s")
        assert.include(take().slice(1).join(), "a@60")
      })
  )

  it.effect("a scheduled time is on time even if a new leader cannot read its jobs until later", () =>
    Effect.gen(function*() {
      const { contender, faults, ran } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* TestClock.adjust("50 seconds")
      faults.jobOperations.read = "fail"
      yield* contender.stepDown
      yield* TestClock.adjust("20 seconds")
      faults.jobOperations.read = "work"
      yield* TestClock.adjust("20 seconds")
      assert.deepInclude(ran[0], { scheduledAt: 60, isCatchUp: false })
    }))

  it.effect("a read that fails after a run does not skip a scheduled time", () =>
    Effect.gen(function*() {
      const { faults, take } = yield* alone({ schedule: Leadership.every("1 second"), misfire: "skip" })
      yield* TestClock.adjust("1500 millis")
      faults.jobOperations.read = "fail"
      yield* TestClock.adjust("700 millis")
      faults.jobOperations.read = "work"
      yield* TestClock.adjust("1900 millis")
      assert.deepStrictEqual(take(), ["a@0", "a@1", "a@2", "a@3", "a@4"])
    }))

  it.effect("if a claim gets no reply, its run starts as soon as a read shows that the claim succeeded", () =>
    Effect.gen(function*() {
      const { faults, ran, record } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = "lost"
      yield* TestClock.adjust("1050 millis")
      faults.jobOperations.claim = "work"
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(ran, [
        { node: "a", job: "job", at: 60.1, scheduledAt: 60, isCatchUp: false, attempt: 1 }
      ])
      assert.deepInclude((yield* record).run, { scheduledAt: noon + 60_000, attempt: 1, outcome: "success" })
    }))

  it.effect("if a claim is refused just before the backend's clock is set back, the job is delayed by a second", () =>
    Effect.gen(function*() {
      const { faults, here, take } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* here(Jobs.run("jobs", "job"))
      faults.jobOperations.claim = {
        reply: (now) => ({ _tag: "Running", now: now + 3_600_000, attempt: 0, wait: 0 })
      }
      yield* TestClock.adjust("5 seconds")
      faults.jobOperations.claim = "work"
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(take(), ["a@6"])
    }))

  it.effect("missed runs are reported once, even if the reply to their claim was lost", () =>
    Effect.gen(function*() {
      const { faults, here, record, warnings } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* here(Jobs.pause("jobs", "job"))
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = "lost"
      yield* TestClock.adjust("1050 millis")
      faults.jobOperations.claim = "work"
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* record).missed, 1)
      assert.deepStrictEqual(warnings.filter((line) => line.includes("missed")), [
        "\"job\" missed 1 run(s): it is paused"
      ])
    }))

  it.effect("an instant whose claim failed counts as missed if the job is then paused, even if that reply is lost", () =>
    Effect.gen(function*() {
      const { faults, here, record, warnings } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = "fail"
      yield* TestClock.adjust("1050 millis")
      yield* here(Jobs.pause("jobs", "job"))
      yield* TestClock.adjust("300 millis")
      faults.jobOperations.claim = "lost"
      yield* TestClock.adjust("5 seconds")
      faults.jobOperations.claim = "work"
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* record).missed, 1)
      assert.deepStrictEqual(warnings.filter((line) => line.includes("missed")), [
        "\"job\" missed 1 run(s): it is paused"
      ])
    }))

  it.effect("a late copy of a refused claim does not use up an attempt", () =>
    Effect.gen(function*() {
      const { contender, faults, ran, store } = yield* alone({ schedule: cron, misfire: "skip" })
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = { reply: (now) => ({ _tag: "NotOwner", now, attempt: 0, wait: 0 }) }
      yield* TestClock.adjust("1500 millis")
      faults.jobOperations.claim = "work"
      const { id, token } = yield* Effect.flatMap(contender.lease, Effect.fromOption)
      const copy = yield* store.jobs.claim({
        mutex: contender.mutex,
        job: "job",
        id,
        token,
        claim: `${id}#1`,
        mode: "run",
        at: noon + 60_000,
        after: (yield* store.jobs.read({ mutex: contender.mutex, jobs: [] })).jobs.get("job")!.at,
        missed: 0,
        cause: "outage",
        minInterval: Duration.zero,
        attempts: 1,
        changed: 0
      })
      assert.strictEqual(copy._tag, "Claimed")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(ran.map(({ attempt, scheduledAt }) => [attempt, scheduledAt]), [[1, 60]])
    }))

  it.effect("if a failover loses the record of a run's end, it is recorded again with the same outcome", () =>
    Effect.gen(function*() {
      for (
        const [outcome, work] of [
          ["success", Effect.void],
          ["failure", Effect.fail("no")],
          ["defect", Effect.die("no")]
        ] as const
      ) {
        const { faults, record, store } = yield* alone(
          { schedule: Leadership.every("1 hour") },
          () => Effect.andThen(Effect.sleep("1 second"), work)
        )
        faults.jobOperations.end = "undone"
        yield* TestClock.adjust("1 second")
        assert.deepInclude((yield* record).run, { end: undefined, outcome: undefined })
        faults.jobOperations.end = "work"
        yield* TestClock.adjust("200 millis")
        assert.deepInclude((yield* record).run, { outcome, attempt: 1 })
        yield* store.forceRelease(MutexName.make("jobs"), "1 second" as never)
      }
    }))
})

it.effect("a read is ignored if it was in flight when a run ended", () =>
  Effect.gen(function*() {
    let isSlow = false
    const { calls, faults, record, take } = yield* alone(
      { schedule: Leadership.every("10 seconds") },
      () => Effect.suspend(() => isSlow ? Effect.sleep("5200 millis") : Effect.void)
    )
    isSlow = true
    yield* TestClock.adjust("14 seconds")
    faults.jobOperations.read = { late: "500 millis" }
    yield* TestClock.adjust("1400 millis")
    faults.jobOperations.read = "work"
    isSlow = false
    yield* TestClock.adjust("3 seconds")
    // The read was executed before the end was recorded, so it does not show that end
    assert.deepStrictEqual(calls("end"), [0, 15_200])
    assert.strictEqual((yield* record).run!.outcome, "success")
    yield* TestClock.adjust("3 seconds")
    assert.deepStrictEqual(take(), ["a@0", "a@10", "a@20"])
  }))

it.effect("a refused claim is repeated when it may be granted", () =>
  Effect.gen(function*() {
    for (
      const [reply, pause] of [
        [{ _tag: "Early", wait: 3000 }, 3000],
        [{ _tag: "Early", wait: 60_000 }, 5000],
        [{ _tag: "Taken", wait: 0 }, 1],
        [{ _tag: "NotOwner", wait: 0 }, 1000],
        [{ _tag: "Running", wait: 0 }, 1000],
        [{ _tag: "Paused", wait: 0 }, 1000]
      ] as const
    ) {
      const { calls, close, faults } = yield* alone({ schedule: cron })
      yield* TestClock.adjust("59 seconds")
      faults.jobOperations.claim = { reply: (now) => ({ ...reply, now, attempt: 0 }) }
      yield* TestClock.adjust(1000 + pause)
      assert.deepStrictEqual(calls("claim"), [60_000, 60_000 + pause], reply._tag)
      faults.jobOperations.claim = "work"
      yield* close
      assert.deepStrictEqual(calls("end"), [], "nothing has been claimed")
    }
  }))

it.effect("an operator's schedule that cannot be read is ignored, with a warning", () =>
  Effect.gen(function*() {
    const { store, take, warnings } = yield* alone({ schedule: Leadership.every("10 seconds") })
    const reschedule = (schedule: string) =>
      store.jobs.steer(MutexName.make("jobs"), { _tag: "Reschedule", job: "job", schedule })
    yield* reschedule("every 15000")
    yield* TestClock.adjust("31 seconds")
    assert.deepStrictEqual([take(), warnings], [["a@0", "a@15", "a@30"], []])
    yield* reschedule("now and then")
    yield* TestClock.adjust("20 seconds")
    assert.deepStrictEqual(warnings, ["Cannot read the schedule \"now and then\"; it is ignored"])
    assert.deepStrictEqual(take(), ["a@40", "a@50"])
    // It is now a previous schedule without scheduled times
    yield* reschedule("every 15000")
    yield* TestClock.adjust("31 seconds")
    assert.deepStrictEqual([take(), warnings.length], [["a@60", "a@75"], 1])
  }))

it.effect("a leader resigns if its clock is set", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(noon)
    const { job, node, warnings } = yield* JobFleet.make
    let ahead = 0
    const { contender } = yield* node("a", (name) => [job(name, { schedule: minutely })], { ahead: () => ahead })
    yield* TestClock.adjust("7 seconds")
    const { token } = yield* Effect.flatMap(contender.lease, Effect.fromOption)
    // Set the clock back, because setting it forward would end leases
    ahead = -40
    yield* TestClock.adjust("6 seconds")
    assert.isAbove((yield* Effect.flatMap(contender.lease, Effect.fromOption)).token, token)
    assert.lengthOf(warnings, 1)
  }))

it.effect("recording a run's end is retried after pauses that double, until the backend accepts it", () =>
  Effect.gen(function*() {
    const { calls, faults, record, take, warnings } = yield* alone()
    yield* TestClock.adjust("59 seconds")
    faults.jobCalls.length = 0
    faults.jobOperations.end = "fail"
    yield* TestClock.adjust("2 seconds")
    assert.deepStrictEqual(calls("end"), [60_000, 60_000, 60_100, 60_300, 60_700])
    assert.lengthOf(warnings, 5)
    faults.jobOperations.end = "work"
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* record).run!.outcome, "success")
    yield* TestClock.adjust("59 seconds")
    assert.deepStrictEqual(take(), ["a@0", "a@60", "a@120"])
    assert.deepStrictEqual(calls("end"), [60_000, 60_000, 60_100, 60_300, 60_700, 61_500, 120_000])
  }))

it.effect("a long run's end is recorded again with its outcome, however many runs of other jobs have started since", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(noon)
    const { fleet, job, node } = yield* JobFleet.make
    yield* node("a", (name) => [
      job(name, { name: "long", schedule: Leadership.every("1 hour") }, () => Effect.sleep("998500 millis")),
      job(name, { name: "short", schedule: Leadership.every("1 second") })
    ])
    yield* TestClock.adjust("998400 millis")
    fleet.faults.jobOperations.end = "fail"
    yield* TestClock.adjust("500 millis")
    fleet.faults.jobOperations.end = "work"
    // The leader remembers a thousand outcomes, and the outcome of this run is now the oldest
    yield* TestClock.adjust("1 second")
    const store = Context.get(fleet.store, MutexStore.MutexStore)
    const { jobs } = yield* store.jobs.read({ mutex: MutexName.make("jobs"), jobs: [] })
    assert.strictEqual(jobs.get("long")!.run!.outcome, "success")
    assert.strictEqual(jobs.get("short")!.run!.scheduledAt, noon + 999_000)
  }))

describe("a leader's clock", { tags: ["B33"] }, () => {
  it.effect("if it is wrong by more than ten seconds and half a period, even the first run is left to another node", () =>
    Effect.gen(function*() {
      for (
        const [period, ahead, runs] of [
          ["20 seconds", 10, "wrong"],
          ["20 seconds", 10.001, "right"],
          ["20 seconds", -10.001, "right"],
          ["18 seconds", 10, "wrong"],
          ["30 seconds", 15, "wrong"],
          ["30 seconds", 15.001, "right"]
        ] as const
      ) {
        yield* TestClock.setTime(noon)
        const { job, node, take } = yield* JobFleet.make
        const jobs = (name: string) => [job(name, { schedule: Leadership.every(period) })]
        const wrong = yield* node("wrong", jobs, { ahead })
        const right = yield* node("right", jobs)
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(take().map((line) => line.split("@")[0]), [runs], `${period}, ${ahead}`)
        yield* wrong.close
        yield* right.close
      }
    }))

  it.effect("does not count as wrong if the leader reads a reply late, as after a stall", () =>
    Effect.gen(function*() {
      const { contender, faults, warnings } = yield* alone({ schedule: Leadership.every("20 seconds") })
      yield* TestClock.adjust("4 seconds")
      const lease = yield* Effect.flatMap(contender.lease, Effect.fromOption)
      faults.jobOperations.read = { late: "14 seconds" }
      yield* TestClock.adjust("16 seconds")
      faults.jobOperations.read = "work"
      yield* TestClock.adjust("20 seconds")
      yield* lease.ensure
      assert.deepStrictEqual(warnings, [])
    }))

  it.effect("makes the leader resign at most once an hour", () =>
    Effect.gen(function*() {
      const clock = yield* Clock.Clock
      const resigned: Array<number> = []
      const host = { resign: () => void resigned.push(clock.currentTimeMillisUnsafe()) }
      const next = (after: number) => after + 1000
      const check = clockCheck.make(host as never, [{ text: "", next, everyMillis: undefined }])
      const hour = 3_600_000
      for (const at of [0, hour - 1, hour, 2 * hour - 1, 2 * hour]) {
        yield* TestClock.setTime(at)
        yield* check({} as never, clock, at, at + 20_000)
      }
      assert.deepStrictEqual(resigned, [0, hour, 2 * hour])
    }))
})

it.effect("an operator can pause one of several jobs", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(noon)
    const { job, node, take } = yield* JobFleet.make
    const secondly = { schedule: Leadership.every("1 second") }
    const { here } = yield* node("a", (name) => [
      job(name, secondly),
      { ...job(name, secondly), name: "other", run: Effect.void }
    ])
    yield* here(Jobs.pause("jobs", "job"))
    yield* TestClock.adjust("500 millis")
    take()
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(take(), [])
    const jobs = (yield* here(Jobs.list("jobs"))).jobs
    const missed = jobs.map(({ missed, missedBecause, name }) => [name, missed > 0, Option.getOrNull(missedBecause)])
    assert.deepStrictEqual(missed, [["job", true, "paused"], ["other", false, null]])
  }))

describe("jobs", () => {
  it.effect("are refused while their contender already runs a job with the same name", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, take } = yield* JobFleet.make
      const { contender, here, start } = yield* node("a", () => [])
      const slow = () => Effect.sleep("10 seconds")
      const jobs = ["one", "two"].map((name) => job(name, { name, schedule: cron }, slow))
      const running = yield* start(Leadership.runJobs(contender, jobs))
      const error = yield* Effect.flip(
        here(Leadership.runJobs(contender, [job("another", { name: "two", schedule: cron })]))
      )
      assert.include(error.message, "already runs a job named \"two\"")
      yield* start(Leadership.runJobs(contender, [job("third", { name: "three", schedule: cron })]))
      yield* TestClock.adjust("65 seconds")
      assert.deepStrictEqual(take().sort(), ["one@1", "one@61", "third@1", "third@61", "two@1", "two@61"])
      yield* Fiber.interrupt(running)
      yield* start(Leadership.runJobs(contender, [job("again", { name: "two", schedule: cron })]))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(take().sort(), ["again@121", "third@121"])
    }))

  it.effect("wait for interrupted jobs with the same name whose runs are still ending", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, take } = yield* JobFleet.make
      const { contender, here, start } = yield* node("a", () => [])
      const runJobs = (node: string, work?: () => Effect.Effect<void>) =>
        Leadership.runJobs(contender, [job(node, { schedule: cron }, work)])
      const first = yield* start(
        runJobs("first", () => Effect.onInterrupt(Effect.never, () => Effect.sleep("5 seconds")))
      )
      yield* TestClock.adjust("2 seconds")
      first.interruptUnsafe()
      const second = yield* start(runJobs("second"))
      const third = yield* start(runJobs("third"))
      yield* TestClock.adjust("1 second")
      second.interruptUnsafe()
      yield* TestClock.adjust("1 minute")
      // The second job was interrupted while it waited, so the third does not wait for it
      assert.deepStrictEqual(take(), ["first@1", "third@61"])
      const error = yield* Effect.flip(here(runJobs("fourth")))
      assert.include(error.message, "already runs a job named \"job\"")
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(second)))
      assert.isUndefined(third.pollUnsafe())
    }))

  it.effect("accept only a contender or a wrapped contender", () =>
    Effect.gen(function*() {
      let ran = 0
      const job = { name: "job", schedule: minutely, run: Effect.sync(() => ran++) }
      const contender = yield* Mutex.contend("jobs")
      yield* start(Leadership.runJobs(Object.create(Object.create(contender)), [job]))
      yield* TestClock.adjust(10)
      assert.strictEqual(ran, 1)
      const foreign = yield* Effect.exit(Leadership.runJobs({ ...contender }, [job]))
      assert.include(
        Exit.isFailure(foreign) ? String(Cause.squash(foreign.cause)) : "",
        "need a contender from Mutex.contend"
      )
    }).pipe(Effect.provide(TestLive)))
})
