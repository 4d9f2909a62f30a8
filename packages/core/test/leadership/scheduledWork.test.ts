import { Contender, Leadership, Mutex, MutexMetrics, type SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import {
  Clock,
  Context,
  Cron,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Metric,
  Option,
  Pull,
  Ref,
  Result,
  Schedule,
  Scope
} from "effect"
import { TestClock } from "effect/testing"
import type { WorkSchedule } from "../../src/internal/leadership/scheduledWork.ts"
import * as Fleet from "../support/fleet.ts"
import { start, TestLive } from "../support/setup.ts"

/** UTC, on the first day of 1970. */
const noon = 12 * 60 * 60 * 1000

/** What ran where and when, in seconds since the log was made. */
const makeLog = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const begin = clock.currentTimeMillisUnsafe()
  const lines: Array<string> = []
  const note = (text: string) =>
    Effect.sync(() => void lines.push(`${text}@${(clock.currentTimeMillisUnsafe() - begin) / 1000}`))
  return { lines, note, take: () => lines.splice(0) }
})

const contender = Mutex.contend("jobs")

/** Lets every fiber run that can, without moving the clock. */
const settle = TestClock.adjust(0)

/** One node, and a contender on it. */
const single = Effect.gen(function*() {
  const fleet = yield* Fleet.make
  const node = yield* fleet.node("a")
  const jobs = yield* node.here(contender)
  return { fleet, node, jobs, log: yield* makeLog }
})

const isolated = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => Effect.provideService(effect, Metric.MetricRegistry, new Map()))

const runsOf = (outcome: keyof typeof MutexMetrics.leaderRuns) =>
  Effect.map(Metric.value(MutexMetrics.leaderRuns[outcome]), ({ count }) => count)

describe("whileLeader", () => {
  it.effect("takes a contender or its class, and gives the work its lease", () => {
    class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}
    return Effect.gen(function*() {
      const seen = yield* Ref.make(0)
      const jobs = yield* Jobs
      yield* start(Leadership.whileLeader(Jobs, (lease) => Ref.update(seen, (n) => n + lease.token)))
      yield* start(Leadership.whileLeader(jobs, Ref.update(seen, (n) => n + 1)))
      yield* start(Ref.update(seen, (n) => n + 10).pipe(Leadership.whileLeader(Jobs)))
      yield* start(Leadership.whileLeader(jobs)((lease) => Ref.update(seen, (n) => n + 100 * lease.token)))
      yield* TestClock.adjust(1)
      const lease = yield* jobs.lease
      assert.strictEqual(yield* Ref.get(seen), lease._tag === "Some" ? 101 * lease.value.token + 11 : -1)
    }).pipe(Effect.provide(
      Jobs.layer("jobs").pipe(
        Layer.provide(Mutex.layer()),
        Layer.provide(MutexStore.layerMemory),
        Layer.provideMerge(Logger.layer([]))
      )
    ))
  })
})

