/** Measures stream ownership: assignments, take-over, and the cost of owning data streams. */
import { Effect } from "effect"
import type { Server } from "../../packages/redis/test/support/redisServer.ts"
import { median, rounded, spread } from "../lib/statistics.ts"
import type { Said } from "./consumer.ts"
import { announce, freshService, setup, start } from "./fleet.ts"

export interface StreamRow {
  readonly id: string
  readonly title: string
  readonly unit: string
  readonly better: "more" | "less"
  readonly value: number
  readonly spread: readonly [number, number]
  readonly samples: number
  /** The limit from the configuration or from a documented guarantee. */
  readonly bound?: number | undefined
  readonly seconds?: number | undefined
  /** The number of lost leases and counted failures. */
  readonly lost?: number | undefined
  /** The longest timer delay in the consumer. */
  readonly longestStallMillis?: number | undefined
  readonly redisMillisPerMessage?: number | undefined
}

export const row = (
  id: string,
  title: string,
  unit: string,
  better: StreamRow["better"],
  values: ReadonlyArray<number>,
  bound?: number
): StreamRow => {
  const [least, most] = spread(values)
  return {
    id,
    title,
    unit,
    better,
    value: rounded(median(values)),
    spread: [rounded(least), rounded(most)],
    samples: values.length,
    ...(bound === undefined ? {} : { bound })
  }
}

const times = <A, E, R>(count: number, effect: Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.scoped(effect))

export const began = (count: number) => (said: Said) => said._tag === "Began" && said.count === count

const firstOf = (said: ReadonlyArray<Said>) => said.find((one) => one._tag === "Began") as { readonly at: number }

/** Measures how fast one consumer takes a backlog, from its first handler to its last. */
export const assignments = (server: Server, count: number, repetitions: number) =>
  Effect.map(
    times(
      repetitions,
      Effect.gen(function*() {
        const service = freshService("assignments")
        yield* announce(server, service, count)
        const consumer = yield* start(setup(server, service, "none", { capacity: count }))
        const last = yield* consumer.until("all data streams are owned", began(count)) as Effect.Effect<
          { readonly at: number }
        >
        return (count - 1) / ((last.at - firstOf(consumer.said).at) / 1000)
      })
    ),
    (
      rates
    ) => [row("assignments", `assignments of ${count} announcements to one consumer`, "per second", "more", rates)]
  )

const lease = 2000
const sweep = 2000

/** Adds other keys with an expiry, like the keys for fences and checkpoints. */
const fill = (server: Server, count: number) =>
  server.send(
    "EVAL",
    "for i = 1, tonumber(ARGV[1]) do redis.call('SET', KEYS[1] .. i, i, 'PX', 604800000) end",
    "1",
    "other",
    String(count)
  )

/**
 * Measures the time from SIGKILL to the successor's first message. If many keys have an expiry, Redis notices expired
 * keys late, so a sweep may come before the event.
 */
export const takeover = (server: Server, kind: "events" | "sweep" | "events-10000", repetitions: number) =>
  Effect.gen(function*() {
    yield* server.send("CONFIG", "SET", "notify-keyspace-events", kind === "sweep" ? "" : "Ex")
    if (kind === "events-10000") yield* fill(server, 10_000)
    const millis = yield* times(
      repetitions,
      Effect.gen(function*() {
        const service = freshService("takeover")
        const options = { leaseDuration: lease, sweepInterval: sweep, rebalance: false } as const
        yield* announce(server, service, 1)
        const owner = yield* start(setup(server, service, "messages", options))
        yield* owner.until("the owner has taken its data stream", began(1))
        const successor = yield* start(setup(server, service, "messages", options))
        yield* successor.until("the consumer has joined", (said) => said._tag === "Joined")
        // Vary the time of the kill relative to the heartbeats and sweeps
        yield* Effect.sleep(2500 + 1000 * Math.random())
        const killed = yield* owner.kill
        yield* server.send("XADD", `${service} 0`, "*", "n", "1")
        const read = (yield* successor.until("the successor has read a message", (said) => said._tag === "Read")) as {
          readonly at: number
        }
        return read.at - killed
      })
    )
    const how =
      { events: "with events", sweep: "by sweeps", "events-10000": "with events, among 10000 other keys" }[kind]
    return [
      row(
        `takeover-${kind}-ms`,
        `from SIGKILL to the successor's first message, ${how}`,
        "ms",
        "less",
        millis,
        kind === "events" ? lease : lease + 1.2 * sweep
      )
    ]
  })

const calls = (server: Server) =>
  Effect.map(
    server.send("INFO", "commandstats"),
    (info) => Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(String(info))?.[1] ?? 0)
  )

/** Measures the cost of owning a number of data streams whose handlers are waiting. */
export const owning = (server: Server, count: number, heartbeats: number, repetitions: number) =>
  Effect.map(
    times(
      repetitions,
      Effect.gen(function*() {
        const heartbeat = 1000
        const service = freshService("owning")
        const consumer = yield* start(
          setup(server, service, "none", {
            capacity: count,
            leaseDuration: 5000,
            heartbeatInterval: heartbeat,
            commandTimeout: 1000
          })
        )
        yield* consumer.until("the consumer has joined", (said) => said._tag === "Joined")
        yield* Effect.sleep("2 seconds")
        const measure = Effect.gen(function*() {
          const before = { ...(yield* consumer.usage), calls: yield* calls(server) }
          yield* Effect.sleep(heartbeat * heartbeats)
          const after = { ...(yield* consumer.usage), calls: yield* calls(server) }
          return {
            heapBytes: before.heapBytes,
            cpuMillis: (after.cpuMillis - before.cpuMillis) / heartbeats,
            calls: (after.calls - before.calls) / heartbeats
          }
        })
        const idle = yield* measure
        yield* announce(server, service, count)
        yield* consumer.until("all data streams are owned", began(count))
        yield* Effect.sleep("3 seconds")
        const busy = yield* measure
        return {
          cpuSeconds: (busy.cpuMillis - idle.cpuMillis) / 1000,
          calls: busy.calls - idle.calls,
          heap: (busy.heapBytes - idle.heapBytes) / count
        }
      })
    ),
    (samples) => [
      row(
        `owned-${count}-cpu-seconds`,
        `CPU time per heartbeat with ${count} owned, minus that with none`,
        "s",
        "less",
        samples.map(({ cpuSeconds }) => cpuSeconds)
      ),
      row(
        `owned-${count}-script-calls`,
        `script calls per heartbeat with ${count} owned, minus those with none`,
        "calls",
        "less",
        samples.map(({ calls }) => calls)
      ),
      row(
        `owned-${count}-heap-bytes`,
        `heap per data stream and its handler, with ${count} owned`,
        "bytes",
        "less",
        samples.map(({ heap }) => heap)
      )
    ]
  )
