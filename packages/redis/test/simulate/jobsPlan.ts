/**
 * The `jobs` plan for `pnpm simulate`: a leadership with every kind of job, under every fault. Operators intervene in
 * half of the seeds.
 */
import { Leadership, Mutex } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { Simulation } from "@effect-simba/testkit"
import { DateTime, Duration, Effect, Layer } from "effect"
import type { Redis } from "effect/persistence/Redis"
import * as lockModel from "../../src/internal/mutex/lockModel.ts"
import { draws } from "./draws.ts"
import { type JobRules, jobsRunAsScheduled } from "./jobsChecker.ts"
import { operate, resumedWithin } from "./jobsOperator.ts"
import { ordersAreFollowed } from "./jobsOrderChecker.ts"

const mutex = "a"
const ttl = 2000
const transition = 2500
const confirm = 500

const { sleepBoundAfterLoss } = Effect.runSync(lockModel.bounds({ ttl, transition, confirmTimeout: confirm }))

/**
 * The maximum time until a job runs again, in milliseconds: a lost leader's lease, its successor's sleep, and the
 * longest run or period.
 */
const recovery = ttl + transition + Duration.toMillis(sleepBoundAfterLoss) + 5000

/** The jobs, with their options and what the checker knows about them. */
const kinds: ReadonlyArray<JobRules & { readonly options: Omit<Leadership.Job<string, never>, "name" | "run"> }> = [
  {
    job: "every",
    period: 1000,
    attempts: 1,
    options: { schedule: Leadership.every("1 second"), misfire: "runAll", catchUp: "1 minute" }
  },
  { job: "cron", period: 2000, attempts: 1, options: { schedule: Leadership.cron("*/2 * * * * *") } },
  {
    job: "long",
    period: 3000,
    attempts: 1,
    options: { schedule: Leadership.every("3 seconds"), maxRun: "5 seconds", minInterval: "2 seconds" }
  },
  {
    job: "again",
    period: 4000,
    attempts: 3,
    options: { schedule: Leadership.every("4 seconds"), catchUp: "20 seconds", attempts: 3, onError: "stepDown" }
  }
]

/**
 * A process's program, with or without an operator. A tenth of the runs fail. Tests pass a defective `store`, which the
 * checker must detect.
 */
export const program = (store = RedisMutex.layerStore, isOperated = false) => (client: Simulation.Client) => {
  const { note, random } = client
  const run = (job: string) => ({ attempt, lease, scheduledAt }: Leadership.Run) =>
    Effect.gen(function*() {
      const fields = { job, instant: DateTime.toEpochMillis(scheduledAt), attempt, token: lease.token }
      note("run", fields)
      yield* Effect.sleep(Duration.millis(random() * (job === "long" ? 8000 : 300)))
      if (random() < 0.1) return yield* Effect.fail("no luck")
    }).pipe(Effect.ensuring(Effect.sync(() => note("run ended", { job, token: lease.token }))))
  const layer = Leadership.layerJobs(mutex, kinds.map(({ job, options }) => ({ ...options, name: job, run: run(job) })))
    .pipe(
      Layer.provideMerge(Mutex.layer({
        ttl,
        transition,
        confirmTimeout: confirm,
        processName: `${client.name}.${client.generation}`
      })),
      Layer.provide(store)
    )
  const operator = isOperated ? operate(client, mutex, kinds.map(({ job }) => job)) : Effect.void
  return Effect.flatMap(
    Layer.build(layer),
    (services): Effect.Effect<void, never, Redis> => Effect.andThen(Effect.provide(operator, services), Effect.never)
  )
}

interface Overrides extends Partial<Omit<Simulation.Options<never>, "program">> {
  readonly program?: ReturnType<typeof program>
  readonly isOperated?: boolean
}

export const jobsPlan = (seed: number | string, overrides: Overrides = {}) => {
  const draw = draws(`jobs/${seed}`)
  const { isOperated = draw("operator") > 0.5, ...others } = overrides
  const rules = { mutex, jobs: kinds, recovery: isOperated ? recovery + resumedWithin : recovery }
  return {
    seed,
    clients: 2 + Math.floor(draw("clients") * 3),
    program: program(undefined, isOperated),
    lock: lockModel.make([mutex]),
    faults: Simulation.allFaults,
    checkers: [jobsRunAsScheduled(rules), ...isOperated ? [ordersAreFollowed(rules)] : []],
    duration: "40 seconds",
    calm: isOperated ? "8 seconds" : "3 seconds",
    liveness: "90 seconds",
    closing: "20 seconds",
    ...others
  } as const
}