describe("schedules", () => {
  it.effect("work comes before the schedule, or last", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const rate = Leadership.fixedRate("10 seconds")
      yield* node.start(log.note("piped").pipe(Leadership.leaderSchedule(jobs, rate)))
      yield* node.start(Leadership.leaderSchedule(jobs, rate)(() => log.note("function")))
      const failing = Leadership.leaderSchedule(jobs, rate, { onError: "fail" })
      const failed = yield* node.start(failing(Effect.fail("no")))
      const refused = yield* node.start(
        log.note("never").pipe(Leadership.leaderSchedule(jobs, rate, { name: " ", oncePerPeriod: true }))
      )
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(log.take(), ["piped@0", "function@0", "piped@10", "function@10"])
      assert.strictEqual(yield* Effect.flip(Fiber.join(failed)), "no")
      const error = yield* Effect.flip(Fiber.join(refused))
      assert.strictEqual(error._tag, "InvalidConfig")
    }))

  it.effect("fixed rate: slow runs do not move the beat, and missed runs count once", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const durations = [0, 3, 25, 0, 0].map((s) => s * 1000)
      const work = Effect.andThen(log.note("run"), Effect.suspend(() => Effect.sleep(durations.shift() ?? 0)))
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds")))
      yield* TestClock.adjust("62 seconds")
      assert.deepStrictEqual(log.take(), ["run@0", "run@10", "run@20", "run@45", "run@50", "run@60"])
    }))

  it.effect("fixed delay: counts from the end of the last run", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const work = Effect.andThen(log.note("run"), Effect.sleep("3 seconds"))
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedDelay("10 seconds")))
      yield* TestClock.adjust("30 seconds")
      assert.deepStrictEqual(log.take(), ["run@0", "run@13", "run@26"])
    }))

  it.effect("initial delay: for fixed rate, fixed delay and any schedule", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const schedule = (name: string, schedule: WorkSchedule<SimbaError.InvalidConfig>) =>
        node.start(Leadership.leaderSchedule(jobs, log.note(name), schedule))
      yield* schedule("rate", Leadership.fixedRate("10 seconds", { initialDelay: "5 seconds" }))
      yield* schedule("delay", Leadership.fixedDelay("10 seconds", { initialDelay: "6 seconds" }))
      yield* schedule("any", Schedule.concat(Schedule.duration("7 seconds"), Schedule.spaced("10 seconds")))
      yield* schedule("piped", Schedule.duration("8 seconds").pipe(Schedule.concat(Schedule.recurs(1))))
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(log.take(), [
        ...["rate@5", "delay@6", "any@7", "piped@8", "piped@8"],
        ...["rate@15", "delay@16", "any@17"]
      ])
    }))

  it.effect("a schedule decides about the first run, sees how the last one ended, and may end", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const inputs: Array<string> = []
      const schedule = Schedule.spaced("10 seconds").pipe(
        Schedule.setInputType<Option.Option<Exit.Exit<unknown, unknown>>>(),
        Schedule.tap(({ input }) => Effect.sync(() => inputs.push(input._tag === "None" ? "none" : input.value._tag))),
        Schedule.upTo({ times: 2 })
      )
      const work = Effect.andThen(log.note("run"), Effect.fail("no"))
      yield* node.start(Leadership.leaderSchedule(jobs, work, schedule))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(log.take(), ["run@10", "run@20"])
      assert.deepStrictEqual(inputs.slice(0, 2), ["none", "Failure"])
      yield* jobs.stepDown
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(log.take(), ["run@70", "run@80"])
    }))

  it.effect("cron: at its instants only, in UTC unless a zone is given, also across a change of leaders", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(noon - 3_000)
      const fleet = yield* Fleet.make
      const log = yield* makeLog
      for (const name of ["a", "b"]) {
        const node = yield* fleet.node(name)
        const jobs = yield* node.here(contender)
        yield* node.start(Leadership.leaderSchedule(jobs, log.note(name), Leadership.cron("* * * * *")))
        if (name === "a") yield* Effect.forkScoped(Effect.delay(node.close, "90 seconds"))
      }
      const node = yield* fleet.node("zone")
      const other = yield* node.here(Mutex.contend("other"))
      const berlin = Leadership.cron("2 13 * * *", { timeZone: "Europe/Berlin" })
      yield* node.start(Leadership.leaderSchedule(other, log.note("berlin"), berlin))
      const unzoned = Leadership.cron(Result.getOrThrow(Cron.parse("30 1 12 * * *")))
      yield* node.start(Leadership.leaderSchedule(other, log.note("utc"), unzoned))
      yield* TestClock.adjust("190 seconds")
      assert.deepStrictEqual(log.take(), ["a@3", "a@63", "utc@93", "b@123", "berlin@123", "b@183"].sort(byTime))
    }))

  it.effect.each([
    ["skips comes an hour later", "2026-03-28T12:00:00Z", ["2026-03-29T01:30:00.000Z", "2026-03-30T00:30:00.000Z"]],
    ["repeats comes once", "2026-10-24T12:00:00Z", ["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]]
  ])("an instant that a change of summer time %s", ([, start, expected]) =>
    Effect.gen(function*() {
      const step = yield* Schedule.toStep(Leadership.cron("30 2 * * *", { timeZone: "Europe/Berlin" }))
      const instants: Array<string> = []
      let now = Date.parse(start as string)
      while (instants.length < 2) {
        now = yield* Effect.map(Effect.orDie(Pull.catchDone(step(now, undefined), Effect.die)), ([instant]) => instant)
        instants.push(new Date(now).toISOString())
      }
      assert.deepStrictEqual(instants, expected)
    }))

  it.effect("a clock that is set back does not run an instant again", () =>
    Effect.gen(function*() {
      const step = yield* Schedule.toStep(Leadership.cron("0 * * * *"))
      const next = (now: number) =>
        Effect.map(Effect.orDie(Pull.catchDone(step(now, undefined), Effect.die)), ([instant]) => instant)
      const hour = 60 * 60 * 1000
      assert.strictEqual(yield* next(noon - 1000), noon)
      // The timer fired a millisecond early; then the clock turns out to have been wrong by a day
      assert.strictEqual(yield* next(noon - 1), noon + hour)
      assert.strictEqual(yield* next(-noon), -noon + hour)
    }))
})

