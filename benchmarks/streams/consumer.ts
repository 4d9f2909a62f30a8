/** A consumer of data streams in a separate process, which reports events to the suite and replies to its questions. */
import { StreamClient, StreamLease, StreamMessages, StreamMetrics } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Cause, Effect, Fiber, Layer, Metric, Schema } from "effect"

export interface Setup {
  readonly url: string
  readonly options: StreamClient.Options
  /**
   * What the handlers do. `messages`: read data streams, and report when each message was received. `count`: read data
   * streams, and only count messages. `none`: own data streams without reading them.
   */
  readonly work: "messages" | "count" | "none"
}

export interface Usage {
  readonly cpuMillis: number
  readonly heapBytes: number
}

/**
 * The reply to the `tally` question. Each field covers the time since the previous `tally`, unless its comment says
 * otherwise.
 */
export interface Tally {
  readonly messages: number
  /** Handlers that have started since the consumer began. */
  readonly began: number
  /** The time at which the last message was received. */
  readonly at: number
  /** The time from sending to receipt of each message. The message contains the time at which it was sent. */
  readonly latencies: ReadonlyArray<number>
  readonly longestStallMillis: number
  /** Leases that have been lost since the consumer began. */
  readonly leasesLost: number
  /** Handler failures since the consumer began, and those that were already counted when they started. */
  readonly failures: number
}

export type Question = "usage" | "tally" | "close"

export type Said =
  | { readonly _tag: "Joined" }
  /** All instants are in milliseconds, on a clock that all processes on a machine share. */
  | { readonly _tag: "Began"; readonly count: number; readonly at: number }
  | { readonly _tag: "Read"; readonly at: number }
  | { readonly _tag: "Usage"; readonly usage: Usage }
  | { readonly _tag: "Tally"; readonly tally: Tally }
  | { readonly _tag: "Closed"; readonly at: number }
  | { readonly _tag: "Failed"; readonly problem: string }

export const now = (): number => performance.timeOrigin + performance.now()

const say = (said: Said) => {
  if (process.connected) process.send?.(said)
}

const Message = Schema.Struct({ n: Schema.String })

const count = { began: 0, messages: 0, at: 0, latencies: [] as Array<number>, failures: 0, longestStallMillis: 0 }

/** The interval between checks for stalls, in milliseconds. Work that blocks the event loop delays a check. */
const stallInterval = 2
let lastTick = performance.now()
const watchStalls = () => {
  const tick = performance.now()
  count.longestStallMillis = Math.max(count.longestStallMillis, tick - lastTick - stallInterval)
  lastTick = tick
  setTimeout(watchStalls, stallInterval).unref()
}

const read = (work: Setup["work"], sentAt: number) => {
  const at = now()
  if (work === "messages") return say({ _tag: "Read", at })
  count.messages += 1
  count.at = at
  count.latencies.push(at - sentAt)
}

const handler = ({ options, work }: Setup) =>
  Effect.gen(function*() {
    const { failures } = yield* StreamLease.StreamLease
    count.failures += failures
    count.began += 1
    if (count.began === 1 || count.began === options.capacity) say({ _tag: "Began", count: count.began, at: now() })
    if (work === "none") return yield* Effect.never
    yield* StreamMessages.process(Message, ({ value }) => Effect.sync(() => read(work, Number(value.n))))
  })

const usage = () => {
  globalThis.gc?.()
  const { system, user } = process.cpuUsage()
  say({ _tag: "Usage", usage: { cpuMillis: (system + user) / 1000, heapBytes: process.memoryUsage().heapUsed } })
}

const losses = Effect.map(
  Effect.forEach(Object.values(StreamMetrics.stream.losses), Metric.value),
  (states) => states.reduce((sum, state) => sum + state.count, 0)
)

const tally = () => {
  const { at, began, failures, latencies, longestStallMillis, messages } = count
  const leasesLost = Effect.runSync(losses)
  say({ _tag: "Tally", tally: { messages, began, at, latencies, longestStallMillis, leasesLost, failures } })
  Object.assign(count, { messages: 0, latencies: [], longestStallMillis: 0 })
}

const main = (setup: Setup) =>
  StreamClient.StreamClient.use((client) => {
    say({ _tag: "Joined" })
    const failed = () => Effect.sync(() => void (count.failures += 1))
    return client.run(handler(setup), { onError: failed })
  }).pipe(
    Effect.provide(
      RedisStreams.layerRedis(setup.options).pipe(
        Layer.provide(IoRedis.layer({ url: setup.url }))
      )
    )
  )

if (process.env["SIMBA_BENCH_STREAMS"] !== undefined) {
  const setup = JSON.parse(process.env["SIMBA_BENCH_STREAMS"]) as Setup
  // Other rows measure CPU time, which the checks for stalls would increase
  if (setup.work === "count") watchStalls()
  const running = Effect.runFork(
    main(setup).pipe(Effect.tapCause((cause) =>
      Effect.sync(() => {
        if (!Cause.hasInterruptsOnly(cause)) say({ _tag: "Failed", problem: String(cause) })
      })
    ))
  )
  const close = Effect.andThen(Fiber.interrupt(running), Effect.sync(() => say({ _tag: "Closed", at: now() })))
  const replies: Record<Question, () => void> = { usage, tally, close: () => void Effect.runFork(close) }
  process.on("message", (question: Question) => replies[question]())
  process.on("disconnect", () => process.exit())
}
