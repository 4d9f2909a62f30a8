/**
 * A fleet that owns 10,000 data streams for long, while its processes are killed, closed and started again: every message
 * is processed, and the memory of the process that stays is flat.
 *
 *     pnpm soak:streams [--minutes 60] [--streams 10000] [--seconds 30]
 */
import { Effect, Random } from "effect"
import { Redis } from "ioredis"
import { parseArgs } from "node:util"
import { RedisServer } from "../packages/redis/test/support/redisServer.ts"
import { now } from "./streams/consumer.ts"
import { announce, type Consumer, freshService, setup, start } from "./streams/fleet.ts"

const { values: options } = parseArgs({
  options: {
    minutes: { type: "string", default: "60" },
    streams: { type: "string", default: "10000" },
    /** Between two ends of a process. */
    seconds: { type: "string", default: "30" }
  }
})

const minutes = Number(options.minutes)
const count = Number(options.streams)
const perSecond = 200
const say = (line: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(line)}\n`)

const program = Effect.gen(function*() {
  const server = yield* RedisServer.start()
  const client = new Redis(server.url)
  yield* Effect.addFinalizer(() => Effect.sync(() => client.disconnect()))
  const service = freshService("soak")
  const open = start(
    // Two hold all while the third is away
    setup(server, service, "count", { capacity: Math.ceil(count / 2), leaseDuration: 5000, heartbeatInterval: 1500 })
  )
  yield* announce(server, service, count)
  const steady = yield* open
  const others: Array<Consumer> = [yield* open, yield* open]
  yield* Effect.sleep("20 seconds")

  const begun = now()
  const until = begun + minutes * 60_000
  let sent = 0
  const produce = Effect.gen(function*() {
    while (now() < until - 30_000) {
      const stream = yield* Random.nextIntBetween(0, count)
      yield* Effect.promise(() => client.xadd(`${service} ${stream}`, "MAXLEN", "~", "100", "*", "n", String(now())))
      sent++
      yield* Effect.sleep(Math.max(0, begun + sent * 1000 / perSecond - now()))
    }
  })
  const disturb = Effect.gen(function*() {
    for (let turn = 0; now() < until - 60_000; turn++) {
      yield* Effect.sleep(Number(options.seconds) * 1000)
      const which = turn % others.length
      if (turn % 4 < 2) yield* others[which]!.kill
      else yield* others[which]!.close
      yield* Effect.sleep("3 seconds")
      others[which] = yield* open
    }
  })
  const memory = Effect.map(
    server.send("INFO", "memory"),
    (info) => Number(/^used_memory:(\d+)/m.exec(String(info))?.[1])
  )
  const owned = Effect.map(
    server.send(
      "EVAL",
      "local n = 0 for i = 1, ARGV[2] do n = n + redis.call('EXISTS', 'mutex:' .. ARGV[1] .. ' ' .. (i - 1)) end return n",
      "0",
      service,
      String(count)
    ),
    Number
  )
  const heaps: Array<number> = []
  const watch = Effect.gen(function*() {
    let lost = 0
    let longestStallMillis = 0
    while (now() < until) {
      yield* Effect.sleep("30 seconds")
      const { cpuMillis, heapBytes } = yield* steady.usage
      const tally = yield* steady.tally
      lost = tally.leasesLost
      longestStallMillis = Math.max(longestStallMillis, tally.longestStallMillis)
      heaps.push(heapBytes)
      say({
        minute: Math.round((now() - begun) / 6000) / 10,
        sent,
        owned: yield* owned,
        heapMegabytes: Math.round(heapBytes / 1e5) / 10,
        redisMegabytes: Math.round((yield* memory) / 1e5) / 10,
        cpuSeconds: Math.round(cpuMillis / 1000),
        lost,
        stallMillis: Math.round(tally.longestStallMillis)
      })
    }
    return { lost, longestStallMillis }
  })
  const [figures] = yield* Effect.all([watch, produce, disturb], { concurrency: "unbounded" })

  let unread = 0
  for (let i = 0; i < count; i++) {
    const [last] = yield* Effect.promise(() => client.xrevrange(`${service} ${i}`, "+", "-", "COUNT", 1))
    const checkpoint = yield* Effect.promise(() => client.get(`simba:checkpoint:${service} ${i}`))
    if (last !== undefined && checkpoint?.split("@@")[0] !== last[0]) unread++
  }
  const dead = yield* server.send("XLEN", `simba:dead:${service}-input`)
  const part = (from: number, to: number) => {
    const some = heaps.slice(Math.floor(heaps.length * from), Math.ceil(heaps.length * to))
    return some.reduce((sum, heap) => sum + heap, 0) / some.length
  }
  const growth = part(0.75, 1) / part(0.25, 0.5) - 1
  const result = {
    sent,
    unread,
    dead: Number(dead),
    owned: yield* owned,
    ...figures,
    heapGrowth: Number(growth.toFixed(3))
  }
  say(result)
  return unread === 0 && result.dead === 0 && result.owned === count && growth < 0.1
})

const isWell = await Effect.runPromise(Effect.scoped(program))
process.exit(isWell ? 0 : 1)
