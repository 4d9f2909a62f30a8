/**
 * The cases in the `options` area: input from the program, such as names, options, addresses and environment variables.
 */
import { Leadership, Mutex } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import { BackendError } from "@effect-simba/core/SimbaError"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import * as StreamName from "@effect-simba/core/streams/StreamName"
import { ServiceName, StreamStore } from "@effect-simba/core/streams/StreamStore"
import { ConfigProvider, Effect, Layer, Schema } from "effect"
import * as url from "../../src/internal/client/ioredis/url.ts"
import * as mutexEnvironment from "../../src/internal/mutex/environment.ts"
import * as streamEnvironment from "../../src/streams/internal/environment.ts"
import { anyText, anyValue, type Draw, mutated, pick } from "./input.ts"

const durations = ["1 second", "5 seconds", 500, "250 millis", 0, -1, "soon", Infinity, NaN, { seconds: 1 }]

const anyOption = (draw: Draw): unknown => draw() < 0.6 ? pick(draw, durations) : anyValue(draw)

/** Random options, most of them with valid names. */
const anyOptions = (draw: Draw, names: ReadonlyArray<string>): unknown =>
  draw() < 0.05 ? anyValue(draw) : Object.fromEntries(
    Array.from(
      { length: Math.floor(draw() * 4) },
      () => [draw() < 0.95 ? pick(draw, names) : anyText(draw), anyOption(draw)]
    )
  )

const mutexOptions = [
  "ttl",
  "transition",
  "commandTimeout",
  "confirmTimeout",
  "processName",
  "localTurn",
  "guard"
]
const streamOptions = [
  "service",
  "processName",
  "capacity",
  "leaseDuration",
  "heartbeatInterval",
  "sweepInterval",
  "gracePeriod",
  "maxFailures",
  "rebalance",
  "progressTimeout",
  "reapAfter"
]

type Run = (draw: Draw) => readonly [input: unknown, effect: Effect.Effect<unknown, unknown>]

/** Casts, as a JavaScript program may pass anything. */
const untyped = <A>(input: unknown) => input as A

const noServer = new BackendError({ operation: "open", isRetryable: false, cause: new Error("there is no server") })

/** Builds a client over a store that cannot be opened, because options are checked before it is. */
const streamClient = (input: unknown) =>
  Effect.scoped(Effect.suspend(() =>
    Layer.build(
      StreamClient.layer(untyped(input)).pipe(
        Layer.provide(Layer.succeed(StreamStore, untyped({ open: () => Effect.fail(noServer) })))
      )
    )
  ))

const decoding = <T, E>(schema: Schema.Codec<T, E>, valid: string): Run => (draw) => {
  const input = mutated(draw, valid)
  return [
    input,
    Effect.suspend(() => {
      const result = Schema.decodeUnknownResult(schema)(input)
      return Effect.asVoid(Effect.fromResult(result))
    })
  ]
}

const within = (env: Record<string, string>) =>
  Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const runs: ReadonlyArray<readonly [name: string, run: Run]> = [
  ["mutex options", (draw) => {
    const input = anyOptions(draw, mutexOptions)
    return [input, Effect.suspend(() => MutexConfig.make(untyped(input)))]
  }],
  ["stream options", (draw) => {
    const input = anyOptions(draw, streamOptions)
    return [input, streamClient(input)]
  }],
  ["a mutex name", (draw) => {
    const input = mutated(draw, "jobs")
    return [
      input,
      Effect.provide(
        Effect.scoped(Effect.suspend(() => Mutex.acquireIfAvailable(untyped(input)))),
        Mutex.layerMemory()
      )
    ]
  }],
  ["acquire options", (draw) => {
    const input = anyOptions(draw, ["timeout", "ttl", "localTurn"])
    return [
      input,
      Effect.provide(
        Effect.scoped(Effect.suspend(() => Mutex.acquire("jobs", untyped<Mutex.AcquireOptions>(input)))),
        Mutex.layerMemory()
      )
    ]
  }],
  ["a cron schedule", (draw) => {
    const input = mutated(draw, pick(draw, ["* * * * *", "0 */2 1-5 * 1", "*/5 * * * * *"]))
    return [
      input,
      Effect.provide(
        Effect.scoped(Effect.suspend(() =>
          Layer.build(Leadership.layerJobs("jobs", [
            { name: "a", schedule: Leadership.cron(untyped(input)), run: Effect.void }
          ]))
        )),
        Mutex.layerMemory()
      )
    ]
  }],
  ["a rate", (draw) => {
    const input = anyOption(draw)
    return [
      input,
      Effect.provide(
        Effect.scoped(Effect.suspend(() =>
          Layer.build(Leadership.layerJobs("jobs", [
            { name: "a", schedule: Leadership.every(untyped(input)), run: Effect.void }
          ]))
        )),
        Mutex.layerMemory()
      )
    ]
  }],
  ["an address", (draw) => {
    const input = mutated(
      draw,
      pick(draw, ["redis://user:secret@localhost:6379/2", "rediss://[::1]:7000", "localhost"])
    )
    return [input, Effect.suspend(() => url.read(untyped(input)))]
  }],
  ["mutex environment variables", (draw) => {
    const env = { SIMBA_REDIS_TTL: anyText(draw), SIMBA_REDIS_TRANSITION: anyText(draw) }
    return [env, within(env)(mutexEnvironment.complete({}))]
  }],
  ["stream environment variables", (draw) => {
    const env = { POD_NAME: anyText(draw), POD_IP: anyText(draw) }
    return [env, within(env)(Effect.flatMap(streamEnvironment.complete({ service: "svc" }), streamClient))]
  }],
  ["a data stream name", decoding(StreamName.StreamName, "orders:1")],
  ["a service name", decoding(ServiceName, "orders")],
  ["an entry id", decoding(StreamName.EntryId, "1763733691000-0")]
]

export const anyCase = (draw: Draw) => {
  const [name, run] = pick(draw, runs)
  const [input, effect] = run(draw)
  return { name, input, effect }
}
