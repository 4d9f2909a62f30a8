/** A process with jobs that run once per period in the fleet, for `process/jobs.test.ts`. */
import { Leadership } from "@effect-simba/core"
import type { Lease } from "@effect-simba/core/Lease"
import * as Mutex from "@effect-simba/core/Mutex"
import { MutexName } from "@effect-simba/core/MutexName"
import { IoRedis, RedisFence, RedisMutex } from "@effect-simba/redis"
import { Effect, Layer } from "effect"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"

export interface JobsConfig {
  readonly url: string
  readonly name: string
  readonly mutex: string
  /** Milliseconds. */
  readonly every: number
  /** Gives the leadership up after so many runs in a row. */
  readonly stepsDownAfter: number
}

export const jobs = ["rate", "cron"] as const

/** Where a job counts its runs by period, and where it says who had it. */
export const countKey = (mutex: string, job: string) => `runs of ${job} in ${mutex}`
export const logKey = (mutex: string) => `log of ${mutex}`

/** The period is the one whose ticket was given out last: the leader that has it is at work. */
const count = RedisFence.script(
  (tick: string, counts: string, log: string, line: string) => [tick, counts, log, line],
  {
    numberOfKeys: 3,
    lua: `
redis.call('RPUSH', KEYS[3], ARGV[1])
return redis.call('HINCRBY', KEYS[2], redis.call('GET', KEYS[1]), 1)`
  }
)

export const layer = (config: JobsConfig) => {
  let runs = 0
  const run = (job: string) => (lease: Lease) =>
    Effect.gen(function*() {
      const { mutex, name, stepsDownAfter } = config
      const tick = RedisKeys.tick(MutexName.make(mutex), job)
      yield* RedisFence.run(count, lease)(tick, countKey(mutex, job), logKey(mutex), `${job} ${name}`)
      if (++runs % stepsDownAfter === 0) return yield* Effect.fail("enough for now")
    })
  const options = { oncePerPeriod: true, onError: "stepDown" } as const
  return Leadership.layerJobs(config.mutex, [
    { ...options, name: "rate", schedule: Leadership.fixedRate(config.every), run: run("rate") },
    { ...options, name: "cron", schedule: Leadership.cron("* * * * * *"), catchUp: "5 seconds", run: run("cron") }
  ]).pipe(
    Layer.provide(
      Mutex.layer({
        ttl: "700 millis",
        transition: "1800 millis",
        commandTimeout: "500 millis",
        processName: `${process.pid}@${config.name}`
      })
    ),
    Layer.provide(RedisMutex.layerStore),
    Layer.provide(IoRedis.layer({ url: config.url, commandTimeout: "500 millis" }))
  )
}

if (process.env["SIMBA_TEST_JOBS"] !== undefined) {
  await Effect.runPromise(Layer.launch(layer(JSON.parse(process.env["SIMBA_TEST_JOBS"]) as JobsConfig)))
}
