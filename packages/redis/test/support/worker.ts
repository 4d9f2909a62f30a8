/**
 * A process that repeatedly acquires a mutex and logs its actions to a list in Redis. `server/process/mutex.test.ts`
 * starts several workers and checks the log.
 */
import type { Lease } from "@effect-simba/core/Lease"
import * as Mutex from "@effect-simba/core/Mutex"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { Duration, Effect, Exit, Layer, Option } from "effect"
import * as Redis from "effect/persistence/Redis"

export interface WorkerConfig {
  readonly url: string
  readonly name: string
  readonly mutex: string
  readonly log: string
  /** The process waits for this key, so that several processes start together. */
  readonly go?: string
  /** The number of times that the process acquires the mutex. */
  readonly rounds: number
  /** The number of writes under each lease, and the pause after each write. */
  readonly writes: number
  readonly pauseMillis: number
  /** The timeout for writes. Default: 10 seconds, which is enough on a busy machine. */
  readonly commandTimeout?: Duration.Input
}

/** One line of the log. `micros` is the server's time in microseconds. */
export type LogLine = readonly [micros: number, act: "enter" | "write" | "leave", token: number, worker: string]

/** Messages from the worker to the test. */
export type WorkerReport =
  | { readonly _tag: "Ready" }
  | { readonly _tag: "BodyInterrupted" }
  | { readonly _tag: "Failed"; readonly error: string; readonly reason: string | undefined }
  | { readonly _tag: "Done" }

const report = (what: WorkerReport) => Effect.sync(() => void process.send?.(what))

const work = (config: WorkerConfig) =>
  Effect.gen(function*() {
    const redis = yield* Redis.Redis
    const write = Effect.fnUntraced(function*(act: LogLine[1], { token }: Lease) {
      const [seconds, micros] = yield* redis.send<[string, string]>("TIME")
      const line: LogLine = [Number(seconds) * 1e6 + Number(micros), act, token, config.name]
      yield* redis.send("RPUSH", config.log, JSON.stringify(line))
    }, (writing, _, { ensure }) =>
      // If a write fails after a suspension, the lease may be lost too. Report `LeaseLost` rather than the timeout
      Effect.catch(writing, (error) => Effect.andThen(ensure, Effect.fail(error))))
    yield* report({ _tag: "Ready" })
    while (config.go !== undefined && (yield* redis.send("EXISTS", config.go)) === 0) yield* Effect.sleep("5 millis")
    for (let round = 0; round < config.rounds; round++) {
      yield* Mutex.withLock(config.mutex)((lease) =>
        Effect.gen(function*() {
          yield* write("enter", lease)
          for (let i = 0; i < config.writes; i++) {
            yield* lease.ensure
            yield* write("write", lease)
            yield* Effect.sleep(Duration.millis(config.pauseMillis))
          }
          yield* lease.ensure
          yield* write("leave", lease)
        }).pipe(Effect.onInterrupt(() => report({ _tag: "BodyInterrupted" })))
      )
    }
  })

const main = (config: WorkerConfig) => {
  const redis = IoRedis.layer({ url: config.url, commandTimeout: config.commandTimeout ?? "10 seconds" })
  const mutex = RedisMutex.layerRedis({
    ttl: "1 second",
    transition: "1300 millis",
    commandTimeout: "500 millis",
    processName: `${process.pid}@${config.name}`
  }).pipe(Layer.provideMerge(redis))
  return Effect.runPromiseExit(Effect.provide(work(config), mutex)).then((exit) => {
    const error = Exit.isFailure(exit) ? Option.getOrUndefined(Exit.findErrorOption(exit)) : undefined
    return Effect.runPromise(report(
      Exit.isSuccess(exit)
        ? { _tag: "Done" }
        : {
          _tag: "Failed",
          error: error?._tag ?? String(exit.cause),
          reason: error?._tag === "LeaseLost" ? error.reason._tag : error?.message
        }
    ))
  })
}

if (process.env["SIMBA_TEST_WORKER"] !== undefined) {
  await main(JSON.parse(process.env["SIMBA_TEST_WORKER"]) as WorkerConfig)
  // Otherwise the channel to the parent keeps this process alive
  process.disconnect?.()
}
