/**
 * Measures the cost of many data streams in one process: yielding them on close, receiving one message in each at the
 * same time, receiving twenty messages a second in total, and sharing them with a new consumer.
 */
import { Effect } from "effect"
import { Redis } from "ioredis"
import type { Server } from "../../packages/redis/test/support/redisServer.ts"
import { median, rounded } from "../lib/statistics.ts"
import { now } from "./consumer.ts"
import { announce, type Consumer, freshService, setup, start } from "./fleet.ts"
import { began, row, type StreamRow } from "./rows.ts"

const heartbeat = 1500

const options = (count: number) => ({ capacity: count, leaseDuration: 5000, heartbeatInterval: heartbeat }) as const

/** Starts a process that owns a number of data streams. Their handlers wait for messages. */
const owner = Effect.fnUntraced(function*(server: Server, service: string, count: number) {
  const consumer = yield* start(setup(server, service, "count", options(count)))
  yield* announce(server, service, count)
  yield* consumer.until("all data streams are owned", began(count))
  yield* Effect.sleep("3 seconds")
  yield* consumer.tally
  return consumer
})

const producer = (server: Server) =>
  Effect.acquireRelease(
    Effect.sync(() => new Redis(server.url)),
    (client) => Effect.sync(() => client.disconnect())
  )

/** Waits until the consumer has received `count` more messages. */
const received = (consumer: Consumer, count: number) =>
  Effect.gen(function*() {
    const latencies: Array<number> = []
    let longestStallMillis = 0
    const deadline = now() + 60_000
    for (;;) {
      const tally = yield* consumer.tally
      latencies.push(...tally.latencies)
      longestStallMillis = Math.max(longestStallMillis, tally.longestStallMillis)
      if (latencies.length >= count) {
        return { at: tally.at, latencies, longestStallMillis, lost: tally.leasesLost + tally.failures }
      }
      if (now() > deadline) {
        return yield* Effect.die(new Error(`only ${latencies.length} of ${count} messages arrived within a minute`))
      }
      yield* Effect.sleep("50 millis")
    }
  })

const scaleRow = (
  [id, title, unit]: readonly [id: string, title: string, unit: string],
  value: number,
  bound: number | undefined,
  figures: {
    readonly seconds: number
    readonly lost: number
    readonly longestStallMillis: number
    readonly redisMillisPerMessage?: number
  }
): StreamRow => ({
  ...row(id, title, unit, "less", [value], bound),
  ...figures,
  seconds: rounded(figures.seconds),
  longestStallMillis: rounded(figures.longestStallMillis)
})

/** Bounds exist only for ten thousand data streams. */
const boundOf = (count: number, bound: number) => count === 10_000 ? bound : undefined

/**
 * Measures the time from the close request until all data streams are yielded. A successor reports how many failures
 * were counted.
 */
export const close = (server: Server, count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const service = freshService("close")
    const consumer = yield* owner(server, service, count)
    const seconds = (yield* consumer.close) / 1000
    const left = yield* server.send("EVAL", "return #redis.call('KEYS', ARGV[1])", "0", `mutex:${service} *`)
    const { leasesLost, longestStallMillis } = yield* consumer.tally
    const successor = yield* start(setup(server, service, "count", options(count)))
    yield* successor.until("the successor owns all data streams", began(count))
    const { failures } = yield* successor.tally
    return [scaleRow(
      [`close-${count}`, `closing a consumer that owns ${count}`, "s"],
      seconds,
      boundOf(count, 5),
      { seconds, lost: leasesLost + Number(left) + failures, longestStallMillis }
    )]
  }))

/**
 * Adds a message to each data stream, and measures the time from the first XADD until the last handler has its message.
 */
