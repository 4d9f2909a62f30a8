/** What job runs log, and how schedules are stored in the backend. */
import { Leadership, Mutex } from "@effect-simba/core"
import type { JobStore } from "@effect-simba/core/JobStore"
import { MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { ProtocolError } from "@effect-simba/core/SimbaError"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer, Logger, References } from "effect"
import { TestClock } from "effect/testing"
import * as jobSchedule from "../../src/internal/leadership/jobSchedule.ts"
import * as JobFleet from "../support/jobFleet.ts"
import { start } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

describe("a run", { tags: ["B33"] }, () => {
  const runs = Effect.fnUntraced(function*(
    work: () => Effect.Effect<unknown, unknown>,
    options: Partial<Leadership.Job<unknown, never>> = {}
  ) {
    yield* TestClock.setTime(JobFleet.noon)
    const { job, node, take, warnings } = yield* JobFleet.make
    const one = yield* node("a", (name) => [job(name, { schedule: Leadership.every("10 seconds"), ...options }, work)])
    yield* TestClock.adjust("15 seconds")
    return { contender: one.contender, ran: take(), warnings }
  })

  it.effect("that succeeds logs nothing, and the leader keeps leading", () =>
    Effect.gen(function*() {
      const { contender, ran, warnings } = yield* runs(() => Effect.void, { onError: "stepDown" })
      assert.deepStrictEqual([ran, warnings], [["a@0", "a@10"], []])
      const { token } = yield* Effect.flatMap(contender.lease, Effect.fromOption)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Effect.flatMap(contender.lease, Effect.fromOption)).token, token)
    }))

  it.effect("is logged each time it fails, dies or interrupts itself", () =>
    Effect.gen(function*() {
      for (const failure of [Effect.fail("no"), Effect.die("no"), Effect.interrupt]) {
        const { ran, warnings } = yield* runs(() => failure)
        assert.deepStrictEqual([ran.length, warnings], [2, ["Run of \"job\" failed", "Run of \"job\" failed"]])
      }
    }))

  it.effect("does not count as failed if the end of its leadership interrupts it", () =>
    Effect.gen(function*() {
      const { contender, ran, warnings } = yield* runs(() => Effect.never, { schedule: Leadership.every("1 minute") })
      yield* contender.stop
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([ran.length, warnings], [1, []])
    }))
})

it.effect("a run's log lines are annotated with mutex, job and token", () =>
  Effect.gen(function*() {
    const noted: Array<unknown> = []
    const logger = Logger.make<unknown, void>(({ fiber, message }) => {
      if (String(message) === "working") noted.push(fiber.getRef(References.CurrentLogAnnotations))
    })
    const { job, node } = yield* JobFleet.make
    const working = () => Effect.provide(Effect.log("working"), Logger.layer([logger]))
    const one = yield* node("a", (name) => [job(name, { schedule: Leadership.every("1 minute") }, working)])
    const { token } = yield* Effect.flatMap(one.contender.lease, Effect.fromOption)
    assert.deepStrictEqual(noted, [{ mutex: "jobs", job: "job", token }])
  }))

it.effect("runs that a leader missed because its process was paused are not blamed on the backend alone", () =>
  Effect.gen(function*() {
    const warnings: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void warnings.push([message].flat().join(" ")))
    const { clock, stall } = yield* stalling
    yield* Effect.gen(function*() {
      const contender = yield* Mutex.contend("jobs", { ttl: "10 minutes", transition: "1 minute" })
      yield* start(
        Leadership.runJobs(contender, [{ name: "job", schedule: Leadership.every("1 minute"), run: Effect.void }])
      )
      yield* TestClock.adjust("10 seconds")
      stall.millis = 180_000
      yield* TestClock.adjust("10 seconds")
    }).pipe(
      Effect.provide(Layer.provideMerge(Mutex.layerMemory(), Logger.layer([logger]))),
      Effect.provideService(Clock.Clock, clock)
    )
    assert.include(warnings, "\"job\" missed 2 run(s): the backend did not reply in time, or the leader was paused")
  }))

it.effect("a run that fails by itself while its leadership is ending counts as failed", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(JobFleet.noon)
    const { fleet, job, node, warnings } = yield* JobFleet.make
    const failing = () => Effect.uninterruptible(Effect.delay(Effect.fail("no"), "2 seconds"))
    const one = yield* node("a", (name) => [job(name, { schedule: Leadership.every("1 minute") }, failing)])
    yield* start(one.contender.stop)
    yield* TestClock.adjust("3 seconds")
    const { jobs } = yield* Context.get(fleet.store, MutexStore.MutexStore).jobs.read({
      mutex: MutexName.make("jobs"),
      jobs: []
    })
    assert.strictEqual(jobs.get("job")!.run!.outcome, "failure")
    assert.include(warnings, "Run of \"job\" failed")
  }))

it.effect("a job with malformed state does not run and is logged once per change, while other jobs run", () =>
  Effect.gen(function*() {
    yield* TestClock.setTime(JobFleet.noon)
    const { fleet, job, node, take, warnings } = yield* JobFleet.make
    const jobs = Context.get(fleet.store, MutexStore.MutexStore).jobs as {
      -readonly [K in keyof JobStore]: JobStore[K]
    }
    const { read } = jobs
    let problem: string | undefined = "first"
    jobs.read = (request) =>
      Effect.map(read(request), (records) => {
        if (problem === undefined) return records
        const malformed = new Map([["bad", ProtocolError.of("the job", "x", problem)]])
        return { ...records, jobs: new Map([...records.jobs].filter(([name]) => name !== "bad")), malformed }
      })
    yield* node("a", () => [
      job("bad", { name: "bad", schedule: Leadership.every("10 seconds") }),
      job("good", { name: "good", schedule: Leadership.every("10 seconds") })
    ])
    const pass = (next: string | undefined) =>
      Effect.gen(function*() {
        problem = next
        yield* TestClock.adjust("20 seconds")
        const ran = new Set(take().map((run) => run.split("@")[0]))
        return [[...ran].sort(), warnings.splice(0).filter((line) => line.includes("does not run"))]
      })
    const line = (problem: string) => `"bad" does not run: ${ProtocolError.of("the job", "x", problem).message}`
    assert.deepStrictEqual(yield* pass("first"), [["good"], [line("first")]])
    assert.deepStrictEqual(yield* pass("first"), [["good"], []])
    assert.deepStrictEqual(yield* pass("second"), [["good"], [line("second")]])
    assert.deepStrictEqual(yield* pass(undefined), [["bad", "good"], []])
    assert.deepStrictEqual(yield* pass("second"), [["good"], [line("second")]])
  }))

it.effect("a schedule in the backend is a period or a cron expression", () =>
  Effect.gen(function*() {
    assert.strictEqual((yield* jobSchedule.parse("every 1500")).next(0), 1500)
    assert.strictEqual((yield* jobSchedule.parse("cron UTC 0 1 * * *")).next(0), 3_600_000)
    for (const text of ["", "daily UTC 0 1 * * *", "Every 5"]) {
      assert.include((yield* Effect.flip(jobSchedule.parse(text))).message, "is neither", text)
    }
  }))
