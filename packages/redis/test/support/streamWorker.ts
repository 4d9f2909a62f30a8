/**
 * A process that owns data streams and records in Redis what it processes. `server/process/streams.test.ts` starts
 * several workers, kills some, and checks the records.
 */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { StreamLease } from "@effect-simba/core/streams/StreamLease"
import * as StreamMessages from "@effect-simba/core/streams/StreamMessages"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Effect, Fiber, Layer, Schema } from "effect"
import * as Redis from "effect/persistence/Redis"

export interface StreamWorkerConfig {
  readonly url: string
  readonly options: StreamClient.Options
  /** How long each message takes. */
  readonly workMillis: number
}

/** Messages from the worker to the test. */
export type StreamWorkerReport =
  /** Sent when the worker is connected. */
  | { readonly _tag: "Ready" }
  | { readonly _tag: "Owns"; readonly stream: string; readonly token: number }
  | { readonly _tag: "Refused"; readonly stream: string; readonly token: number }
  | { readonly _tag: "Failed"; readonly problem: string }
  | { readonly _tag: "Done" }

/** The list of processed messages, one item each: `<token> <message> <worker>`. */
export const processedKey = (stream: string): string => `processed of ${stream}`

const send = (report: StreamWorkerReport) =>
  Effect.sync(() => {
    if (process.connected) process.send?.(report)
  })

/** Like a fenced resource, appends to the list unless its last item has a larger token. */
const write = Redis.script(
  (list: string, token: number, message: string, worker: string) => [list, token, message, worker],
  {
    numberOfKeys: 1,
    lua: `
local last = redis.call('LINDEX', KEYS[1], -1)
if last and tonumber(string.match(last, '^%d+')) > tonumber(ARGV[1]) then
  return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1] .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
return 1`
  }
).withReturnType<number>()

const Message = Schema.Struct({ n: Schema.FiniteFromString, last: Schema.optionalKey(Schema.String) })

const handler = ({ options, workMillis }: StreamWorkerConfig) =>
  Effect.gen(function*() {
    const redis = yield* Redis.Redis
    const evaluate = redis.eval(write)
    const { stream, token } = yield* StreamLease
    yield* send({ _tag: "Owns", stream, token })
    yield* StreamMessages.process(Message, ({ id }) =>
      Effect.gen(function*() {
        yield* Effect.sleep(workMillis)
        const isTaken = yield* evaluate(processedKey(stream), token, id, options.processName ?? "").pipe(
          // Retry during outages. Losing the lease interrupts this.
          Effect.retry({ while: () => Effect.as(Effect.sleep("50 millis"), true) })
        )
        if (isTaken === 0) yield* send({ _tag: "Refused", stream, token })
      }), { batch: 10, until: ({ value }) => value.last !== undefined })
  })

const main = (config: StreamWorkerConfig) =>
  Effect.andThen(send({ _tag: "Ready" }), StreamClient.run(handler(config))).pipe(
    Effect.provide(
      RedisStreams.layerRedis(config.options).pipe(
        Layer.provideMerge(IoRedis.layer({ url: config.url, commandTimeout: "500 millis" }))
      )
    )
  )

if (process.env["SIMBA_TEST_STREAM_WORKER"] !== undefined) {
  const fiber = Effect.runFork(
    main(JSON.parse(process.env["SIMBA_TEST_STREAM_WORKER"]) as StreamWorkerConfig).pipe(
      Effect.tapCause((cause) => send({ _tag: "Failed", problem: String(cause) })),
      Effect.onInterrupt(() => send({ _tag: "Done" }))
    )
  )
  process.on("SIGTERM", () => void Effect.runPromise(Fiber.interrupt(fiber)).then(() => process.disconnect?.()))
  // Exit when the parent process dies
  process.on("disconnect", () => process.exit())
}
