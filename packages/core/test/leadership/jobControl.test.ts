/** What operators can do with a fleet's jobs: list, run, pause and reschedule them. */
import { Jobs, Leadership, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Duration, Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import * as JobFleet from "../support/jobFleet.ts"

const { noon } = JobFleet
const hourly = Leadership.cron("0 * * * *")

/** Two nodes with an hourly job. The operator uses the second node. */
const setup = Effect.gen(function*() {
  yield* TestClock.setTime(noon - 1000)
  const made = yield* JobFleet.make
  const jobs = (name: string) => [made.job(name, { schedule: hourly })]
  const a = yield* made.node("a", jobs)
  const b = yield* made.node("b", jobs)
  return { ...made, a, b, here: b.here }
})

describe("a fleet's jobs", () => {
  it.effect("can be listed from any node, with each job's schedule, last run and next run", () =>
    Effect.gen(function*() {
      const { a, b, here } = yield* setup
      const before = (yield* here(Jobs.list("jobs"))).jobs[0]!
      assert.strictEqual(Option.getOrThrow(before.schedule), "cron UTC 0 * * * *")
      assert.isTrue(Option.isNone(before.lastRun))
      assert.strictEqual(DateTime.toEpochMillis(Option.getOrThrow(before.next)), noon)
      yield* TestClock.adjust("1 minute")
      const after = (yield* here(Jobs.list("jobs"))).jobs[0]!
      assert.strictEqual(DateTime.toEpochMillis(Option.getOrThrow(after.next)), noon + 3_600_000)
      assert.strictEqual(DateTime.toEpochMillis(Option.getOrThrow(after.lastSuccess)), noon)
      const run = Option.getOrThrow(after.lastRun)
      assert.deepStrictEqual([run.attempt, Option.getOrThrow(run.outcome)], [1, "success"])
      assert.deepStrictEqual((yield* here(Jobs.list("other"))).jobs, [])
      yield* Effect.all([a.contender.stop, b.contender.stop])
      yield* TestClock.adjust("3 hours")
      assert.deepStrictEqual((yield* here(Jobs.list("jobs"))).jobs[0]!.next, after.next)
    }))

  it.effect("are not forgotten while a node that declares them is running, even if it never leads", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const made = yield* JobFleet.make
      const store = Context.get(made.fleet.store, MutexStore.MutexStore)
      const mutex = MutexName.MutexName.make("jobs")
      const id = MutexName.LeaseId.make("1-aaaaaaaaaaaa:an older version")
      yield* MutexStore.acquire(store, {
        mutex,
        id,
        mode: "try",
        lease: Duration.days(365),
        confirm: Duration.seconds(1)
      })
      const { close } = yield* made.node("a", (name) => [made.job(name, { schedule: hourly })])
      yield* TestClock.adjust("30 hours")
      yield* close
      yield* TestClock.setTime(noon + Duration.toMillis("31 days") - 1)
      assert.deepStrictEqual([...(yield* store.jobs.read({ mutex, jobs: [] })).jobs.keys()], ["job"])
    }))

  it.effect("run once on the leader when requested, and again at their next scheduled time", () =>
    Effect.gen(function*() {
      const { here, take } = yield* setup
      yield* TestClock.adjust("1 minute")
      take()
      assert.isTrue(yield* here(Jobs.run("jobs", "job")))
      assert.isFalse(yield* here(Jobs.run("jobs", "unknown")))
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(take(), 1)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(take(), ["a@3601"])
    }))

  it.effect("can be paused individually or all together, stay paused under a new leader, and resume with the next run", () =>
    Effect.gen(function*() {
      for (const job of [undefined, "job"]) {
        const { a, here, take } = yield* setup
        yield* TestClock.adjust("1 minute")
        yield* here(Jobs.pause("jobs", job))
        yield* a.close
        yield* TestClock.adjust("2 hours")
        assert.deepStrictEqual(take(), ["a@1"])
        const { isPaused, jobs } = yield* here(Jobs.list("jobs"))
        assert.deepStrictEqual([isPaused, jobs[0]!.isPaused, jobs[0]!.missed], [job === undefined, true, 2])
        assert.strictEqual(Option.getOrThrow(jobs[0]!.missedBecause), "paused")
        yield* here(Jobs.resume("jobs", job))
        yield* TestClock.adjust("58 minutes")
        assert.deepStrictEqual(take(), [])
        yield* TestClock.adjust("2 minutes")
        assert.deepStrictEqual(take(), ["b@10801"])
      }
    }))

  it.effect("follow an operator's schedule as soon as it is set, and the schedule in the code once it is unset", () =>
    Effect.gen(function*() {
      const { here, take } = yield* setup
      yield* TestClock.adjust("10 minutes")
      take()
      yield* here(Jobs.reschedule("jobs", "job", Leadership.cron("*/20 * * * *")))
      yield* TestClock.adjust("61 minutes")
      assert.deepStrictEqual(take(), ["a@1201", "a@2401", "a@3601"])
      const [state] = (yield* here(Jobs.list("jobs"))).jobs
      assert.isTrue(state!.isRescheduled)
      yield* here(Jobs.reschedule("jobs", "job", undefined))
      yield* TestClock.adjust("60 minutes")
      assert.deepStrictEqual(take(), ["a@7201"])
      const refused = yield* Effect.flip(here(Jobs.reschedule("jobs", "job", Leadership.cron("no"))))
      assert.strictEqual(refused._tag, "InvalidConfig")
    }))

  it.effect("run on request only after a failed run, or one whose node died, has been retried", () =>
    Effect.gen(function*() {
      for (const dies of [false, true]) {
        yield* TestClock.setTime(noon - 1000)
        const made = yield* JobFleet.make
        let runs = 0
        const jobs = (name: string) => [
          made.job(
            name,
            { schedule: hourly, catchUp: "30 minutes", attempts: 3 },
            () => ++runs === 1 && dies ? Effect.never : runs < 3 ? Effect.fail("no") : Effect.void
          )
        ]
        const a = yield* made.node("a", jobs)
        const b = yield* made.node("b", jobs)
        yield* TestClock.adjust("1500 millis")
        if (dies) yield* a.kill
        yield* b.here(Jobs.run("jobs", "job"))
        yield* TestClock.adjust("2 minutes")
        const ran = made.ran.map(({ attempt, scheduledAt }) => [scheduledAt, attempt])
        assert.deepStrictEqual(ran, [[1, 1], [1, 2], [1, 3], [1.5, 1]])
      }
    }))

  it.effect("run on the next leader if the leadership ends before a requested run starts", () =>
    Effect.gen(function*() {
      const { a, fleet, here, take } = yield* setup
      yield* TestClock.adjust("1 minute")
      take()
      fleet.faults.jobOperations.claim = { late: "10 seconds" }
      yield* here(Jobs.run("jobs", "job"))
      yield* TestClock.adjust("6 seconds")
      assert.isFalse((yield* here(Jobs.list("jobs"))).jobs[0]!.isWanted, "the backend has granted the run")
      delete fleet.faults.jobOperations.claim
      yield* a.close
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(take(), ["b@66"])
    }))

  it.effect("follow each of several schedules for the time it was set, even if there was no leader at that time", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, take } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: hourly, catchUp: "3 hours", misfire: "runAll" })]
      const a = yield* node("a", jobs)
      yield* TestClock.adjust("30 minutes")
      take()
      // An operator makes a mistake and corrects it before the leader notices
      yield* a.here(Jobs.reschedule("jobs", "job", Leadership.cron("* * * * *")))
      yield* a.here(Jobs.reschedule("jobs", "job", Leadership.cron("45 * * * *")))
      yield* TestClock.adjust("20 minutes")
      assert.deepStrictEqual(take(), ["a@2701"])
    }))

  it.effect("stop following the old schedule as soon as it changes, even before the leader reads the new one", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, take } = yield* JobFleet.make
      const { here } = yield* node("a", (name) => [job(name, { schedule: Leadership.every("7 seconds") })])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@4"])
      // The leader last read the job a second ago, and the next scheduled time is a second away
      yield* here(Jobs.reschedule("jobs", "job", Leadership.cron("30 * * * * *")))
      yield* TestClock.adjust("21 seconds")
      assert.deepStrictEqual(take(), ["a@30"])
    }))

  it.effect("neither lose nor repeat a run that was due when the schedule changed", () =>
    Effect.gen(function*() {
      const { fleet, here, ran } = yield* setup
      // Nobody claims the run at noon, and two seconds later the schedule changes
      fleet.faults.jobs = "fail"
      yield* TestClock.adjust("3 seconds")
      yield* here(Jobs.reschedule("jobs", "job", Leadership.cron("30 * * * *")))
      fleet.faults.jobs = "work"
      yield* TestClock.adjust("2 hours")
      assert.deepStrictEqual(ran.map(({ scheduledAt }) => scheduledAt), [1, 1801, 5401])
    }))
})
