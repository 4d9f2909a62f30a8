/**
 * A process that contends for a leadership with two jobs. `server/process/jobs.test.ts` starts several such processes
 * and checks that each scheduled time has one run in the fleet.
 */
import { Leadership } from "@effect-simba/core"
import * as Mutex from "@effect-simba/core/Mutex"
import { IoRedis, RedisFence, RedisMutex } from "@effect-simba/redis"
import { DateTime, Effect, Layer } from "effect"

export interface JobsConfig {
  readonly url: string
  readonly name: string
  readonly mutex: string
  /** The `rate` job's period, in milliseconds. */
  readonly every: number
  /** Every run whose number is a multiple of this fails, so that the process steps down. */
  readonly stepsDownAfter: number
}

export const jobs = ["rate", "cron"] as const

/** The hash that counts a job's runs by instant. */
export const countKey = (mutex: string, job: string) => `runs of ${job} in ${mutex}`
export const logKey = (mutex: string) => `log of ${mutex}`

const count = RedisFence.script(
  (counts: string, log: string, line: string, instant: number) => [counts, log, line, instant],
  {
    numberOfKeys: 2,
    lua: `
redis.call('RPUSH', KEYS[2], ARGV[1])
return redis.call('HINCRBY', KEYS[1], ARGV[2], 1)`
  }
)

export const layer = (config: JobsConfig) => {
  let runs = 0
  const run = (job: string) => ({ lease, scheduledAt }: Leadership.Run) =>
    Effect.gen(function*() {
      const { mutex, name, stepsDownAfter } = config
      const instant = DateTime.toEpochMillis(scheduledAt)
      yield* RedisFence.run(count, lease)(countKey(mutex, job), logKey(mutex), `${job} ${name}`, instant)
      if (++runs % stepsDownAfter === 0) return yield* Effect.fail("a failed run")
    })
  return Leadership.layerJobs(config.mutex, [
    { name: "rate", schedule: Leadership.every(config.every), onError: "stepDown", run: run("rate") },
    {
      name: "cron",
      schedule: Leadership.cron("* * * * * *"),
      catchUp: "5 seconds",
      onError: "stepDown",
      run: run("cron")
    }
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
