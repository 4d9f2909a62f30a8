/** A job runs once per scheduled time on the backend's clock, even if the leader changes. */
import { Leadership, Mutex, MutexMetrics } from "@effect-simba/core"
import { MutexName } from "@effect-simba/core/MutexName"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, type Duration, Effect, Exit, Layer, Metric, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import * as Fleet from "../support/fleet.ts"
import * as JobFleet from "../support/jobFleet.ts"
import { start, TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

const { noon } = JobFleet
const minutely = Leadership.cron("* * * * *")
const hourly = Leadership.cron("0 * * * *")
const mutex = MutexName.make("jobs")

describe("one run for each scheduled time", { tags: ["B33"] }, () => {
  it.effect("every: a new job runs immediately, then at multiples of the period, even when the leader changes", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon + 5000)
      const { job, node, take } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: Leadership.every("20 seconds") })]
      const a = yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("20 seconds")
      yield* a.close
      yield* TestClock.adjust("40 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@15", "b@35", "b@55"])
    }))

  it.effect("every: the next leader runs a job that has not run in the current period", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, ran, take } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: Leadership.every("1 minute") })]
      const a = yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("50 seconds")
      yield* a.kill
      yield* TestClock.adjust("25 seconds")
      assert.strictEqual(ran.length, 2)
      assert.deepInclude(ran[1]!, { node: "b", scheduledAt: 60, isCatchUp: true })
      take()
      yield* TestClock.adjust("50 seconds")
      assert.deepStrictEqual(take(), ["b@120"])
    }))

  it.effect("scheduled times follow the backend's clock, regardless of the nodes' clocks", () =>
    Effect.gen(function*() {
      for (const [ahead, behind] of [[9, -9], [-9, 9], [80, 0], [26 * 3600, -3600], [0, -80]] as const) {
        yield* TestClock.setTime(noon - 5000)
        const { job, node, ran } = yield* JobFleet.make
        const jobs = (name: string) => [job(name, { schedule: minutely })]
        const a = yield* node("a", jobs, { ahead })
        yield* node("b", jobs, { ahead: behind })
        yield* TestClock.adjust("70 seconds")
        yield* a.close
        yield* TestClock.adjust("60 seconds")
        assert.deepStrictEqual(ran.map(({ at }) => at), [5, 65, 125], `${ahead} and ${behind}`)
      }
    }))

  it.effect("a node whose clock differs by more than half a period steps down once and logs a warning", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 5000)
      const { job, node, take, warnings } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: minutely })]
      yield* node("wrong", jobs, { ahead: 31 })
      const right = yield* node("right", jobs)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(take(), ["right@5", "right@65"])
      assert.lengthOf(warnings.filter((line) => line.startsWith("This node's clock differs")), 1)
      // A single node runs the job even though its clock is wrong
      yield* right.close
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(take(), ["wrong@125"])
    }))

  it.effect("a new job catches up on a scheduled time that passed while a node without the job was leading", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 30_000)
      const { job, node, ran, take } = yield* JobFleet.make
      const old = yield* node("old", () => [])
      yield* node("new", (name) => [job(name, { schedule: hourly, catchUp: "10 minutes" })])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(take(), [])
      yield* old.close
      yield* TestClock.adjust("1 second")
      assert.deepInclude(ran[0]!, { node: "new", scheduledAt: 30, isCatchUp: true })
    }))
})