const byTime = (a: string, b: string) => Number(a.split("@")[1]) - Number(b.split("@")[1]) || a.localeCompare(b)

describe("one node at a time", () => {
  it.effect("only the leader runs, and the next one goes on when it dies", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const log = yield* makeLog
      const nodes: Array<Fleet.Node> = []
      let running = 0
      let most = 0
      for (const name of ["a", "b", "c"]) {
        const node = yield* fleet.node(name)
        nodes.push(node)
        const work = Effect.acquireUseRelease(
          Effect.sync(() => most = Math.max(most, ++running)),
          () => Effect.andThen(log.note(name), Effect.sleep("4 seconds")),
          () => Effect.sync(() => running--)
        )
        const jobs = yield* node.here(contender)
        yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds")))
      }
      yield* TestClock.adjust("22 seconds")
      assert.deepStrictEqual(log.take(), ["a@0", "a@10", "a@20"])
      yield* nodes[0]!.kill
      yield* TestClock.adjust("40 seconds")
      const lines = log.take()
      assert.isTrue(lines.every((line) => line.startsWith("b@")))
      assert.isAtLeast(lines.length, 2)
      yield* nodes[1]!.close
      yield* TestClock.adjust("10 seconds")
      assert.isTrue(log.take().every((line) => line.startsWith("c@")))
      assert.strictEqual(most, 1)
    }))

  it.effect("interrupts the run, awaits it, then releases", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const work = Effect.never.pipe(
        Effect.onInterrupt(() => Effect.andThen(Effect.sleep("2 seconds"), log.note("ended")))
      )
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds")))
      const next = Mutex.withLock("jobs")(log.note("next"))
      yield* node.start(Effect.delay(next, "1 second"))
      yield* TestClock.adjust("5 seconds")
      yield* start(jobs.stop)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log.take(), ["ended@7", "next@7"])
    }), { tags: ["S13"] })

  it.effect("slow work does not delay a loss, and one lease is counted once", () =>
    isolated(Effect.gen(function*() {
      const { fleet, jobs, log, node } = yield* single
      let slow = true
      const work = Effect.suspend(() => {
        const uninterruptible = slow
        slow = false
        return uninterruptible ? Effect.uninterruptible(Effect.sleep("1 minute")) : log.note("again")
      })
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 minutes")))
      yield* TestClock.adjust("5 seconds")
      fleet.faults.guard = "fail"
      const lease = yield* Effect.fromOption(yield* jobs.lease)
      yield* node.start(Effect.andThen(lease.lost, log.note("lost")))
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(log.take(), ["lost@15.2"])
      assert.isTrue(Option.isNone(yield* jobs.lease))
      assert.isFalse((yield* jobs.state)._tag === "Leading")
      fleet.faults.guard = "work"
      yield* TestClock.adjust("43 seconds")
      assert.strictEqual((yield* Metric.value(MutexMetrics.held)).value, 0)
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(log.take(), ["again@60"])
      assert.strictEqual((yield* Metric.value(MutexMetrics.held)).value, 1)
      assert.strictEqual((yield* Metric.value(MutexMetrics.leadershipsGained)).count, 2)
      assert.strictEqual((yield* Metric.value(MutexMetrics.leadershipsEnded.lost)).count, 1)
    })), { tags: ["S15"] })
})

