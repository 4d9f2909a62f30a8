/**
 * Runs a fleet that owns 10,000 data streams for a long time, while its processes are killed, closed and restarted. The
 * soak fails if a message is not processed, if a lease is lost without a kill, or if the memory of Redis or of the
 * surviving process grows. Memory is judged only in runs of ten minutes or more.
 *
 *     pnpm soak:streams [--minutes 60] [--streams 10000] [--seconds 30] [--save]
 *
 * At the end, prints one line of JSON, which `--save` stores for `pnpm bench:page`.
 */
import { Effect, Random } from "effect"
import { Redis } from "ioredis"
import { writeFile } from "node:fs/promises"
import { RedisServer } from "../packages/redis/test/support/redisServer.ts"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { format } from "./lib/format.ts"
import { now } from "./streams/consumer.ts"
import { announce, type Consumer, freshService, setup, start } from "./streams/fleet.ts"

const { values: options } = commandLine({
  options: {
    minutes: { type: "string", default: "60" },
    streams: { type: "string", default: "10000" },
    /** The time between two kills or closings. */
    seconds: { type: "string", default: "30" },
    save: { type: "boolean", default: false }
  }
}, { counts: ["streams"], positive: ["minutes", "seconds"] })

const minutes = Number(options.minutes)
const count = Number(options.streams)
const perSecond = 200
/**
 * The number of messages kept per data stream. Larger than the number that arrive while an owner is replaced, but small
 * enough for Redis's memory to level off early.
 */
const kept = 10
/** The number of messages that a killed process may have processed since its last report. */
const unknownPerKill = 20
const warmUp = 0.25
const tolerated = 0.05

interface Sample {
  readonly minute: number
  readonly heapMegabytes: number
  readonly redisMegabytes: number
}

/** Returns the relative growth of a figure after the warm-up, according to a line fitted to its samples. */
const growth = (samples: ReadonlyArray<Sample>, figure: (sample: Sample) => number) => {
  const warm = samples.filter(({ minute }) => minute >= warmUp * minutes)
  const mean = (of: (sample: Sample) => number) => warm.reduce((sum, sample) => sum + of(sample), 0) / warm.length
  const [minute, level] = [mean((sample) => sample.minute), mean(figure)]
  const slope = mean((sample) => (sample.minute - minute) * (figure(sample) - level)) /
    mean((sample) => (sample.minute - minute) ** 2)
  return Number((slope * (1 - warmUp) * minutes / level).toFixed(3))
}

const megabytes = (bytes: number) => Math.round(bytes / 1e5) / 10

const program = Effect.gen(function*() {
  const server = yield* RedisServer.start()
  const client = new Redis(server.url)
  yield* Effect.addFinalizer(() => Effect.sync(() => client.disconnect()))
  const service = freshService("soak")
  const open = start(
    // Two processes can own all data streams while the third is down
    setup(server, service, "count", { capacity: Math.ceil(count / 2), leaseDuration: 5000, heartbeatInterval: 1500 })
  )
  yield* announce(server, service, count)
  const steady = yield* open
  const others: Array<Consumer> = [yield* open, yield* open]
  yield* Effect.sleep("20 seconds")

  const begun = now()
  const until = begun + minutes * 60_000
  let [sent, processed, lost, kills, closings, longestStallMillis] = [0, 0, 0, 0, 0, 0]
  const lostBy = new Map<Consumer, number>()
  const ask = (consumer: Consumer) =>
    Effect.map(consumer.tally, (tally) => {
      processed += tally.messages
      lost += tally.leasesLost - (lostBy.get(consumer) ?? 0)
      lostBy.set(consumer, tally.leasesLost)
      return tally
    })
  const produce = Effect.gen(function*() {
    while (now() < until - 30_000) {
      const stream = yield* Random.nextIntBetween(0, count)
      yield* Effect.promise(() => client.xadd(`${service} ${stream}`, "MAXLEN", kept, "*", "n", String(now())))
      sent++
      yield* Effect.sleep(Math.max(0, begun + sent * 1000 / perSecond - now()))
    }
  })
  const disturb = Effect.gen(function*() {
    for (let turn = 0; now() < until - 60_000; turn++) {
      yield* Effect.sleep(Number(options.seconds) * 1000)
      const which = turn % others.length
      const consumer = others[which]!
      if (turn % 4 < 2) kills++
      else {
        closings++
        yield* consumer.close
      }
      yield* ask(consumer)
      yield* consumer.kill
      lostBy.delete(consumer)
      yield* Effect.sleep("3 seconds")
      others[which] = yield* open
    }
  })
  const redisBytes = Effect.map(
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
  const samples: Array<Sample> = []
  const watch = Effect.gen(function*() {
    while (now() < until) {
      yield* Effect.sleep("30 seconds")
      const { cpuMillis, heapBytes } = yield* steady.usage
      const { longestStallMillis: stall } = yield* ask(steady)
      longestStallMillis = Math.max(longestStallMillis, stall)
      const minute = Math.round((now() - begun) / 6000) / 10
      const sample = { minute, heapMegabytes: megabytes(heapBytes), redisMegabytes: megabytes(yield* redisBytes) }
      samples.push(sample)
      console.log(
        `${minute} min: ${sent} sent, ${yield* owned} owned, ${lost} leases lost, heap ${sample.heapMegabytes} MB, ` +
          `Redis ${sample.redisMegabytes} MB, CPU ${Math.round(cpuMillis / 1000)} s, stall ${Math.round(stall)} ms`
      )
    }
  })
  yield* Effect.all([watch, produce, disturb], { concurrency: "unbounded" })
  yield* Effect.forEach([steady, ...others], ask)

  let unread = 0
  for (let i = 0; i < count; i++) {
    const [last] = yield* Effect.promise(() => client.xrevrange(`${service} ${i}`, "+", "-", "COUNT", 1))
    const checkpoint = yield* Effect.promise(() => client.get(`simba:checkpoint:${service} ${i}`))
    if (last !== undefined && checkpoint?.split("@@")[0] !== last[0]) unread++
  }
  const isJudged = minutes >= 10
  const heapGrowth = isJudged ? growth(samples, ({ heapMegabytes }) => heapMegabytes) : null
  const redisGrowth = isJudged ? growth(samples, ({ redisMegabytes }) => redisMegabytes) : null
  const atLast = yield* owned
  const dead = Number(yield* server.send("XLEN", `simba:dead:${service}-input`))
  const verdicts = {
    everyMessageProcessed: unread === 0 && dead === 0 && processed >= sent - kills * unknownPerKill,
    everyStreamOwned: atLast === count,
    noLeaseLost: lost === 0,
    flatMemory: isJudged ? Math.max(heapGrowth!, redisGrowth!) < tolerated : null
  }
  for (const [name, holds] of Object.entries(verdicts)) console.log(`${name}: ${holds ?? "too short to judge"}`)
  const results = JSON.stringify({
    at: new Date().toISOString(),
    ...{ minutes, streams: count, sent, processed, unread, dead, owned: atLast, kills, closings, lost },
    ...{ longestStallMillis: Math.round(longestStallMillis), heapGrowth, redisGrowth, ...verdicts, samples }
  })
  console.log(results)
  if (options.save) {
    const file = new URL("./results/soak.json", import.meta.url)
    yield* Effect.promise(() => writeFile(file, results).then(() => format(file)))
  }
  return Object.values(verdicts).every((holds) => holds !== false)
})

const isWell = await Effect.runPromise(Effect.scoped(program))
process.exit(isWell ? 0 : 1)