describe("what was missed", { tags: ["B33"] }, () => {
  /** Two successive leaders. Scheduled times pass between them, while nobody leads. */
  const pause = Effect.fnUntraced(function*(
    options: Omit<Leadership.Job<unknown, never>, "name" | "run">,
    length: Duration.Input
  ) {
    const { job, node, ran, take, warnings } = yield* JobFleet.make
    const jobs = (name: string) => [job(name, options)]
    const a = yield* node("a", jobs)
    yield* TestClock.adjust("10 seconds")
    yield* a.close
    take()
    yield* TestClock.adjust(length)
    yield* node("b", jobs)
    yield* TestClock.adjust("1 second")
    return { ran, take, warnings }
  })

  it.effect("skip: the job next runs at the next instant, and a warning counts the missed runs", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon + 1000)
      const { take, warnings } = yield* pause({ schedule: minutely }, "5 minutes")
      assert.deepStrictEqual(take(), [])
      assert.deepInclude(warnings, "\"job\" missed 5 run(s): there was no leader")
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(take(), 1)
    }))

  it.effect("runOnce: the job runs once for the last missed run, if it is no older than catchUp", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon + 1000)
      const once = yield* pause({ schedule: minutely, catchUp: "1 minute" }, "5 minutes")
      assert.lengthOf(once.ran, 1)
      assert.deepInclude(once.ran[0]!, { scheduledAt: 299, isCatchUp: true })
      assert.deepInclude(once.warnings, "\"job\" missed 4 run(s): there was no leader")
      yield* TestClock.setTime(noon + 1000)
      const late = yield* pause({ schedule: hourly, catchUp: "1 minute" }, "61.5 minutes")
      assert.deepStrictEqual(late.take(), [])
    }))

  it.effect("runAll: the job runs for each missed run that is no older than catchUp, one after another", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon + 1000)
      const options = { schedule: minutely, misfire: "runAll", catchUp: "3 minutes" } as const
      const { ran } = yield* pause(options, "5 minutes")
      assert.deepStrictEqual(ran.map(({ scheduledAt }) => scheduledAt), [179, 239, 299])
    }))

  it.effect("a run on Monday catches up after a weekend without a leader", () =>
    Effect.gen(function*() {
      // Friday, 10:00
      yield* TestClock.setTime(Date.UTC(2026, 10, 20, 10))
      const daily = Leadership.cron("0 8 * * *")
      const { ran } = yield* pause({ schedule: daily, catchUp: "1 day" }, "71 hours")
      assert.lengthOf(ran, 1)
      assert.deepInclude(ran[0]!, { scheduledAt: 70 * 3600, isCatchUp: true })
    }))

  it.effect("scheduled times that pass during a former leader's run are missed because of that run", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, warnings } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: minutely }, () => Effect.never)]
      const one = yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("150 seconds")
      warnings.length = 0
      yield* one.close
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(warnings, [
        `"job" missed 1 run(s): the previous run had not ended, or minInterval had not passed`
      ])
    }))

  it.effect("a run's period lasts until the next scheduled time, even if the schedule is irregular", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, warnings } = yield* JobFleet.make
      const schedule = Leadership.cron("0 12,13 * * *")
      yield* node("a", (name) => [job(name, { schedule }, () => Effect.sleep("2 hours"))])
      yield* TestClock.adjust("61 minutes")
      assert.deepStrictEqual(warnings, ["\"job\" has been running for longer than its period of 1h"])
    }))

  it.effect("if a run outlasts its period, the scheduled times that it misses are skipped and logged", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, take, warnings } = yield* JobFleet.make
      yield* node("a", (name) => [job(name, { schedule: minutely }, () => Effect.sleep("130 seconds"))])
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(take(), ["a@1", "a@181"])
      assert.include(warnings.join("\n"), "has been running for longer than its period of 1m")
      assert.include(warnings, "\"job\" missed 2 run(s): the previous run had not ended, or minInterval had not passed")
    }))

  it.effect("a leader that catches up on all scheduled times neither loses nor repeats any after an outage", () =>
    Effect.gen(function*() {
      for (const mode of ["fail", "lost", { late: "2 seconds" }] as const) {
        yield* TestClock.setTime(noon - 1000)
        const { fleet, job, node, ran } = yield* JobFleet.make
        const everySecond = { schedule: Leadership.every("1 second"), misfire: "runAll", catchUp: "1 minute" } as const
        yield* node("a", (name) => [job(name, everySecond)])
        yield* TestClock.adjust("5 seconds")
        fleet.faults.jobs = mode
        yield* TestClock.adjust("1500 millis")
        fleet.faults.jobs = "work"
        yield* TestClock.adjust("30 seconds")
        const slots = ran.map(({ scheduledAt }) => scheduledAt)
        assert.deepStrictEqual(slots, Array.from({ length: slots.length }, (_, i) => i), JSON.stringify(mode))
        assert.isAbove(slots.length, 35)
      }
    }))

  it.effect("runs respect the minimum interval", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, ran, warnings } = yield* JobFleet.make
      yield* node("a", (name) => [job(name, { schedule: Leadership.every("10 seconds"), minInterval: "25 seconds" })])
      yield* TestClock.adjust("90 seconds")
      assert.deepStrictEqual(ran.map(({ at }) => at), [0, 25, 50, 75])
      const missed = [1, 2, 1].map((count) =>
        `"job" missed ${count} run(s): the previous run had not ended, or minInterval had not passed`
      )
      assert.deepStrictEqual(warnings, missed)
    }))
})