it.effect("a delay that may be zero says so when it is negative", () =>
  Effect.gen(function*() {
    const jobs = yield* Mutex.contend("jobs")
    const error = yield* Effect.flip(
      Leadership.leaderSchedule(jobs, Effect.void, Leadership.fixedRate("1 minute", { initialDelay: -1 }))
    )
    assert.deepInclude(error, { _tag: "InvalidConfig", option: "initialDelay", problem: "it must not be negative" })
  }).pipe(Effect.scoped, Effect.provide(TestLive)))

describe("at most once per period", { tags: ["B33"] }, () => {
  /** Runs the same job on `a`, closes it after `handOver` seconds, and goes on with `b` until a minute has passed. */
  const handOver = Effect.fnUntraced(function*(
    schedule: (jobs: Contender.Contender, run: Effect.Effect<void>) => Effect.Effect<never, SimbaError.InvalidConfig>,
    after: number,
    ahead: readonly [number, number] = [0, 0]
  ) {
    const fleet = yield* Fleet.make
    const log = yield* makeLog
    const a = yield* fleet.node("a", { ahead: ahead[0] * 1000 })
    const b = yield* fleet.node("b", { ahead: ahead[1] * 1000 })
    for (const node of [a, b]) {
      const jobs = yield* node.here(contender)
      yield* node.start(schedule(jobs, log.note(node.name)))
      yield* TestClock.adjust(0)
    }
    yield* TestClock.adjust(after * 1000)
    yield* a.close
    yield* TestClock.adjust(60_000 - after * 1000)
    return log.take()
  })

  const once = { name: "job", oncePerPeriod: true } as const
  const rate = Leadership.fixedRate("20 seconds")
  const minutely = Leadership.cron("* * * * *")

  it.effect("rate: a change of leaders in the middle of a period runs it once with a ticket, twice without", () =>
    Effect.gen(function*() {
      const without = yield* handOver((jobs, run) => Leadership.leaderSchedule(jobs, run, rate), 25)
      assert.deepStrictEqual(without, ["a@0", "a@20", "b@25", "b@45"])
      const ticketed = yield* handOver((jobs, run) => Leadership.leaderSchedule(jobs, run, rate, once), 25)
      assert.deepStrictEqual(ticketed, ["a@0", "a@20", "b@40", "b@60"])
    }))

  it.effect("rate: by the server's time, whatever the clocks of the nodes say", () =>
    Effect.gen(function*() {
      for (const ahead of [[30, 0], [-30, 0], [0, 30], [0, -30], [30, -30]] as const) {
        yield* TestClock.setTime(noon)
        const lines = yield* handOver((jobs, run) => Leadership.leaderSchedule(jobs, run, rate, once), 25, ahead)
        assert.deepStrictEqual(lines, ["a@0", "a@20", "b@40", "b@60"], `${ahead}`)
      }
    }))

  it.effect("rate: a long run does not move the periods, and takes the ones it fills", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const work = Effect.andThen(log.note("run"), Effect.sleep("25 seconds"))
      yield* node.start(
        Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds", { initialDelay: "1 second" }), once)
      )
      yield* TestClock.adjust("80 seconds")
      assert.deepStrictEqual(log.take(), ["run@1", "run@26", "run@51", "run@76"])
    }))

  it.effect("cron: a node whose clock is behind does not run an instant again, one ahead not before its own", () =>
    Effect.gen(function*() {
      // Instants at 5 s by the server
      const begin = noon - 5_000
      yield* TestClock.setTime(begin)
      const without = yield* handOver((jobs, run) => Leadership.leaderSchedule(jobs, run, minutely), 10, [0, -30])
      assert.deepStrictEqual(without, ["a@5", "b@35"])
      for (
        const [ahead, expected] of [
          [[0, 0], ["a@5"]],
          [[0, -30], ["a@5"]],
          [[0, 30], ["a@5", "b@55"]],
          [[3, -3], ["a@2"]]
        ] as const
      ) {
        yield* TestClock.setTime(begin)
        const lines = yield* handOver((jobs, run) => Leadership.leaderSchedule(jobs, run, minutely, once), 10, ahead)
        assert.deepStrictEqual(lines, [...expected], `${ahead}`)
      }
    }))

  it.effect("cron: a node whose clock is a year ahead uses up no instant of the fleet, and tells", () =>
    isolated(Effect.gen(function*() {
      yield* TestClock.setTime(noon - 5_000)
      const fleet = yield* Fleet.make
      const log = yield* makeLog
      const wrong = yield* fleet.node("wrong", { ahead: 365 * 86_400_000 })
      const right = yield* fleet.node("right")
      for (const node of [wrong, right]) {
        const jobs = yield* node.here(contender)
        yield* node.start(
          Leadership.leaderSchedule(jobs, log.note(node.name), minutely, { ...once, catchUp: "1 hour" })
        )
        yield* TestClock.adjust(0)
      }
      yield* TestClock.adjust("3 minutes")
      assert.deepStrictEqual(log.take(), [])
      // It waits for each until the next has come: the one to make up for, and one since
      assert.deepStrictEqual([yield* runsOf("early"), yield* runsOf("skipped")], [2, 2])
      yield* wrong.close
      yield* TestClock.adjust("2 minutes")
      // It was never known, so that there is nothing to make up for
      assert.deepStrictEqual(log.take(), ["right@185", "right@245"])
    })))

  it.effect("cron: an instant during a change of leaders is made up for once, if wanted", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      yield* TestClock.setTime(noon - 5_000)
      const log = yield* makeLog
      const hourly = Leadership.cron("0 * * * *")
      const a = yield* fleet.node("a")
      const b = yield* fleet.node("b")
      for (const node of [a, b]) {
        const jobs = yield* node.here(contender)
        const schedule = (name: string, catchUp?: "1 minute") =>
          node.start(
            Leadership.leaderSchedule(jobs, log.note(`${name} ${node.name}`), hourly, { ...once, name, catchUp })
          )
        yield* schedule("late", "1 minute")
        yield* schedule("not at all")
        yield* TestClock.adjust(0)
      }
      yield* a.kill
      yield* TestClock.adjust("20 seconds")
      const lines = log.take()
      assert.strictEqual(lines.length, 1)
      assert.match(lines[0]!, /^late b@1[0-9]/)
      yield* b.close
      const c = yield* fleet.node("c")
      const again = yield* c.here(contender)
      yield* c.start(
        Leadership.leaderSchedule(again, log.note("late c"), hourly, { ...once, name: "late", catchUp: "1 minute" })
      )
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(log.take(), [])
    }))

  it.effect("cron: a job that the fleet never saw has nothing to make up for", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      yield* TestClock.setTime(noon + 30_000)
      const log = yield* makeLog
      const node = yield* fleet.node("a")
      const jobs = yield* node.here(contender)
      yield* node.start(
        Leadership.leaderSchedule(jobs, log.note("new"), Leadership.cron("0 * * * *"), {
          ...once,
          name: "new",
          catchUp: "10 minutes"
        })
      )
      yield* TestClock.adjust("30 minutes")
      assert.deepStrictEqual(log.take(), [])
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual(log.take().length, 1)
    }))

  it.effect("a run that failed uses up its period, and skipped runs are counted", () =>
    isolated(Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const work = Effect.andThen(log.note("run"), Effect.fail("no"))
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("1 hour"), once))
      yield* TestClock.adjust("10 seconds")
      yield* jobs.stepDown
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(log.take(), ["run@0"])
      assert.deepStrictEqual([yield* runsOf("failure"), yield* runsOf("skipped")], [1, 1])
    })))

  it.effect("asks again during an outage, for a rate and for an instant", () =>
    Effect.gen(function*() {
      const { fleet, jobs, log, node } = yield* single
      fleet.faults.tick = "fail"
      yield* node.start(Leadership.leaderSchedule(jobs, log.note("rate"), rate, once))
      yield* node.start(Leadership.leaderSchedule(jobs, log.note("cron"), minutely, { ...once, name: "cron" }))
      yield* TestClock.adjust("61 seconds")
      assert.deepStrictEqual(log.take(), [])
      fleet.faults.tick = "work"
      yield* TestClock.adjust("14 seconds")
      assert.deepStrictEqual(log.take().map((line) => line.split("@")[0]).sort(), ["cron", "rate"])
      fleet.faults.tick = "fail"
      yield* TestClock.adjust("90 seconds")
      fleet.faults.tick = "work"
      yield* TestClock.adjust("12 seconds")
      assert.isTrue(log.take().some((line) => line.startsWith("rate")))
    }))
})

