/** A consumer of data streams as a process of its own, which says what happens and answers questions. */
import { StreamClient, type StreamConfig, StreamLease, StreamMessages } from "@effect-simba/core/streams"
import { IoRedis } from "@effect-simba/redis"
import { RedisStreamStore } from "@effect-simba/redis/streams"
import { Effect, Layer, Schema } from "effect"

export interface Setup {
  readonly url: string
  readonly options: StreamConfig.Options
  /** `messages`: reads its data streams, and says of each message when it had it. `none`: only owns them. */
  readonly work: "messages" | "none"
}

export interface Usage {
  readonly cpuMillis: number
  readonly heapBytes: number
}

export type Said =
  | { readonly _tag: "Joined" }
  /** Instants are of the clock that all processes of a machine share, in milliseconds. */
  | { readonly _tag: "Began"; readonly count: number; readonly at: number }
  | { readonly _tag: "Read"; readonly at: number }
  | { readonly _tag: "Usage"; readonly usage: Usage }
  | { readonly _tag: "Failed"; readonly problem: string }

export const now = (): number => performance.timeOrigin + performance.now()

const say = (said: Said) => {
  if (process.connected) process.send?.(said)
}

const Message = Schema.Struct({ n: Schema.String })

const handler = (work: Setup["work"], began: () => void) =>
  Effect.gen(function*() {
    yield* StreamLease.StreamLease
    began()
    if (work === "none") return yield* Effect.never
    yield* StreamMessages.process(Message, () => Effect.sync(() => say({ _tag: "Read", at: now() })))
  })

const main = ({ options, url, work }: Setup) => {
  let count = 0
  const began = () => {
    count += 1
    if (count === 1 || count === options.capacity) say({ _tag: "Began", count, at: now() })
  }
  process.on("message", () => {
    globalThis.gc?.()
    const { system, user } = process.cpuUsage()
    say({ _tag: "Usage", usage: { cpuMillis: (system + user) / 1000, heapBytes: process.memoryUsage().heapUsed } })
  })
  process.on("disconnect", () => process.exit())
  return StreamClient.StreamClient.use((client) => {
    say({ _tag: "Joined" })
    return client.run(handler(work, began))
  }).pipe(
    Effect.provide(
      StreamClient.layer(options).pipe(
        Layer.provide(RedisStreamStore.layer),
        Layer.provide(IoRedis.layer({ url }))
      )
    )
  )
}

if (process.env["SIMBA_BENCH_STREAMS"] !== undefined) {
  Effect.runFork(
    main(JSON.parse(process.env["SIMBA_BENCH_STREAMS"]) as Setup).pipe(
      Effect.tapCause((cause) => Effect.sync(() => say({ _tag: "Failed", problem: String(cause) })))
    )
  )
}