describe("runs that fail", () => {
  it.effect("continue: neither the job nor the leadership ends when a run fails, dies or interrupts itself", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, take } = yield* JobFleet.make
      const ends = [Effect.fail("no"), Effect.die(new Error("defect")), Effect.interrupt, Effect.void]
      const counts = Effect.map(
        Effect.forEach(
          ["failure", "defect", "interrupted"] as const,
          (how) => Metric.value(MutexMetrics.jobs.runs[how])
        ),
        (states) => states.map(({ count }) => count)
      )
      const before = yield* counts
      const work = () => Effect.suspend((): Effect.Effect<void, string> => ends.shift() ?? Effect.void)
      const a = yield* node("a", (name) => [job(name, { schedule: Leadership.every("10 seconds") }, work)])
      const lease = yield* Effect.flatMap(a.contender.lease, Effect.fromOption)
      yield* TestClock.adjust("35 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@10", "a@20", "a@30"])
      assert.isTrue(yield* lease.isHeld)
      // A run that interrupts itself counts as failed
      assert.deepStrictEqual((yield* counts).map((count, i) => count - before[i]!), [2, 1, 0])
    }))

  it.effect("stepDown: another node becomes the leader after the runs of other jobs have ended", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, ran } = yield* JobFleet.make
      const completed: Array<string> = []
      const jobs = (name: string) => [
        job(
          name,
          { name: "bad", schedule: Leadership.every("10 seconds"), onError: "stepDown" },
          () => Effect.fail("no")
        ),
        job(
          name,
          { name: "slow", schedule: Leadership.every("40 seconds") },
          () =>
            Effect.andThen(
              Effect.sleep("20 seconds"),
              Effect.sync(() => completed.push(name))
            )
        )
      ]
      yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("20 minutes")
      const started = ran.filter((run) => run.job === "slow").length
      assert.isAbove(started, 27)
      assert.isAtLeast(completed.length, started - 1)
      assert.deepStrictEqual([...new Set(completed)].sort(), ["a", "b"])
    }))

  it.effect("stepDown: runs of other jobs that are due at the same time start first", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, ran } = yield* JobFleet.make
      const schedule = Leadership.every("10 seconds")
      yield* node("a", (name) => [
        job(name, { name: "bad", schedule, onError: "stepDown" }, () => Effect.fail("no")),
        job(name, { name: "good", schedule, misfire: "skip" })
      ])
      yield* TestClock.adjust("20 minutes")
      assert.lengthOf(ran.filter((run) => run.job === "good"), 121)
    }))

  it.effect("a run that was granted to a leader but did not start before its leadership ended counts as missed", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { fleet, job, node, take, warnings } = yield* JobFleet.make
      const jobs = (name: string) => [job(name, { schedule: Leadership.every("1 minute"), misfire: "skip" })]
      const a = yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("59 seconds")
      fleet.faults.jobOperations.claim = { late: "1 second" }
      yield* TestClock.adjust("1500 millis")
      fleet.faults.jobOperations.claim = "work"
      yield* Effect.forkChild(a.close)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(take(), ["a@0", "b@120"])
      assert.deepStrictEqual(warnings, ["\"job\" missed 1 run(s): there was no leader"])
    }))

  it.effect("stepDown: a run that is still going after drainTimeout is interrupted", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, ran } = yield* JobFleet.make
      const jobs = (name: string) => [
        job(
          name,
          { name: "bad", schedule: Leadership.every("1 hour"), onError: "stepDown" },
          () => Effect.delay(Effect.fail("no"), "1 second")
        ),
        job(name, { name: "endless", schedule: Leadership.every("1 hour") }, () => Effect.never)
      ]
      const contender = { drainTimeout: "5 seconds" } as const
      const a = yield* node("a", jobs, { contender })
      yield* node("b", () => [])
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* a.contender.state)._tag, "Leading")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* a.contender.state)._tag, "Following")
      assert.lengthOf(ran, 2)
    }))

  it.effect("attempts: if a node dies during a run, the next leader retries the run, up to the maximum", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node, ran, warnings } = yield* JobFleet.make
      const options = { schedule: hourly, catchUp: "10 minutes", attempts: 2 } as const
      const jobs = (name: string) => [job(name, options, () => name === "a" ? Effect.never : Effect.fail("no"))]
      const a = yield* node("a", jobs)
      yield* node("b", jobs)
      yield* TestClock.adjust("5 seconds")
      yield* a.kill
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(ran.map(({ attempt, node, scheduledAt }) => [node, scheduledAt, attempt]), [
        ["a", 1, 1],
        ["b", 1, 2]
      ])
      const orphaned = new Date(noon).toISOString()
      assert.deepStrictEqual(warnings.filter((line) => line.includes("has no recorded end")), [
        `Run of "job" for ${orphaned} has no recorded end: its leader died or is suspended`
      ])
    }))

  it.effect("maxRun: a run that exceeds it is interrupted and counts as failed", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node, take, warnings } = yield* JobFleet.make
      yield* node("a", (name) => [
        job(name, { schedule: Leadership.every("1 minute"), maxRun: "10 seconds" }, () => Effect.never)
      ])
      yield* TestClock.adjust("61 seconds")
      assert.deepStrictEqual(take(), ["a@0", "a@60"])
      assert.include(warnings, "Run of \"job\" failed")
    }))
})