describe("failing work", () => {
  it.effect("continue: failures, defects and interruptions of its own end neither the schedule nor the leadership", () =>
    isolated(Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const ends = [Effect.fail("no"), Effect.die(new Error("defect")), Effect.interrupt, Effect.void]
      const work = Effect.andThen(log.note("run"), Effect.suspend((): Effect.Effect<void, string> => ends.shift()!))
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds")))
      yield* TestClock.adjust("35 seconds")
      assert.deepStrictEqual(log.take(), ["run@0", "run@10", "run@20", "run@30"])
      const counts = yield* Effect.forEach(["success", "failure", "defect", "interrupted"] as const, runsOf)
      assert.deepStrictEqual(counts, [1, 1, 1, 1])
      assert.strictEqual((yield* Metric.value(MutexMetrics.leadershipsGained)).count, 1)
    })))

  it.effect("continue: also when a finalizer fails because of the loss", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const work = Effect.andThen(
        log.note("run"),
        Effect.onExit(Effect.never, () => Effect.fail("in a finalizer"))
      )
      yield* node.start(Leadership.leaderSchedule(jobs, work, Leadership.fixedRate("10 seconds")))
      yield* TestClock.adjust("5 seconds")
      yield* jobs.stepDown
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log.take(), ["run@0", "run@5"])
    }))

  it.effect("stepDown: another node leads; alone, it leads again and waits longer each time", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const log = yield* makeLog
      const a = yield* fleet.node("a")
      const b = yield* fleet.node("b")
      const contentions = yield* Effect.forEach([a, b], (node) => Effect.tap(node.here(contender), settle))
      for (const [i, node] of [a, b].entries()) {
        const work = Effect.andThen(log.note(node.name), node === a ? Effect.die("broken") : Effect.void)
        yield* node.start(
          Leadership.leaderSchedule(contentions[i]!, work, Leadership.fixedRate("10 seconds"), { onError: "stepDown" })
        )
      }
      yield* Effect.repeat(settle, { times: 4 })
      yield* TestClock.adjust("15 seconds")
      assert.deepStrictEqual(log.take(), ["a@0", "b@0", "b@10"])
      yield* b.close
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(log.take(), ["a@15.1", "a@15.3", "a@15.7", "a@16.5", "a@18.1", "a@21.3"])
    }))

  it.effect("fail: ends with the failure, and the leadership stays", () =>
    Effect.gen(function*() {
      const { jobs, node } = yield* single
      const fiber = yield* node.start(
        Leadership.leaderSchedule(jobs, Effect.fail("no"), Leadership.fixedRate("10 seconds"), { onError: "fail" })
      )
      yield* TestClock.adjust("1 second")
      const error: string | SimbaError.InvalidConfig = yield* Effect.flip(Fiber.join(fiber))
      assert.strictEqual(error, "no")
      assert.strictEqual((yield* jobs.lease)._tag, "Some")
    }))
})

