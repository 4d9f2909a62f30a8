/**
 * A process that keeps its CPU busy while `server/process/busyOutage.test.ts` cuts its connection. Afterwards the
 * process acquires another mutex or data stream, named `fresh`, to show that it still works.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import type { StreamLease } from "@effect-simba/core/streams/StreamLease"
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { Cause, Deferred, Effect, Exit, Fiber, Latch, Option } from "effect"

export interface BusyConfig {
  readonly url: string
  /**
   * What protects the work. `withLock`: mutexes. `watchdog`: mutexes whose `isAlive` interrupts the work. `leader`:
   * leaderships. `streams`: data streams announced by the test. `shared`: the same, but another process takes the data
   * streams that this one loses.
   */
  readonly kind: "withLock" | "watchdog" | "leader" | "streams" | "shared"
  readonly count: number
  /** The bodies under mutexes end at evenly distributed times during this period, in milliseconds. */
  readonly spread: number
  readonly periods: {
    readonly ttl: number
    readonly transition: number
    readonly commandTimeout: number
    readonly leaseDuration: number
  }
}

export type BusyReport =
  /** Sent when all work is running. */
  | { readonly _tag: "Working" }
  /** Sent when all work has ended, with the number of bodies per outcome. An outcome is an error's tag or `Done`. */
  | { readonly _tag: "Ended"; readonly exits: Readonly<Record<string, number>> }
  /** The CPU time, in milliseconds, used during one second after all work has ended. */
  | { readonly _tag: "Rested"; readonly cpu: number }
  | { readonly _tag: "Worked"; readonly spans: ReadonlyArray<Span>; readonly longestTurn: number }
  | { readonly _tag: "Fresh" }
  | { readonly _tag: "FreshEnded"; readonly exit: string }

/** When a handler started and when it was last active, by `machineTime`. */
export interface Span {
  readonly stream: string
  readonly from: number
  to: number
}

/** A monotonic clock, in milliseconds, shared by all processes on the machine. */
export const machineTime = (): number => Number(process.hrtime.bigint()) / 1e6

/** Messages from the test to the process. */
export type BusyOrder = "finish" | "resume" | "release"

export const service = "busy"
export const freshName = "fresh"

const report = (what: BusyReport) => Effect.sync(() => void process.send?.(what))

const orders = { finish: Latch.makeUnsafe(false), resume: Latch.makeUnsafe(false), release: Latch.makeUnsafe(false) }
let isFinishing = false

const turn = Effect.andThen(
  Effect.sync(() => {
    const end = performance.now() + 1
    while (performance.now() < end);
  }),
  Effect.yieldNow
)

/** Uses the CPU in one-millisecond turns until `isOver`. Calls `act` in each turn. */
const burn = (act: () => void, isOver: () => boolean) =>
  Effect.whileLoop({ while: () => !isOver(), body: () => turn, step: act })

const tagOf = (exit: Exit.Exit<unknown, unknown>): string => {
  if (Exit.isSuccess(exit)) return "Done"
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause)) as { readonly _tag?: string } | undefined
  return error?._tag ?? (Cause.hasInterruptsOnly(exit.cause) ? "Interrupted" : String(exit.cause))
}

const countTags = (exits: ReadonlyArray<Exit.Exit<unknown, unknown>>) => {
  const counts: Record<string, number> = {}
  for (const exit of exits) counts[tagOf(exit)] = (counts[tagOf(exit)] ?? 0) + 1
  return counts
}

const names = ({ count }: BusyConfig) => Array.from({ length: count }, (_, i) => `busy-${i}`)

/** A barrier. Each body runs `first`. Both `first` and `all` wait for all bodies to start. */
const starting = (count: number) => {
  const all = Deferred.makeUnsafe<void>()
  let begun = 0
  const first = Effect.andThen(
    Effect.sync(() => {
      if (++begun === count) Deferred.doneUnsafe(all, Exit.void)
    }),
    Deferred.await(all)
  )
  return { first, all: Deferred.await(all) }
}

const locked = (config: BusyConfig) =>
  Effect.gen(function*() {
    const { all, first } = starting(config.count)
    let startedAt = Infinity
    const body = (i: number) =>
      Effect.andThen(
        first,
        burn(() => {}, () => isFinishing || performance.now() - startedAt > config.spread * (i + 1) / config.count)
      )
    const fibers = yield* Effect.forEach(names(config), (name, i) =>
      Effect.gen(function*() {
        if (config.kind !== "watchdog") return yield* Effect.forkChild(Mutex.withLock(name)(body(i)))
        const fiber: Fiber.Fiber<void, unknown> = yield* Effect.forkChild(
          body(i).pipe(Mutex.withLock(name, { isAlive: Effect.sync(() => (fiber.interruptUnsafe(), true)) }))
        )
        return fiber
      }))
    yield* all
    startedAt = performance.now()
    yield* report({ _tag: "Working" })
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    yield* report({ _tag: "Ended", exits: countTags(exits) })
  })