describe("the end of a leadership", () => {
  it.effect("a process that resumes after its lease has ended does not start a run that was granted earlier", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const faults = yield* FaultyStore.Faults
        const store = yield* MutexStore.MutexStore
        let ran = 0
        const jobs = yield* Mutex.contend("jobs")
        yield* start(Leadership.runJobs(jobs, [{ name: "job", schedule: hourly, run: Effect.sync(() => ran++) }]))
        yield* TestClock.adjust(500)
        faults.jobs = { late: "1 second" }
        yield* TestClock.adjust(600)
        // The reply arrives before a timer ends the lease
        stall.millis = 20_000
        faults.jobs = "work"
        yield* TestClock.adjust(1000)
        assert.strictEqual(ran, 0)
        const { jobs: known } = yield* store.jobs.read({ mutex, jobs: [] })
        assert.deepInclude(known.get("job")!.run!, { scheduledAt: noon, outcome: "unstarted", attempt: 0 })
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("interrupts the runs, waits for them to end, then releases the mutex", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { job, node } = yield* JobFleet.make
      const lines: Array<string> = []
      const work = () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.andThen(Effect.sleep("2 seconds"), Effect.sync(() => lines.push("ended"))))
      const a = yield* node("a", (name) => [job(name, { schedule: Leadership.every("10 seconds") }, work)])
      yield* a.start(Effect.ignore(
        Mutex.withLock("jobs")(Effect.sync(() =>
          lines.push("next")
        ))
      ))
      yield* TestClock.adjust("5 seconds")
      yield* start(a.contender.stop)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(lines, [])
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(lines, ["ended", "next"])
    }), { tags: ["S13"] })

  it.effect("a step-down that an operator requested waits for the runs", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const { fleet, job, node } = yield* JobFleet.make
      let completed = 0
      const work = () => Effect.andThen(Effect.sleep("20 seconds"), Effect.sync(() => completed++))
      const jobs = (name: string) => [job(name, { schedule: Leadership.every("1 hour") }, work)]
      const a = yield* node("a", jobs)
      const b = yield* node("b", jobs)
      const store = Context.get(fleet.store, MutexStore.MutexStore)
      yield* store.jobs.steer(mutex, { _tag: "StepDown" })
      yield* TestClock.adjust("19 seconds")
      assert.strictEqual((yield* a.contender.state)._tag, "Leading")
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual([completed, (yield* b.contender.state)._tag], [1, "Leading"])
    }))
})

