/**
 * A process with a busy event loop temporarily loses its server. All its work must end, and the process must become
 * idle. Leases that it acquires after the outage must be renewed and exclusive.
 */
import * as StreamClient from "@effect-simba/core/streams/StreamClient"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Option } from "effect"
import {
  type BusyConfig,
  type BusyOrder,
  type BusyReport,
  freshName,
  machineTime,
  service,
  type Span
} from "../../support/busyWorker.ts"
import { openMutex, RedisServer, until } from "../../support/harness.ts"
import { startNode } from "../../support/nodeProcess.ts"
import type { Server } from "../../support/redisServer.ts"
import { relayTo } from "../../support/relay.ts"

interface Size {
  readonly count: number
  /** The outage's length in milliseconds. Longer than a lease. */
  readonly outage: number
  /** Much longer than one event-loop turn. */
  readonly periods: BusyConfig["periods"]
}

const small = { ttl: 1000, transition: 2000, commandTimeout: 500, leaseDuration: 3000 }
const large = { ttl: 4000, transition: 6000, commandTimeout: 1000, leaseDuration: 10_000 }

/** How long a rival keeps trying, in milliseconds. Longer than an unrenewed lease. */
const watched = ({ leaseDuration }: BusyConfig["periods"]) => 1.5 * leaseDuration

/** A rival for the fresh mutex. `takes` tries once; `hasTaken` keeps trying for `watched` milliseconds. */
const rivalOfMutex = (server: Server, periods: BusyConfig["periods"]) =>
  Effect.gen(function*() {
    const rival = yield* openMutex(server, { ...periods, redis: { serverChecks: false } })
    const taken = Effect.scoped(Effect.map(rival.acquireIfAvailable(freshName), Option.isSome))
    return {
      hasTaken: Effect.gen(function*() {
        for (
          const end = performance.now() + watched(periods);
          performance.now() < end;
          yield* Effect.sleep("50 millis")
        ) {
          if (yield* taken) return true
        }
        return false
      }),
      takes: taken
    }
  })

/** A rival consumer that claims the fresh data stream if its lease ends. */
const rivalOfStream = (server: Server, periods: BusyConfig["periods"]) =>
  Effect.gen(function*() {
    const { commandTimeout, leaseDuration } = periods
    let hasTaken = false
    const run = StreamClient.run(Effect.sync(() => {
      hasTaken = true
    }))
    const layer = RedisStreams.layer({
      service,
      capacity: 1,
      leaseDuration,
      commandTimeout,
      redis: { url: server.url, serverChecks: false }
    })
    const join = Effect.forkScoped(Effect.provide(run, layer))
    return {
      hasTaken: Effect.andThen(join, Effect.map(Effect.sleep(watched(periods)), () => hasTaken)),
      takes: Effect.sync(() => hasTaken)
    }
  })

/** Starts the busy process with a relay in front of its server. */
const start = (kind: BusyConfig["kind"], { count, outage, periods }: Size) =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const relay = yield* relayTo(server.port)
    if (kind === "streams" || kind === "shared") {
      yield* Effect.provide(
        StreamClient.announceAll(Array.from({ length: count }, (_, i) => ({ stream: `busy-${i}` }))),
        RedisStreams.layer({ service, redis: { url: server.url } })
      )
    }
    const config: BusyConfig = {
      url: `redis://127.0.0.1:${relay.port}`,
      kind,
      count,
      spread: kind === "watchdog" ? 1e9 : outage + 4000,
      periods
    }
    const worker = yield* startNode<BusyReport>("./busyWorker.ts", "SIMBA_TEST_BUSY", config)
    const order = (order: BusyOrder) => Effect.sync(() => void worker.child.send(order))
    const said = <T extends BusyReport["_tag"]>(tag: T, nth = 1) => {
      const found = () =>
        worker.reports.filter((report): report is Extract<BusyReport, { readonly _tag: T }> => report._tag === tag)
      return Effect.gen(function*() {
        const end = performance.now() + 180_000
        while (found().length < nth) {
          if (performance.now() > end || worker.child.exitCode !== null) {
            assert.fail(`no ${tag} from the process; it reported ${JSON.stringify(worker.reports)} ${worker.output()}`)
          }
          yield* Effect.sleep("10 millis")
        }
        return found()[nth - 1]!
      })
    }
    return { order, relay, said, server, worker }
  })

/**
 * Runs another consumer, which claims the data streams that the busy process loses. Asserts that the busy process stops
 * working on each of them in time.
 */
