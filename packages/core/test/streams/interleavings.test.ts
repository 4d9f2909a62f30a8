/**
 * State that changes between a check and its use: requests in flight, handlers that outlive their leases, late replies.
 */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import * as revocation from "../../src/streams/internal/revocation.ts"
import type { StreamTable } from "../../src/streams/internal/streamTable.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { stalling } from "../support/stalling.ts"
import * as fleet from "../support/streamFleet.ts"
import { newTable } from "../support/streamTable.ts"

/** Announces a data stream without a lease whose entry is pending for a dead consumer. */
const orphan = Effect.fnUntraced(function*(backend: fleet.Fleet["backend"], a: fleet.Consumer) {
  yield* a.client.announceAll(fleet.names(1))
  backend.rows[0]!.owner = "redis-consumer-gone"
  yield* TestClock.adjust("10 seconds")
})

const count = (consumer: fleet.Consumer) => Effect.map(consumer.client.owned, ({ length }) => length)

const ownedBy = (table: StreamTable, stream: string, token: number, entry = "1-0") =>
  new OwnedStream(acquisitionAt(table.now(), { stream, token, entry }), table.periods)

describe("claims while the client closes", () => {
  it.effect("a claim in flight fails, and its lease is released", () =>
    fleet.test(Effect.gen(function*() {
      for (const delay of [100, 450]) {
        const { a, backend, open } = yield* fleet.ofOne
        yield* orphan(backend, a)
        a.link.delays.take = delay
        const claiming = yield* Effect.forkChild(Effect.exit(a.acquire("s1")), { startImmediately: true })
        yield* TestClock.adjust("50 millis")
        const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
        yield* TestClock.adjust("600 millis")
        assert.isDefined(closing.pollUnsafe())
        const exit = yield* Fiber.join(claiming)
        assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("this client is closed"))
        assert.deepStrictEqual(yield* count(a), 0)
        assert.deepStrictEqual([backend.streamLeases.size, backend.running.size], [0, 0])
        const b = yield* open("b")
        yield* b.acquire("s1")
      }
    })))

  it.effect("a claim by a closed client fails without taking anything", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend } = yield* fleet.ofOne
      yield* orphan(backend, a)
      yield* a.close
      const error = yield* Effect.flip(a.acquire("s1"))
      assert.include(error.message, "this client is closed")
      assert.notInclude(a.link.calls, "take")
    })))

  it.effect("a claim in flight delays closing by at most the release timeout", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      const a = yield* open("a", {
        commandTimeout: "1 second",
        releaseTimeout: "500 millis",
        leaseDuration: "9 seconds"
      })
      yield* orphan(backend, a)
      a.link.modes.take = "hang"
      yield* Effect.forkDetach(a.acquire("s1"), { startImmediately: true })
      yield* TestClock.adjust("10 millis")
      const closing = yield* Effect.forkChild(a.close, { startImmediately: true })
      yield* TestClock.adjust("600 millis")
      assert.isDefined(closing.pollUnsafe())
    })))
})

describe("a new lease for a data stream that this client still uses", () => {
  it.effect("the old lease is lost, and a new one is refused while the old one's handler is still running", () =>
    Effect.gen(function*() {
      const { table } = yield* newTable()
      const [first, second, third] = [1, 2, 3].map((token) => ownedBy(table, "s1", token)) as [
        OwnedStream,
        OwnedStream,
        OwnedStream
      ]
      first.hasHandler = true
      assert.isTrue(table.add(first))
      assert.isFalse(table.add(second))
      assert.strictEqual(first.loss?.reason._tag, "TakenOver")
      assert.strictEqual(table.size, 0)
      table.workEnded(first)
      assert.isTrue(table.add(third))
      assert.deepStrictEqual(table.owned(), [third])
    }))

  it.effect("a lease that is ending keeps its own outcome when a newer lease arrives", () =>
    Effect.gen(function*() {
      const { table } = yield* newTable()
      const [first, second] = [ownedBy(table, "s1", 1), ownedBy(table, "s1", 2)]
      table.add(first)
      first.endings++
      assert.isFalse(table.add(second))
      assert.isTrue(first.isOpen())
      table.end(first, "released")
      assert.strictEqual(first.outcome, "released")
    }))

  it.effect("a consumer releases a data stream that it receives while its old handler still runs, so two handlers never run at the same time", () =>
    fleet.test(Effect.gen(function*() {
      const { backend, open } = yield* fleet.make
      let running = 0
      let most = 0
      const work = (millis: number) =>
        Effect.uninterruptible(Effect.acquireUseRelease(
          Effect.sync(() => most = Math.max(most, ++running)),
          () => Effect.sleep(millis),
          () => Effect.sync(() => running--)
        ))
      const a = yield* open("a", { rebalance: true, capacity: 10, sweepInterval: "1 hour" })
      yield* a.serve(1, () => work(60_000))
      yield* TestClock.adjust("1 second")
      // The lease is lost on the server, and another member hands the data stream over again
      const [row] = backend.rows
      backend.streamLeases.clear()
      backend.entryLeases.clear()
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* count(a), 0)
      const b = yield* open("b", { rebalance: false })
      row!.delivered = -60_000
      yield* b.acquire("s1")
      const [member] = backend.members.values()
      const [{ epoch, token }] = [backend.streamLeases.get("s1")!]
      const held = { stream: "s1", entry: row!.entry, consumer: "simba-consumer-b", epoch, token } as never
      const service = backend.service((_, call) => Effect.sync(call))
      assert.strictEqual(yield* service.handOver(held, member!, "1500 millis" as never), "HandedOver")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual([running, most], [1, 1])
      assert.strictEqual(backend.streamLeases.size, 0)
    })))
})

