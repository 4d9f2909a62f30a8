/**
 * Measures how long after the deadline the last body ends, while the bodies keep the process busy and the server does
 * not reply.
 *
 *     pnpm bench:lateness [--repetitions n] [--only 300,1000,10000,streams] [--save]
 */
import { Mutex } from "@effect-simba/core"
import { StreamClient, type StreamLease } from "@effect-simba/core/streams"
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Deferred, Duration, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { writeFile } from "node:fs/promises"
import { RedisServer, type Server } from "../packages/redis/test/support/redisServer.ts"
import { commandLine } from "../scripts/lib/commandLine.mjs"
import { format } from "./lib/format.ts"
import { median, rounded, spread } from "./lib/statistics.ts"
import { aligned } from "./lib/table.ts"

export interface LatenessRow {
  readonly title: string
  /** The median length of the event-loop turn in which a deadline passed, in milliseconds. */
  readonly turn: number
  /** The median lateness of the last body, in milliseconds. `spread` contains the minimum and the maximum. */
  readonly millis: number
  readonly spread: readonly [number, number]
  /** The maximum number of event-loop turns that started between the deadline and the end of the last body. */
  readonly turns: number
  /** The maximum lateness beyond the turn that was running at the deadline, in milliseconds. Bound: 50. */
  readonly beyond: number
}

/** How long all bodies together compute per turn, in milliseconds. */
const computing = 300

/** So long that leases end seconds after the last possible renewal. */
const periods = { ttl: "2 seconds", transition: "14 seconds", commandTimeout: "1 second" } as const
const lease = "16 seconds"

const now = () => performance.now()

/** Runs one step per event-loop turn. `Effect.forever` would yield once more. */
const endless = <A>(step: Effect.Effect<A>) => Effect.whileLoop({ while: () => true, body: () => step, step: () => {} })

/** Creates bodies that compute in turn, and records their deadlines and when they end. */
const crowd = (count: number) => {
  const begun = Deferred.makeUnsafe<void>()
  const deadlines: Array<number> = []
  const ends: Array<number> = []
  const readers: Array<Effect.Effect<Duration.Duration>> = []
  const turn = Effect.andThen(
    Effect.sync(() => {
      const end = now() + computing / count
      while (now() < end);
    }),
    Effect.yieldNow
  )
  const body = (timeLeft: Effect.Effect<Duration.Duration>) =>
    Effect.suspend(() => {
      const index = readers.push(timeLeft) - 1
      if (readers.length === count) Deferred.doneUnsafe(begun, Exit.void)
      return Effect.andThen(Deferred.await(begun), endless(turn)).pipe(
        Effect.onInterrupt(() =>
          Effect.sync(() => {
            ends[index] = now()
          })
        )
      )
    })
  /** Read all deadlines in one step, because a yield would take an event-loop turn. */
  const readDeadlines = Effect.sync(() =>
    readers.forEach((timeLeft, index) => {
      const left = Duration.toMillis(Effect.runSync(timeLeft))
      if (left === 0) throw new Error("a lease ended before the server was suspended")
      deadlines[index] = now() + left
    })
  )
  /** The start of each event-loop turn. The fiber below runs one step per turn. */
  const turns: Array<number> = []
  const watch = endless(Effect.andThen(Effect.sync(() => turns.push(now())), Effect.yieldNow))
  const measured = () => {
    if (ends.filter((end) => end > 0).length < count) throw new Error("not all bodies have ended")
    let last = { late: -Infinity, turns: 0, turn: 0 }
    deadlines.forEach((deadline, index) => {
      const late = ends[index]! - deadline
      if (late <= last.late) return
      const before = turns.findLastIndex((at) => at <= deadline)
      const during = turns.filter((at) => at > deadline && at <= ends[index]!).length
      last = { late, turns: during, turn: (turns[before + 1] ?? now()) - turns[before]! }
    })
    return last
  }
  return { begun: Deferred.await(begun), body, readDeadlines, watch, measured }
}