const ownedTwice = (size: Size) =>
  Effect.gen(function*() {
    const { order, relay, said, server } = yield* start("shared", size)
    const { commandTimeout, leaseDuration } = size.periods
    const successors: Array<Span> = []
    const isOver = Latch.makeUnsafe(false)
    yield* said("Working")
    relay.isDown = true
    const successor = StreamClient.run(({ stream }) =>
      Effect.suspend(() => {
        const span = { stream: stream as string, from: machineTime(), to: Infinity }
        successors.push(span)
        return Effect.onExit(isOver.await, () => Effect.sync(() => span.to = machineTime()))
      })
    )
    const redis = { url: server.url, serverChecks: false }
    yield* Effect.forkScoped(
      Effect.provide(
        successor,
        RedisStreams.layer({ service, capacity: size.count, leaseDuration, commandTimeout, redis })
      )
    )
    for (const end = machineTime() + 60_000; machineTime() < end; yield* Effect.sleep("50 millis")) {
      if (successors.length === size.count) break
    }
    const taken = successors.length
    relay.isDown = false
    yield* Effect.sleep(watched(size.periods))
    yield* order("finish")
    const { longestTurn, spans } = yield* said("Worked")
    yield* isOver.open
    const overlaps = successors.flatMap((successor) =>
      spans.flatMap(({ from, stream, to }) => {
        const overlap = Math.min(to, successor.to) - Math.max(from, successor.from)
        return stream === successor.stream && overlap > 0 ? [{ stream, overlap }] : []
      })
    )
    const twice = new Set(overlaps.map(({ stream }) => stream)).size
    const longest = Math.max(0, ...overlaps.map(({ overlap }) => overlap))
    const margin = Math.max(100, leaseDuration / 20)
    const figures = { ...size, taken, twice, longest, longestTurn, margin }
    if (process.env["SIMBA_TEST_FIGURES"] !== undefined) console.error(JSON.stringify(figures))
    assert.strictEqual(taken, size.count)
    // Work must end within one event-loop turn plus 50 ms of its deadline, which is `margin` before the end of the
    // lease.
    assert.isAtMost(longest, Math.max(0, longestTurn + 50 - margin))
    if (longestTurn + 50 <= margin) assert.strictEqual(twice, 0)
  })

const outage = (kind: BusyConfig["kind"], size: Size) =>
  Effect.gen(function*() {
    const { outage, periods } = size
    const { order, relay, said, server, worker } = yield* start(kind, size)
    const isLimited = kind === "withLock" || kind === "watchdog"
    yield* said("Working")
    if (kind !== "watchdog") {
      relay.isDown = true
      yield* Effect.sleep(outage)
      relay.isDown = false
    }
    if (!isLimited) {
      yield* order("resume")
      yield* said("Working", 2)
      yield* order("finish")
    }
    const { exits } = yield* said("Ended")
    const { cpu } = yield* said("Rested")
    yield* said("Fresh")
    const rival = yield* kind === "streams" ? rivalOfStream(server, periods) : rivalOfMutex(server, periods)
    const hasTaken = yield* rival.hasTaken
    const meanwhile = worker.reports.some(({ _tag }) => _tag === "FreshEnded")
    yield* order("release")
    const { exit } = yield* said("FreshEnded")
    if (kind !== "streams") yield* until("the rival acquires the mutex", rival.takes)
    return { exits, cpu, hasTaken, meanwhile, exit }
  })

const check = (kind: BusyConfig["kind"], size: Size, tags: ReadonlyArray<string>) =>
  Effect.map(outage(kind, size), ({ cpu, exits, ...fresh }) => {
    if (process.env["SIMBA_TEST_FIGURES"] !== undefined) {
      console.error(JSON.stringify({ kind, ...size, cpu, exits, ...fresh }))
    }
    assert.deepStrictEqual(fresh, { hasTaken: false, meanwhile: false, exit: "Done" })
    assert.isBelow(cpu, 200, "ms of CPU time while idle")
    assert.includeMembers([...tags], Object.keys(exits))
    assert.strictEqual(Object.values(exits).reduce((sum, count) => sum + count, 0), size.count)
  })

const kinds: ReadonlyArray<readonly [BusyConfig["kind"], what: string, ends: ReadonlyArray<string>]> = [
  ["withLock", "`withLock` bodies", ["Done", "LeaseLost"]],
  ["watchdog", "`withLock` bodies that their watchdog interrupts", ["Interrupted", "LeaseLost"]],
  ["leader", "leaders", ["Done"]],
  ["streams", "data-stream handlers", ["Done"]]
]

describe("a busy process that temporarily loses its server", () => {
  for (const [kind, what, ends] of kinds.slice(0, 2)) {
    it.live(`ends 100 ${what}, becomes idle, and then owns its leases exclusively`, () =>
      check(kind, { count: 100, outage: 3500, periods: small }, ends))
  }

  it.live("loses 100 data streams, and stops working on each before another consumer starts", () =>
    ownedTwice({ count: 100, outage: 3500, periods: small }))

  for (const count of [300, 1000]) {
    it.live(
      `loses ${count} data streams, and stops working on each before another consumer starts`,
      () => ownedTwice({ count, outage: 12_000, periods: large }),
      { tags: ["long"] }
    )
  }

  for (const [kind, what, ends] of kinds) {
    for (const count of [300, 1000]) {
      it.live(
        `ends ${count} ${what}, becomes idle, and then owns its leases exclusively`,
        () => check(kind, { count, outage: 12_000, periods: large }, ends),
        { tags: ["long"] }
      )
    }
  }
})
