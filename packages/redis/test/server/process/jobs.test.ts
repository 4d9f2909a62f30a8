/** A fleet of separate processes on a real server runs each job once per period. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, type Scope } from "effect"
import { freshName, keysOf, RedisServer, until } from "../../support/harness.ts"
import { countKey, jobs, type JobsConfig, layer as jobsLayer, logKey } from "../../support/jobsWorker.ts"
import { startNode } from "../../support/nodeProcess.ts"

interface Worker {
  readonly name: string
  readonly signal: (signal: NodeJS.Signals) => Effect.Effect<void>
}

const startWorker = (config: JobsConfig): Effect.Effect<Worker, never, Scope.Scope> =>
  Effect.map(
    startNode("./jobsWorker.ts", "SIMBA_TEST_JOBS", config),
    ({ child }) => ({ name: config.name, signal: (signal) => Effect.sync(() => void child.kill(signal)) })
  )

const setting = Effect.fnUntraced(function*(label: string, every: number) {
  const server = yield* RedisServer
  const mutex = freshName(label)
  const config = (name: string, stepsDownAfter: number) => ({ url: server.url, name, mutex, every, stepsDownAfter })
  /** Which process ran which job, in order. */
  const log = Effect.map(
    server.send("LRANGE", logKey(mutex), "0", "-1"),
    (lines) => (lines as ReadonlyArray<string>).map((line) => line.split(" ") as [job: string, name: string])
  )
  const runsSince = (length: number, what: string, enough: (runs: ReadonlyArray<[string, string]>) => boolean) =>
    until(what, Effect.map(log, (lines) => enough(lines.slice(length))))
  return {
    server,
    mutex,
    config,
    log,
    runsSince,
    assertOncePerPeriod: Effect.gen(function*() {
      for (const job of jobs) {
        const fields = (yield* server.send("HGETALL", countKey(mutex, job))) as ReadonlyArray<string>
        assert.isAbove(fields.length, 4, `${job} ran in several periods`)
        const periods = fields.flatMap((period, index) =>
          index % 2 === 0 ? [{ period: Number(period), runs: fields[index + 1] }] : []
        )
        assert.deepStrictEqual(periods.filter(({ runs }) => runs !== "1"), [], job)
        const length = job === "rate" ? every : 1000
        assert.deepStrictEqual(
          periods.filter(({ period }) => period % length !== 0),
          [],
          `${job}: runs are whole periods apart`
        )
      }
    })
  }
})

const times = (job: string, count: number) => (runs: ReadonlyArray<[string, string]>) =>
  runs.filter(([name]) => name === job).length >= count

layer(RedisServer.layer, { excludeTestServices: true })("once per period, on one Redis", (it) => {
  it.effect(
    "each job runs at most once per period, even when leaders step down or are killed and new processes join",
    () =>
      Effect.gen(function*() {
        const { assertOncePerPeriod, config, log, runsSince } = yield* setting("fleet", 200)
        const workers = new Map<string, Worker>()
        for (const name of ["a", "b", "c"]) workers.set(name, yield* startWorker(config(name, 6)))
        yield* runsSince(0, "several leaders", (runs) =>
          new Set(runs.map(([, name]) =>
              name
            )).size > 1 && times("cron", 2)(runs))
        for (const next of ["d", "e"]) {
          const before = yield* log
          const [, leader] = before.at(-1)!
          yield* workers.get(leader)!.signal("SIGKILL")
          workers.delete(leader)
          workers.set(next, yield* startWorker(config(next, 6)))
          // Requests that the killed process sent earlier may still be counted
          yield* runsSince(before.length, `other processes continue without ${leader}`, (runs) => {
            const others = runs.filter(([, name]) => name !== leader)
            return times("rate", 8)(others) && times("cron", 2)(others)
          })
        }
        yield* assertOncePerPeriod
      })
  )

  it.effect(
    "closing a layer hands over leadership, and the next leader does not repeat a job in the same period",
    () =>
      Effect.gen(function*() {
        const { assertOncePerPeriod, config, log, mutex, runsSince, server } = yield* setting("layers", 300)
        // Each layer represents a process. Successive processes overlap.
        yield* Effect.forEach(
          ["a", "b", "c", "d"],
          (name, index) =>
            Effect.gen(function*() {
              yield* Effect.sleep(index * 700)
              const before = (yield* log).length
              yield* Effect.scoped(Effect.andThen(
                Layer.build(Layer.fresh(jobsLayer(config(name, 1000)))),
                runsSince(before, `${name} leads`, (runs) => times("rate", 3)(runs.filter(([, who]) => who === name)))
              ))
            }),
          { concurrency: "unbounded", discard: true }
        )
        yield* Effect.scoped(Effect.andThen(
          Layer.build(Layer.fresh(jobsLayer(config("e", 1000)))),
          runsSince(0, "cron has run three times", times("cron", 3))
        ))
        yield* assertOncePerPeriod
        assert.strictEqual(yield* server.send("EXISTS", keysOf(mutex).owner), 0)
      })
  )
})
