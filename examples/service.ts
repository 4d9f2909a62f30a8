/**
 * A service that needs mutexes. Its configuration decides whether they live in Redis or in this process.
 *
 *     node examples/service.ts
 *     LOCKS=redis REDIS_URL=redis://localhost:6379 node examples/service.ts
 *
 * Needs Node 22.19 or newer and a clone of this repository.
 */
import { Mutex, type SimbaError } from "@effect-simba/core"
import { RedisMutex } from "@effect-simba/redis"
import { NodeRuntime } from "@effect/platform-node"
import { Config, Context, Effect, Layer, Option, Ref } from "effect"

/** Makes reports. Only one process at a time makes a given report. */
export class Reports extends Context.Service<Reports, {
  /** Returns `None` if another process is making the report. */
  readonly make: (
    name: string
  ) => Effect.Effect<Option.Option<string>, SimbaError.RequestError | SimbaError.LeaseLost>
  readonly count: Effect.Effect<number>
}>()("example/Reports") {
  /** Works with any layer that provides `Mutex`. */
  static readonly layer = Layer.effect(
    Reports,
    Effect.gen(function*() {
      const mutex = yield* Mutex.Mutex
      const made = yield* Ref.make(0)
      const write = (name: string) =>
        Effect.gen(function*() {
          yield* Effect.sleep("5 seconds")
          const number = yield* Ref.updateAndGet(made, (n) => n + 1)
          return `${name}, report number ${number}`
        })
      return {
        make: (name) => mutex.withLockIfAvailable(`report:${name}`)(write(name)),
        count: Ref.get(made)
      }
    })
  )
}

/** Provides `Mutex`: on Redis for several processes, or in memory for this process only. */
export const MutexLive = Layer.unwrap(Effect.map(
  Config.Literals(["redis", "memory"], "LOCKS").pipe(Config.withDefault("memory")),
  (locks) => locks === "redis" ? RedisMutex.layerFromEnv() : Mutex.layerMemory()
))

export const program = Effect.gen(function*() {
  const reports = yield* Reports
  const results = yield* Effect.all([reports.make("sales"), reports.make("sales")], { concurrency: "unbounded" })
  yield* Effect.log(results.map(Option.getOrElse(() => "somebody else is making it")))
  return results
})

const Live = Reports.layer.pipe(Layer.provide(MutexLive))

if (import.meta.main) NodeRuntime.runMain(Effect.provide(program, Live))
