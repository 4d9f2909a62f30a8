/** How data streams are claimed, and what happens after refusals and missing replies. */
import { SimbaError } from "@effect-simba/core"
import { StreamMetrics, StreamName } from "@effect-simba/core/streams"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Logger, Metric } from "effect"
import { TestClock } from "effect/testing"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import * as leaseEnds from "../../src/streams/internal/leaseEnds.ts"
import * as leaseTakers from "../../src/streams/internal/leaseTaker.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { newTable } from "../support/streamTable.ts"

it.effect("thousands of refusals are logged as one line with their count every ten seconds", () =>
  Effect.gen(function*() {
    const { config, metrics, table } = yield* newTable({ capacity: 10_000 })
    const error = new SimbaError.BackendError({ operation: "take", isRetryable: false, cause: new Error("OOM") })
    const store = {
      take: (requests: ReadonlyArray<unknown>) => Effect.succeed(requests.map(() => ({ _tag: "Failed", error })))
    }
    const taker = leaseTakers.make(
      { config, metrics, table, store, session: "s00000000000" } as unknown as ClientContext
    )
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
    const candidates = Array.from({ length: 200 }, (_, i) => ({
      entry: StreamName.EntryId.make(`${i + 1}-0`),
      stream: StreamName.StreamName.make(`s${i}`),
      info: {},
      minIdle: Duration.zero
    }))
    for (let second = 0; second < 12; second++) {
      for (let call = 0; call < 2; call++) {
        yield* Effect.provide(taker.take(candidates, "sweep", () => {}), Logger.layer([logger]))
      }
      yield* TestClock.adjust("1 second")
    }
    assert.deepStrictEqual(lines.map((line) => line.replace(/later:.*/, "later")), [
      "Cannot take 200 data stream(s); retrying later",
      "Cannot take 4000 data stream(s); retrying later"
    ])
  }))

it.effect("a lease that was granted too late is released, with a single attempt", () =>
  Effect.gen(function*() {
    const { config, metrics, table } = yield* newTable()
    let releases = 0
    const store = {
      release: () =>
        Effect.suspend(() => {
          releases++
          return Effect.fail(
            new SimbaError.BackendError({ operation: "release", isRetryable: true, cause: new Error("no connection") })
          )
        })
    }
    const context = { config, metrics, table, store, session: "s00000000000" } as unknown as ClientContext
    const ends = leaseEnds.make(table, store as never, config)
    const taker = leaseTakers.make({ ...context, ends })
    const since = table.now()
    yield* TestClock.adjust("3 seconds")
    const acquisition = acquisitionAt(since)
    const adding = yield* Effect.forkChild(taker.add([acquisition], () => assert.fail("it is over")), {
      startImmediately: true
    })
    yield* TestClock.adjust("1 minute")
    yield* Fiber.join(adding)
    assert.strictEqual(releases, 1)
  }))

it.effect("a lease is lost if the backend refuses to end it, and no requests are sent for a lease that has ended", () =>
  Effect.gen(function*() {
    const { config, table } = yield* newTable()
    const calls: Array<string> = []
    const call = <A>(name: string, reply: A) => () => Effect.sync(() => (calls.push(name), reply))
    const store = {
      release: call("release", "NotOwner"),
      done: () =>
        Effect.suspend(() => {
          // While the request is in flight, the outcome depends on its reply, not on that to a renewal
          assert.isTrue([...table.all()][0]!.isEnding)
          return call("done", "NotOwner")()
        }),
      renew: call("renew", [{ _tag: "Lost", reason: "Vanished" }])
    }
    const ends = leaseEnds.make(table, store as never, config)
    for (const how of ["release", "done"] as const) {
      calls.length = 0
      const owned = new OwnedStream(acquisitionAt(table.now()), table.periods)
      assert.isTrue(table.add(owned))
      const lost = yield* Effect.flip(ends[how](owned))
      assert.deepInclude(lost, { _tag: "LeaseLost", reason: { _tag: "Vanished" } })
      assert.deepStrictEqual([calls, owned.outcome], [[how, "renew"], undefined])
      assert.isFalse(owned.isEnding)
      assert.strictEqual(yield* Effect.flip(ends.refused(owned)), lost)
      assert.lengthOf(calls, 2)
    }
  }))