export const burst = (server: Server, count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const service = freshService("burst")
    const consumer = yield* owner(server, service, count)
    const client = yield* producer(server)
    const before = now()
    for (let i = 0; i < count; i++) void client.xadd(`${service} ${i}`, "*", "n", String(now()))
    const { at, longestStallMillis, lost } = yield* received(consumer, count)
    // If the burst costs a lease, the lease expires within this time
    yield* Effect.sleep("5 seconds")
    const after = yield* consumer.tally
    const seconds = (at - before) / 1000
    return [scaleRow(
      [`burst-${count}`, `one message in each of ${count} at the same time`, "s"],
      seconds,
      boundOf(count, 2),
      {
        seconds,
        lost: Math.max(lost, after.leasesLost + after.failures),
        longestStallMillis: Math.max(longestStallMillis, after.longestStallMillis)
      }
    )]
  }))

const redisCpuMillis = (server: Server) =>
  Effect.map(
    server.send("INFO", "cpu"),
    (info) =>
      [...String(info).matchAll(/^used_cpu_(?:sys|user):([\d.]+)/gm)].reduce(
        (sum, [, value]) => sum + Number(value),
        0
      ) *
      1000
  )

const perSecond = 20

/**
 * Adds twenty messages a second, each to a different data stream. The cost of equally long idle periods before and
 * after is subtracted.
 */
export const trickle = (server: Server, count: number, heartbeats: number) =>
  Effect.scoped(Effect.gen(function*() {
    const service = freshService("trickle")
    const consumer = yield* owner(server, service, count)
    const client = yield* producer(server)
    const millis = heartbeat * heartbeats
    const cpuOf = Effect.fnUntraced(function*<A>(work: Effect.Effect<A>) {
      const before = yield* redisCpuMillis(server)
      yield* work
      return (yield* redisCpuMillis(server)) - before
    })
    const before = yield* cpuOf(Effect.sleep(millis))
    yield* consumer.tally
    const messages = Math.floor(millis / 1000 * perSecond)
    const began = now()
    const busy = yield* cpuOf(Effect.gen(function*() {
      for (let i = 0; i < messages; i++) {
        void client.xadd(`${service} ${i * 7919 % count}`, "*", "n", String(now()))
        yield* Effect.sleep(Math.max(0, began + (i + 1) * 1000 / perSecond - now()))
      }
    }))
    const { at, latencies, longestStallMillis, lost } = yield* received(consumer, messages)
    const after = yield* cpuOf(Effect.sleep(millis))
    const redisMillisPerMessage = rounded((busy - (before + after) / 2) / messages)
    return [
      scaleRow(
        [`trickle-${count}`, `Redis CPU per message, with ${count} mostly idle data streams owned`, "ms"],
        redisMillisPerMessage,
        boundOf(count, 1),
        { seconds: (at - began) / 1000, lost, longestStallMillis, redisMillisPerMessage }
      ),
      row(`trickle-${count}-latency-ms`, `from XADD to the handler, with ${count} owned`, "ms", "less", [
        median(latencies)
      ])
    ]
  }))

/** Measures how long a third consumer takes to get its share after joining two consumers that own all data streams. */
export const join = (server: Server, count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const service = freshService("join")
    const capacity = count / 2
    const member = (processName: string) =>
      start(setup(server, service, "count", { ...options(capacity), processName }))
    const members = yield* Effect.forEach(["first", "second"], member)
    yield* announce(server, service, count)
    yield* Effect.forEach(members, (consumer) => consumer.until("all data streams are owned", began(capacity)))
    yield* Effect.sleep("3 seconds")
    yield* Effect.forEach(members, ({ tally }) => tally)
    const before = now()
    const third = yield* member("third")
    const share = Math.floor(count / 3)
    while ((yield* third.tally).began < share) {
      if (now() - before > 300_000) {
        return yield* Effect.die(new Error("the third consumer did not get its share within five minutes"))
      }
      yield* Effect.sleep("250 millis")
    }
    const seconds = (now() - before) / 1000
    const tallies = yield* Effect.forEach([...members, third], ({ tally }) => tally)
    return [scaleRow(
      [`join-${count}`, `time until a third consumer has its share of ${count}`, "s"],
      seconds,
      boundOf(count, 180),
      {
        seconds,
        lost: tallies.reduce((sum, { failures, leasesLost }) => sum + leasesLost + failures, 0),
        longestStallMillis: Math.max(...tallies.map(({ longestStallMillis }) => longestStallMillis))
      }
    )]
  }))