describe("a job's metrics", () => {
  const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

  it.effect("are the times of its last start, its last success and the start of its current run, and the number of missed runs", () =>
    isolated(Effect.gen(function*() {
      yield* TestClock.setTime(noon - 1000)
      const { job, node } = yield* JobFleet.make
      yield* node("a", (name) => [job(name, { schedule: minutely }, () => Effect.sleep("70 seconds"))])
      const read = Effect.map(
        Metric.snapshot,
        (all) =>
          Object.fromEntries(all.flatMap((one) =>
            one.attributes?.["job_name"] === "job"
              ? [[
                [one.id, one.attributes["cause"]].filter(Boolean).join(" "),
                (one.state as { value?: number; count?: number }).value ?? (one.state as { count?: number }).count
              ]]
              : []
          ))
      )
      yield* TestClock.adjust("30 seconds")
      const during = yield* read
      assert.deepInclude(during, { simba_job_running_since: noon, simba_job_last_start: noon })
      assert.notProperty(during, "simba_job_last_success")
      yield* TestClock.adjust("45 seconds")
      assert.deepInclude(yield* read, {
        simba_job_running_since: 0,
        simba_job_last_success: noon + 70_000,
        "simba_job_missed running": 1
      })
    })))
})

describe("layerJobs", () => {
  const build = Effect.fnUntraced(function*<E>(node: Fleet.Node, layer: Layer.Layer<never, E, Mutex.Mutex>) {
    const scope = yield* Scope.make()
    yield* node.here(Layer.buildWithScope(layer, scope))
    return { close: Scope.close(scope, Exit.void) }
  })

  class Greeting extends Context.Service<Greeting, string>()("test/Greeting") {}

  it.effect("runs all jobs on one node, and provides the services that they need", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon)
      const fleet = yield* Fleet.make
      const lines: Array<string> = []
      const say = (line: string) => Effect.sync(() => void lines.push(line))
      const closes: Array<Effect.Effect<void>> = []
      for (const name of ["a", "b"]) {
        const node = yield* fleet.node(name)
        const jobs = Leadership.layerJobs("jobs", [
          { name: "fast", schedule: Leadership.every("4 seconds"), run: say(name) },
          {
            name: "slow",
            schedule: Leadership.every("10 seconds"),
            run: ({ lease }) => Greeting.use((greeting) => say(`${greeting} ${lease.token > 0}`))
          }
        ]).pipe(Layer.provide(Layer.succeed(Greeting, `hello ${name}`)))
        closes.push((yield* build(node, jobs)).close)
        yield* TestClock.adjust(0)
      }
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(lines.splice(0), ["a", "hello a true", "a", "a"])
      yield* closes[0]!
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual(lines, ["hello b true", "b"])
    }))

  it.effect("refuses invalid jobs when it is built", () =>
    Effect.gen(function*() {
      const node = yield* (yield* Fleet.make).node("a")
      const job = { name: "job", schedule: Leadership.every("1 second"), run: Effect.void }
      const refused = (name: string, jobs: ReadonlyArray<Leadership.Job<unknown, never>>) =>
        Effect.map(Effect.flip(build(node, Leadership.layerJobs(name, jobs))), (error) => error.message)
      assert.include(yield* refused("", [job]), "blank")
      assert.include(yield* refused("jobs", [job, job]), "two jobs named \"job\"")
      const wrong: ReadonlyArray<readonly [Partial<Leadership.Job<unknown, never>>, string]> = [
        [{ name: " " }, "blank"],
        [{ schedule: Leadership.cron("not cron") }, "cron"],
        [{ schedule: Leadership.every(0) }, "at least 1 millisecond"],
        [{ schedule: hourly, misfire: "runAll" }, "needs catchUp"],
        [{ misfire: "skip", catchUp: "1 minute" }, "remove one of the two"],
        [{ attempts: 0 }, "at least 1"],
        [{ minInterval: -1 }, "negative"],
        [{ maxRun: 0 }, "at least 1 millisecond"]
      ]
      for (const [options, problem] of wrong) assert.include(yield* refused("jobs", [{ ...job, ...options }]), problem)
    }))
})