describe("taking data streams", () => {
  const entryOf = (n: number) => StreamName.EntryId.make(`${n}-0`)
  const candidate = (n: number) => ({
    entry: entryOf(n),
    stream: StreamName.StreamName.make(`s${n}`),
    info: {},
    minIdle: Duration.zero
  })

  /** A `LeaseTaker` on a backend with one scripted reply for each entry. */
  const setup = Effect.fnUntraced(function*(
    replies: Record<string, unknown>,
    options: { readonly capacity?: number; readonly isPaused?: () => boolean } = {}
  ) {
    const { config, metrics, table } = yield* newTable({ capacity: options.capacity })
    const epochs: Array<string> = []
    const delivered: Array<string> = []
    const released: Array<string> = []
    const state = { delay: 0, outages: 0 }
    const outage = new SimbaError.BackendError({ operation: "take", isRetryable: true, cause: new Error("cut") })
    const store = {
      take: (requests: ReadonlyArray<{ entry: string; epoch: string }>) =>
        Effect.suspend(() => {
          epochs.push(...requests.map(({ epoch }) => epoch))
          if (state.outages-- > 0) return Effect.fail(outage)
          return Effect.delay(Effect.succeed(requests.map(({ entry }) => replies[entry])), state.delay)
        }),
      deadLetterMalformed: (entry: string) => Effect.succeed(replies[entry]),
      release: ({ entry }: { readonly entry: string }) => Effect.suspend(() => (released.push(entry), Effect.never))
    }
    const pauses = { has: () => options.isPaused?.() ?? false }
    const ends = leaseEnds.make(table, store as never, config)
    const taker = leaseTakers.make(
      { config, ends, metrics, table, store, pauses, session: "s00000000000" } as unknown as ClientContext
    )
    return {
      taker,
      table,
      epochs,
      delivered,
      released,
      state,
      take: (...ns: ReadonlyArray<number>) =>
        taker.take(ns.map(candidate), "sweep", ({ stream }) => delivered.push(stream)),
      mayTake: (n: number) => taker.mayTake(candidate(n))
    }
  })

  const taken = (token: number) => ({ _tag: "Taken", failures: 0, token })

  it.effect("a refused data stream may be requested again when its owner's lease ends, or after one lease duration at the latest", () =>
    Effect.gen(function*() {
      const error = new SimbaError.BackendError({ operation: "take", isRetryable: false, cause: new Error("OOM") })
      const { mayTake, take } = yield* setup({
        "1-0": { _tag: "Occupied", owner: "b", timeLeft: Duration.millis(700) },
        "2-0": { _tag: "Occupied", owner: "b", timeLeft: Duration.infinity },
        "3-0": { _tag: "Failed", error },
        "4-0": { _tag: "NotIdle" }
      })
      yield* take(1, 2, 3, 4)
      const open = () => [1, 2, 3, 4].filter(mayTake)
      assert.deepStrictEqual(open(), [4])
      yield* TestClock.adjust("699 millis")
      assert.deepStrictEqual(open(), [4])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(open(), [1, 4])
      yield* TestClock.adjust("1299 millis")
      assert.deepStrictEqual(open(), [1, 4])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(open(), [1, 2, 3, 4])
    }))

  it.effect("a lease that never expires is logged, because it prevents consumers from taking the data stream", () =>
    Effect.gen(function*() {
      const { take } = yield* setup({
        "1-0": { _tag: "Occupied", owner: "b", timeLeft: Duration.seconds(2) },
        "2-0": { _tag: "Occupied", owner: "b", timeLeft: Duration.infinity }
      })
      yield* TestClock.adjust("10 seconds")
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      yield* Effect.provide(take(1, 2), Logger.layer([logger]))
      assert.deepStrictEqual(lines, [
        "Cannot take 1 data stream(s); retrying later: a lease on \"s2\" has no expiry, so another program wrote it: " +
        "delete it if nobody is working"
      ])
    }))

  it.effect("each entry is skipped for its own period, but for at most one lease duration", () =>
    Effect.gen(function*() {
      const { mayTake, taker } = yield* setup({})
      yield* TestClock.adjust("19 seconds")
      taker.skipFor(entryOf(1), Duration.millis(500))
      taker.skipFor(entryOf(2), Duration.seconds(60))
      // Entries whose period has ended are removed occasionally
      yield* TestClock.adjust("1 second")
      taker.skipFor(entryOf(3), Duration.seconds(5))
      assert.deepStrictEqual([1, 2, 3].map(mayTake), [true, false, false])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([1, 2, 3].map(mayTake), [true, true, false])
    }))

  it.effect("a consumer does not take a data stream that is paused, that it owns, or whose handler it is still running", () =>
    Effect.gen(function*() {
      let isPaused = true
      const { mayTake, table, take } = yield* setup({ "1-0": taken(1) }, { isPaused: () => isPaused })
      assert.isFalse(mayTake(1))
      isPaused = false
      assert.isTrue(mayTake(1))
      yield* take(1)
      assert.isFalse(mayTake(1))
      const [owned] = [...table.all()]
      owned!.hasHandler = true
      table.lose(owned!, "Vanished")
      assert.isFalse(mayTake(1))
      table.workEnded(owned!)
      assert.isTrue(mayTake(1))
    }))

  it.effect("a refusal frees the reserved capacity, and each request has a separate epoch", () =>
    Effect.gen(function*() {
      const { delivered, epochs, state, table, take } = yield* setup({
        "1-0": taken(1),
        "2-0": { _tag: "Gone" },
        "3-0": taken(3)
      }, { capacity: 2 })
      state.delay = 100
      const taking = yield* Effect.forkChild(take(1, 2, 3), { startImmediately: true })
      assert.deepStrictEqual([table.free(), epochs.length], [0, 2])
      assert.deepStrictEqual(yield* take(3), [])
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual((yield* Fiber.join(taking)).map(({ _tag }) => _tag), ["Taken", "Gone"])
      assert.deepStrictEqual([table.free(), delivered], [1, ["s1"]])
      state.delay = 0
      yield* take(3)
      assert.deepStrictEqual([table.free(), delivered], [0, ["s1", "s3"]])
      assert.deepStrictEqual(epochs, ["s00000000000.1", "s00000000000.2", "s00000000000.3"])
    }))

  it.effect("a request without a reply is repeated with the same epoch for up to a lease duration, and closing waits for it", () =>
    Effect.gen(function*() {
      const { delivered, epochs, state, table, take, taker } = yield* setup({ "1-0": taken(1) })
      state.outages = 2
      const taking = yield* Effect.forkChild(take(1), { startImmediately: true })
      const idle = yield* Effect.forkChild(taker.idle, { startImmediately: true })
      yield* TestClock.adjust("50 millis")
      assert.isUndefined(idle.pollUnsafe())
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(idle.pollUnsafe())
      yield* Fiber.join(taking)
      assert.deepStrictEqual([delivered, new Set(epochs).size, epochs.length], [["s1"], 1, 3])
      state.outages = Infinity
      const failing = yield* Effect.forkChild(Effect.flip(take(2)), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      assert.isDefined(failing.pollUnsafe())
      assert.strictEqual(table.free(), 63)
      // Two requests may be in flight at a time
      Object.assign(state, { outages: 0, delay: 300 })
      const first = yield* Effect.forkChild(take(1), { startImmediately: true })
      yield* TestClock.adjust("100 millis")
      yield* Effect.forkChild(take(1), { startImmediately: true })
      const both = yield* Effect.forkChild(taker.idle, { startImmediately: true })
      yield* TestClock.adjust("250 millis")
      assert.deepStrictEqual([first.pollUnsafe() === undefined, both.pollUnsafe()], [false, undefined])
      yield* TestClock.adjust("100 millis")
      assert.isDefined(both.pollUnsafe())
    }))

  it.effect("neither handlers nor releases wait until another lease has been released", () =>
    Effect.gen(function*() {
      const replies = Object.fromEntries([1, 2, 3, 4].map((n) => [entryOf(n), taken(n)]))
      const { delivered, released, state, table, take, taker } = yield* setup(replies)
      state.delay = 100
      const taking = yield* Effect.forkChild(take(1, 2, 3, 4), { startImmediately: true })
      for (const n of [1, 3]) {
        // An earlier lease's handler that does not end
        const former = acquisitionAt(table.now(), { entry: entryOf(n + 10), stream: `s${n}`, token: n })
        yield* taker.add([former], (owned) => {
          owned.hasHandler = true
          table.lose(owned, "Vanished")
        })
      }
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual([delivered, released], [["s2", "s4"], ["1-0", "3-0"]])
      // No release gets a reply
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(taking.pollUnsafe())
    }))

  it.effect("dead-lettering a data stream is logged", () =>
    Effect.gen(function*() {
      const { take } = yield* setup({ "1-0": { _tag: "DeadLettered", failures: 3 } })
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      yield* Effect.provide(take(1), Logger.layer([logger]))
      assert.deepStrictEqual(lines, ["Data stream dead-lettered: its handlers failed 3 time(s)"])
    }))

  it.effect("the log says how many data streams without an owner were taken over by a claim", () =>
    Effect.gen(function*() {
      const { take } = yield* setup({ "1-0": taken(1), "2-0": taken(2), "3-0": taken(3) })
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      yield* Effect.provide(Effect.andThen(take(1), take(2, 3)), Logger.layer([logger]))
      assert.deepStrictEqual(lines, [
        "Took over a data stream that had no owner",
        "Took over 2 data streams that had no owner"
      ])
    }))

  it.effect("an unreadable announcement is counted only by the consumer that dead-letters it", () =>
    Effect.gen(function*() {
      const { taker } = yield* setup({ "1-0": true, "2-0": false })
      const count = Effect.map(Metric.value(StreamMetrics.stream.malformedAnnouncements), ({ count }) => count)
      const before = yield* count
      for (const n of [1, 2]) {
        yield* taker.deadLetter(
          { _tag: "Malformed", entry: entryOf(n), problem: "no JSON" },
          "simba-consumer-a" as never
        )
      }
      assert.strictEqual((yield* count) - before, 1)
    }))
})