/**
 * Waits until every body has run again after the outage. They need not run simultaneously, because a lease may be lost
 * again.
 */
const worksOn = (working: Set<string>, count: number) =>
  Effect.gen(function*() {
    yield* orders.resume.await
    working.clear()
    while (working.size < count) yield* Effect.sleep("50 millis")
    yield* report({ _tag: "Working" })
  })

const led = (config: BusyConfig) =>
  Effect.gen(function*() {
    const { all, first } = starting(config.count)
    const working = new Set<string>()
    const fibers = yield* Effect.forEach(names(config), (name) =>
      Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const contender = yield* Mutex.contend(name, { logLevel: "Debug" })
        const work = Effect.andThen(first, burn(() => working.add(name), () => false))
        yield* Effect.raceFirst(contender.whileLeader(work), orders.finish.await)
      }))))
    yield* all
    yield* report({ _tag: "Working" })
    yield* worksOn(working, config.count)
    const exits = yield* Effect.forEach(fibers, Fiber.await)
    yield* report({ _tag: "Ended", exits: countTags(exits) })
  })

/** Owns data streams. After the work on them has ended, announces and owns the fresh one. */
const owned = (config: BusyConfig) =>
  Effect.gen(function*() {
    const { all, first } = starting(config.count)
    const working = new Set<string>()
    const ended = new Set<string>()
    const handler = ({ stream }: StreamLease) => {
      if (stream === freshName) return freshBody
      return first.pipe(
        Effect.andThen(burn(() => working.add(stream), () => isFinishing)),
        Effect.andThen(Effect.sync(() => ended.add(stream)))
      )
    }
    yield* Effect.forkScoped(StreamClient.run(handler))
    yield* all
    yield* report({ _tag: "Working" })
    yield* worksOn(working, config.count)
    while (ended.size < config.count) yield* Effect.sleep("50 millis")
    yield* report({ _tag: "Ended", exits: { Done: ended.size } })
    yield* rest
    yield* StreamClient.announce(freshName)
    return yield* Effect.never
  })

/** Owns data streams while another process takes those that this one loses. Records when each handler ran. */
const shared = ({ count }: BusyConfig) =>
  Effect.gen(function*() {
    const { all, first } = starting(count)
    const spans: Array<Span> = []
    yield* Effect.forkScoped(StreamClient.run(({ stream }) =>
      Effect.andThen(
        first,
        Effect.suspend(() => {
          const span = { stream, from: machineTime(), to: machineTime() }
          spans.push(span)
          return burn(() => span.to = machineTime(), () => isFinishing)
        })
      )
    ))
    yield* all
    let [last, longestTurn] = [machineTime(), 0]
    const timer = setInterval(() => {
      const now = machineTime()
      longestTurn = Math.max(longestTurn, now - last)
      last = now
    }, 1)
    yield* report({ _tag: "Working" })
    while (!isFinishing) yield* Effect.sleep("50 millis")
    clearInterval(timer)
    yield* report({ _tag: "Worked", spans, longestTurn })
    return yield* Effect.never
  })

const rest = Effect.gen(function*() {
  // Exclude the first second after the work, when losses are logged and leases are released
  yield* Effect.sleep("1 second")
  const before = process.cpuUsage()
  yield* Effect.sleep("1 second")
  const { system, user } = process.cpuUsage(before)
  yield* report({ _tag: "Rested", cpu: (system + user) / 1000 })
})

const freshBody = Effect.andThen(report({ _tag: "Fresh" }), orders.release.await).pipe(
  Effect.onExit((exit) => report({ _tag: "FreshEnded", exit: tagOf(exit) }))
)

const main = (config: BusyConfig) => {
  const { commandTimeout, leaseDuration, transition, ttl } = config.periods
  const redis = { url: config.url, serverChecks: false }
  if (config.kind === "streams" || config.kind === "shared") {
    return Effect.scoped(config.kind === "shared" ? shared(config) : owned(config)).pipe(
      Effect.provide(
        RedisStreams.layer({ service, capacity: config.count + 1, leaseDuration, commandTimeout, redis })
      )
    )
  }
  return Effect.scoped(config.kind === "leader" ? led(config) : locked(config)).pipe(
    Effect.andThen(rest),
    Effect.andThen(Mutex.withLock(freshName)(freshBody)),
    Effect.provide(RedisMutex.layer({ ttl, transition, commandTimeout, redis }))
  )
}

if (process.env["SIMBA_TEST_BUSY"] !== undefined) {
  process.on("message", (order: BusyOrder) => {
    if (order === "finish") isFinishing = true
    orders[order].openUnsafe()
  })
  process.on("disconnect", () => process.exit())
  await Effect.runPromiseExit(main(JSON.parse(process.env["SIMBA_TEST_BUSY"]) as BusyConfig))
  process.disconnect?.()
}