/** Suspends the server, and lets each body run until its lease ends. */
const untilOver = (
  server: Server,
  { begun, measured, readDeadlines, watch }: ReturnType<typeof crowd>,
  over: Effect.Effect<unknown, unknown>
) =>
  Effect.gen(function*() {
    yield* begun
    yield* Effect.forkScoped(watch)
    yield* Effect.sleep("1 second")
    yield* server.pause
    // From now on, no renewal can succeed
    yield* Effect.sleep("1500 millis")
    yield* readDeadlines
    yield* Effect.exit(over)
    yield* server.resume
    return measured()
  })

const quiet = Logger.layer([])

const mutexes = (count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const them = crowd(count)
    const context = yield* Layer.build(
      RedisMutex.layer({ ...periods, redis: { url: server.url, serverChecks: false } })
    )
    const fibers = yield* Effect.forEach(
      Array.from({ length: count }, (_, i) => `m${i}`),
      (name) => Effect.forkScoped(Effect.provide(Mutex.withLock(name)((lease) => them.body(lease.timeLeft)), context))
    )
    return yield* untilOver(server, them, Effect.forEach(fibers, Fiber.await))
  })).pipe(Effect.provide(quiet))

const streams = (count: number) =>
  Effect.scoped(Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const them = crowd(count)
    const context = yield* Layer.build(RedisStreams.layer({
      service: "late",
      capacity: count,
      leaseDuration: lease,
      heartbeatInterval: "2 seconds",
      commandTimeout: "1 second",
      redis: { url: server.url, serverChecks: false }
    }))
    const left = { count }
    const ended = Deferred.makeUnsafe<void>()
    const handler = ({ timeLeft }: StreamLease.StreamLease) =>
      Effect.onInterrupt(them.body(timeLeft), () =>
        Effect.sync(() => {
          if (--left.count === 0) Deferred.doneUnsafe(ended, Exit.void)
        }))
    yield* Effect.provide(
      StreamClient.announceAll(Array.from({ length: count }, (_, i) => ({ stream: `s${i}` }))),
      context
    )
    yield* Effect.forkScoped(Effect.provide(StreamClient.run(handler), context))
    return yield* untilOver(server, them, Deferred.await(ended))
  })).pipe(Effect.provide(quiet))

const works = {
  300: ["300 mutexes", mutexes(300)],
  1000: ["1,000 mutexes", mutexes(1000)],
  10000: ["10,000 mutexes", mutexes(10_000)],
  streams: ["500 data streams", streams(500)]
} as const

const { values: options } = commandLine({
  options: {
    repetitions: { type: "string", default: "3" },
    only: { type: "string" },
    /** Keeps the results for `pnpm bench:page`. */
    save: { type: "boolean", default: false }
  }
}, { counts: ["repetitions"], names: { only: Object.keys(works) } })

const wanted = options.only?.split(",")
const rows: Array<LatenessRow> = []
for (const [id, [title, work]] of Object.entries(works)) {
  if (wanted !== undefined && !wanted.includes(id)) continue
  const samples = []
  for (let i = 0; i < Number(options.repetitions); i++) {
    const sample = await Effect.runPromise(work)
    process.stderr.write(`${title}: ${JSON.stringify(sample)}\n`)
    samples.push(sample)
  }
  const late = samples.map((sample) => sample.late)
  const [least, most] = spread(late)
  rows.push({
    title,
    turn: rounded(median(samples.map(({ turn }) => turn))),
    millis: rounded(median(late)),
    spread: [rounded(least), rounded(most)],
    turns: Math.max(...samples.map(({ turns }) => turns)),
    beyond: rounded(Math.max(0, ...samples.map(({ late, turn }) => late - turn)))
  })
}
if (options.save) {
  const file = new URL("./results/lateness.json", import.meta.url)
  await writeFile(file, JSON.stringify({ at: new Date().toISOString(), rows }, null, 2))
  await format(file)
}
process.stdout.write(`${
  aligned([
    ["scenario", "turn, ms", "lateness, ms", "min", "max", "turns started", "beyond the current turn, ms"],
    ...rows.map(({ beyond, millis, spread, title, turn, turns }) =>
      [title, turn, millis, ...spread, turns, beyond].map(String)
    )
  ])
}\n`)
process.exit(0)