describe("a failed request to end a lease", () => {
  it.effect("a data stream is rebalanced like any other if its `done` fails and its lease is then renewed", () =>
    fleet.test(Effect.gen(function*() {
      const { open } = yield* fleet.make
      const a = yield* open("a", { rebalance: true })
      a.link.modes.done = "fail"
      yield* a.serve(
        2,
        (lease) => Effect.andThen(Effect.exit(lease.done), Effect.andThen(lease.revoked, lease.yield))
      )
      yield* TestClock.adjust("20 seconds")
      const b = yield* open("b", { rebalance: true })
      yield* b.start(b.client.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* count(a), yield* count(b)], [1, 1])
    })))

  it.effect("if the reply to a release is lost, retrying it does not report a lost lease", () =>
    fleet.test(Effect.gen(function*() {
      const { a, backend, lines } = yield* fleet.ofOne
      yield* orphan(backend, a)
      yield* a.acquire("s1")
      a.link.modes.release = "lost"
      const first = yield* Effect.forkChild(Effect.flip(a.release("s1")), { startImmediately: true })
      yield* TestClock.adjust("600 millis")
      assert.strictEqual((yield* Fiber.join(first))._tag, "BackendError")
      a.link.modes.release = "work"
      yield* a.release("s1")
      assert.deepStrictEqual(lines.filter((line) => line.includes("is lost")), [])
    })))
})

describe("a client's owned data streams", () => {
  it.effect("using one data stream immediately ends all expired leases, before any timer fires", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const { table } = yield* Effect.provideService(newTable(), Clock.Clock, clock)
      const lost: Array<string> = []
      table.onLost = ({ stream }) => lost.push(stream)
      const [first, second] = [ownedBy(table, "s1", 1, "1-0"), ownedBy(table, "s2", 2, "2-0")]
      table.add(first)
      table.add(second)
      let isSecondOpen: boolean | undefined
      first.onLoss.add(() => isSecondOpen = second.isOpen())
      stall.millis = 1000
      const third = ownedBy(table, "s3", 3, "3-0")
      table.add(third)
      assert.isTrue(table.isHeld(third))
      assert.deepStrictEqual(lost, [])
      stall.millis = 2000
      assert.isTrue(table.isHeld(third))
      assert.deepStrictEqual(lost, ["s1", "s2"])
      // All expired leases have ended before the first loss is reported
      assert.isFalse(isSecondOpen)
    }))

  it.effect("a data stream is no longer owned after its deadline, even in a process that is too busy for its timers", () =>
    fleet.test(Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const { open } = yield* fleet.make
      const a = yield* Effect.provideService(open("a"), Clock.Clock, clock)
      yield* a.start(Effect.provideService(a.client.run(Effect.never), Clock.Clock, clock))
      yield* a.client.announceAll(fleet.names(5))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual(yield* count(a), 5)
      stall.millis = 1500
      assert.strictEqual(yield* count(a), 0)
    })))
})

describe("stopping data streams", () => {
  it.effect("stopping also awaits a handler that starts while others are being stopped", () =>
    Effect.gen(function*() {
      const { table } = yield* newTable()
      const [first, second] = [ownedBy(table, "s1", 1), ownedBy(table, "s2", 2)]
      let awaited = 0
      const held = (owned: OwnedStream, act: () => void) =>
        Object.assign(owned, {
          stop: act,
          onEnd: Object.assign(owned.onEnd, { add: () => (awaited++, () => {}) })
        })
      held(first, () => second.hasHandler = true)
      held(second, () => {})
      const stopping = yield* Effect.forkChild(revocation.stop(table, [first, second]), { startImmediately: true })
      assert.isUndefined(stopping.pollUnsafe())
      assert.strictEqual(awaited, 1)
      yield* Fiber.interrupt(stopping)
    }))
})
