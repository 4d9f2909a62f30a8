/** The `effect-simba` commands that list and control jobs. */
import { Leadership, Mutex } from "@effect-simba/core"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshName, openMutex, RedisServer, until } from "../../../redis/test/support/harness.ts"
import * as commandLine from "../support/commandLine.ts"

layer(RedisServer.layer, { excludeTestServices: true })("effect-simba jobs", (it) => {
  it.effect("run, pause, resume, reschedule and step-down affect the whole fleet", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = freshName("jobs")
      const mutex = yield* openMutex(server)
      let runs = 0
      const contender = yield* Effect.provideService(Mutex.contend(name), Mutex.Mutex, mutex)
      yield* Effect.forkScoped(
        Leadership.runJobs(contender, [
          { name: "report", schedule: Leadership.cron("0 0 1 1 *"), run: Effect.sync(() => runs++) }
        ]).pipe(Effect.provideService(Mutex.Mutex, mutex))
      )
      const list = commandLine.json(["jobs", "list", name], server)
      yield* until(
        "the leader has recorded its jobs",
        Effect.map(list, ({ jobs }) => jobs?.[0]?.schedule === "cron UTC 0 0 1 1 *")
      )

      assert.strictEqual((yield* commandLine.run(["jobs", "run", name, "report"], server)).code, 0)
      yield* until("it runs", Effect.sync(() => runs === 1))
      yield* until(
        "the run's success is listed",
        Effect.map(list, ({ jobs }) => jobs[0].lastRun?.outcome === "success")
      )
      const shown = yield* commandLine.run(["jobs", "list", name], server)
      for (const part of ["report", "success", "-01-01T00:00:00.000Z"]) assert.include(shown.output, part)

      assert.strictEqual((yield* commandLine.run(["jobs", "pause", name, "report"], server)).code, 0)
      const doctor = yield* commandLine.run(["doctor"], server)
      assert.include(doctor.output, `${name}/report`)
      assert.isNull((yield* list).jobs[0].next)
      assert.strictEqual((yield* commandLine.run(["jobs", "resume", name, "report"], server)).code, 0)
      assert.isString((yield* list).jobs[0].next)
      yield* commandLine.run(["jobs", "pause", name, "report"], server)
      yield* commandLine.run(["jobs", "pause", name], server)
      const one = yield* commandLine.run(["jobs", "resume", name, "report"], server)
      assert.include(one.output, "all jobs are paused")
      yield* commandLine.run(["jobs", "pause", name, "report"], server)
      const resumed = yield* commandLine.run(["jobs", "resume", name], server)
      assert.include(resumed.output, "\"report\" is paused")
      assert.isNull((yield* list).jobs[0].next)
      const last = yield* commandLine.json(["jobs", "resume", name, "report"], server)
      assert.deepInclude(last, { isPaused: false, pausedJobs: [] })

      const every = ["jobs", "reschedule", name, "report", "--every", "1 hour"]
      assert.strictEqual((yield* commandLine.run(every, server)).code, 0)
      assert.deepInclude((yield* list).jobs[0], { schedule: "every 3600000", isRescheduled: true })
      assert.include((yield* commandLine.run(["jobs", "list", name], server)).output, "every 1h (set by hand)")
      const wrong = yield* commandLine.run(["jobs", "reschedule", name, "report", "--cron", "0 0 L * *"], server)
      assert.strictEqual(wrong.code, 64)
      assert.include(wrong.errors, "28-31")
      const soon = yield* commandLine.run(["jobs", "reschedule", name, "report", "--every", "soon"], server)
      assert.strictEqual(soon.code, 64)
      assert.include(soon.errors, "--every")
      const zone = ["jobs", "reschedule", name, "report", "--time-zone", "Europe/Vienna"]
      assert.strictEqual((yield* commandLine.run(zone, server)).code, 64)
      assert.strictEqual((yield* list).jobs[0].schedule, "every 3600000")

      const jobs = `simba:{${name}}:jobs`
      yield* server.send("HSET", jobs, "at:broken", "soon")
      const broken = yield* list
      assert.deepStrictEqual(
        [broken.jobs.length, broken.malformed.length, broken.malformed[0].name],
        [1, 1, "broken"]
      )
      assert.include((yield* commandLine.run(["jobs", "list", name], server)).output, "\"broken\" is malformed")
      const before = runs
      yield* commandLine.run(["jobs", "run", name, "report"], server)
      yield* until("the other job runs", Effect.sync(() => runs === before + 1))
      yield* server.send("HDEL", jobs, "at:broken")

      // Another program's key, whose name is not a valid mutex name
      yield* server.send("HSET", "simba:{}:jobs", "at:report", "1")
      const all = yield* commandLine.json(["jobs", "list"], server)
      assert.deepStrictEqual(
        all.map((fleet: { name: string; jobs: ReadonlyArray<{ name: string }> }) => [fleet.name, fleet.jobs[0]?.name]),
        [[name, "report"]]
      )
      const fleets = yield* commandLine.run(["jobs", "list"], server)
      for (const part of [name, "report", "1 fleet"]) assert.include(fleets.output, part)

      const absent = freshName("nosuch")
      const none = yield* commandLine.run(["jobs", "list", absent], server)
      assert.deepStrictEqual([none.code, none.output], [1, ""])
      assert.include(none.errors, `"${absent}" has no jobs.`)

      const unknown = yield* commandLine.run(["jobs", "run", name, "other"], server)
      assert.strictEqual(unknown.code, 1)
      assert.include(unknown.errors, "has no job \"other\"")

      const lease = yield* Effect.flatMap(contender.lease, Effect.fromOption)
      assert.strictEqual((yield* commandLine.run(["jobs", "step-down", name], server)).code, 0)
      yield* until("the leader has stepped down", Effect.map(lease.isHeld, (isHeld) => !isHeld))
    }))
})