describe("layerJobs", () => {
  /** Builds it on a node; answers how to close it. */
  const build = Effect.fnUntraced(function*<E>(node: Fleet.Node, layer: Layer.Layer<never, E, Mutex.Mutex>) {
    const scope = yield* Scope.make()
    yield* node.here(Layer.buildWithScope(layer, scope))
    return { close: Scope.close(scope, Exit.void) }
  })

  class Greeting extends Context.Service<Greeting, string>()("test/Greeting") {}

  it.effect("runs all jobs on one node, with the services they need", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const log = yield* makeLog
      const closes: Array<Effect.Effect<void>> = []
      for (const name of ["a", "b"]) {
        const node = yield* fleet.node(name)
        const jobs = Leadership.layerJobs("jobs", [
          { name: "fast", schedule: Leadership.fixedRate("4 seconds"), oncePerPeriod: true, run: log.note(name) },
          {
            name: "slow",
            schedule: Leadership.fixedDelay("10 seconds"),
            onError: "continue",
            run: (lease) => Greeting.use((greeting) => Effect.when(log.note(greeting), Effect.succeed(lease.token > 0)))
          }
        ]).pipe(Layer.provide(Layer.succeed(Greeting, `hello ${name}`)))
        closes.push((yield* build(node, jobs)).close)
        yield* TestClock.adjust(0)
      }
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(log.take(), ["a@0", "hello a@0", "a@4", "a@8", "hello a@10"])
      yield* closes[0]!
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(log.take(), ["hello b@11", "b@12"])
    }))

  it.effect("closes in order: interrupts the jobs, awaits them, releases", () =>
    Effect.gen(function*() {
      const fleet = yield* Fleet.make
      const node = yield* fleet.node("a")
      const log = yield* makeLog
      const run = Effect.never.pipe(
        Effect.onInterrupt(() =>
          Effect.andThen(
            Effect.sleep("3 seconds"),
            Effect.flatMap(node.here(Mutex.owner("jobs")), (owner) => log.note(owner._tag)).pipe(Effect.orDie)
          )
        )
      )
      const { close } = yield* build(
        node,
        Leadership.layerJobs("jobs", [{ name: "job", schedule: Leadership.fixedRate("1 second"), run }])
      )
      yield* TestClock.adjust("5 seconds")
      yield* start(close)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log.take(), ["Held@8"])
      assert.strictEqual((yield* node.here(Mutex.owner("jobs")))._tag, "Free")
    }), { tags: ["S13"] })

  it.effect("refuses invalid jobs when it is built", () =>
    Effect.gen(function*() {
      const node = yield* (yield* Fleet.make).node("a")
      const job = { name: "job", schedule: Leadership.fixedRate("1 second"), run: Effect.void }
      const refused = (name: string, jobs: ReadonlyArray<Leadership.Job<unknown, never>>) =>
        Effect.map(Effect.flip(build(node, Leadership.layerJobs(name, jobs))), (error) => error.message)
      assert.include(yield* refused("", [job]), "blank")
      assert.include(yield* refused("jobs", [job, job]), "two jobs named \"job\"")
      assert.include(yield* refused("jobs", [{ ...job, name: " " }]), "blank")
      const schedules: ReadonlyArray<readonly [WorkSchedule<SimbaError.InvalidConfig>, string]> = [
        [Leadership.cron("not cron"), "cron"],
        [Leadership.cron("0 0 30 2 *"), "never comes"],
        [Leadership.cron("* * * * *", { timeZone: "Nowhere/At all" }), "time zone"],
        [Leadership.cron(Result.getOrThrow(Cron.parse("* * * * *")), { timeZone: "Asia/Tokyo" }), "of its own"],
        [Leadership.cron(Result.getOrThrow(Cron.parse("* * * * *")), { onDstOverlap: "later" }), "of its own"],
        [Leadership.fixedRate(0), "period"],
        [Leadership.fixedRate("1 second", { initialDelay: "-1 second" }), "initialDelay"],
        [Leadership.fixedDelay("Infinity"), "delay"]
      ]
      for (const [schedule, problem] of schedules) {
        assert.include(yield* refused("jobs", [{ ...job, schedule }]), problem)
      }
      const piped = Leadership.fixedRate("1 second").pipe(Schedule.jittered) as unknown as Leadership.Periodic
      assert.include(yield* refused("jobs", [{ ...job, schedule: piped, oncePerPeriod: true }]), "oncePerPeriod")
    }))
})

describe("runJobs", () => {
  it.effect("runs jobs of a contender, and refuses invalid ones", () =>
    Effect.gen(function*() {
      const { jobs, log, node } = yield* single
      const job = { name: "job", schedule: Leadership.fixedRate("4 seconds"), run: log.note("run") }
      yield* node.start(Leadership.runJobs(jobs, [job]))
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(log.take(), ["run@0", "run@4"])
      assert.strictEqual((yield* Effect.flip(Leadership.runJobs(jobs, [job, job])))._tag, "InvalidConfig")
    }))
})
