/** What operators do with data streams while they are processed: seek, lag, trim and pause. */
import { StreamClient, StreamMessages, StreamMetrics } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Duration, Effect, Fiber, Metric, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const Step = Schema.Struct({ n: Schema.FiniteFromString })

const send = (...command: readonly [string, ...ReadonlyArray<string>]) => Redis.use((redis) => redis.send(...command))

const add = (...numbers: ReadonlyArray<number>) =>
  Effect.forEach(numbers, (n) => send("XADD", "orders:eu", "*", "n", String(n)))

const Live = TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders", gracePeriod: 0 })

/** Starts a consumer. `observed` collects the processed numbers, and `ended` the tokens of interrupted handlers. */
const consumer = Effect.fnUntraced(function*(work: (n: number) => Effect.Effect<void> = () => Effect.void) {
  const observed: Array<number> = []
  const ended: Array<number> = []
  yield* StreamClient.run(({ token }) =>
    StreamMessages.process(Step, ({ value }) =>
      Effect.sync(() => observed.push(value.n)).pipe(
        Effect.andThen(work(value.n)),
        Effect.onInterrupt(() => Effect.sync(() => ended.push(token)))
      ))
  ).pipe(Effect.forkChild)
  yield* TestClock.adjust("5 seconds")
  return { observed, ended }
})

describe("seek", () => {
  it.effect("is refused while a handler is running; with `force`, ends the handler's lease instead", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu")
      yield* add(1, 2, 3)
      const { ended, observed } = yield* consumer((n) => n === 3 ? Effect.sleep("10 minutes") : Effect.void)
      assert.deepStrictEqual(observed, [1, 2, 3])
      const [before] = yield* StreamClient.owned
      const refusal = yield* Effect.flip(StreamClient.seek("orders:eu", "beginning"))
      assert.strictEqual(refusal._tag, "AlreadyOwned")
      assert.include(refusal.message, "use force")
      assert.strictEqual(yield* StreamClient.seek("orders:eu", "beginning", { force: true }), "0-0")
      assert.strictEqual((yield* Effect.flip(before!.commit("9-0" as never)))._tag, "LeaseLost")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(observed, [1, 2, 3, 1, 2, 3])
      assert.deepStrictEqual(ended, [before!.token])
      const [after] = yield* StreamClient.owned
      assert.isAbove(after!.token, before!.token)
    }).pipe(Effect.provide(Live)))

  it.effect("moves a finished data stream to a time, an id, its beginning or its end", () =>
    Effect.gen(function*() {
      const ids: Array<string> = []
      for (const n of [1, 2, 3]) {
        ids.push(...(yield* add(n)).map(String))
        yield* TestClock.adjust("1 minute")
      }
      const { observed } = yield* consumer()
      const cases = [
        [DateTime.makeUnsafe(Number(ids[1]!.split("-")[0])), [2, 3]],
        [ids[2]!, [3]],
        ["beginning", [1, 2, 3]],
        ["now", []]
      ] as const
      for (const [to, expected] of cases) {
        observed.length = 0
        yield* StreamClient.seek("orders:eu", to)
        yield* StreamClient.announce("orders:eu")
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(observed, [...expected])
        yield* (yield* StreamClient.owned)[0]!.done
        yield* TestClock.adjust("10 seconds")
      }
    }).pipe(Effect.provide(Live)))

  it.effect("refuses invalid positions and names", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(StreamClient.seek("orders:eu", "yesterday")))._tag, "InvalidConfig")
      assert.strictEqual((yield* Effect.flip(StreamClient.seek("", "now")))._tag, "InvalidName")
    }).pipe(Effect.provide(Live)))
})

describe("lag", () => {
  it.effect("is the number of uncommitted messages in both the API and the metrics", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu")
      yield* add(1, 2, 3)
      const gauges = Effect.all([
        Metric.value(Metric.withAttributes(StreamMetrics.stream.lag, { service: "orders" })),
        Metric.value(Metric.withAttributes(StreamMetrics.stream.lagAge, { service: "orders" }))
      ])
      yield* consumer((n) => n === 2 ? Effect.sleep("1 minute") : Effect.void)
      assert.deepInclude(yield* StreamClient.lag("orders:eu"), { messages: 2, isCounted: true })
      yield* TestClock.adjust("30 seconds")
      const [lag, age] = yield* gauges
      assert.strictEqual(lag.value, 2)
      assert.isAtLeast(age.value, 30_000)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual((yield* gauges).map(({ value }) => value), [0, 0])
    }).pipe(Effect.provide(Live)))

  it.effect("is measured for other data streams even if one key has the wrong type", () =>
    Effect.gen(function*() {
      yield* StreamClient.announceAll([{ stream: "orders:eu" }, { stream: "orders:us" }])
      yield* add(1, 2, 3)
      yield* consumer(() => Effect.sleep("1 hour"))
      yield* send("SET", "orders:us", "text")
      yield* TestClock.adjust("40 seconds")
      const lag = yield* Metric.value(Metric.withAttributes(StreamMetrics.stream.lag, { service: "orders" }))
      assert.strictEqual(lag.value, 3)
    }).pipe(Effect.provide(Live)))

  it.effect("is zero in the metrics once the consumer has closed", () =>
    Effect.gen(function*() {
      yield* Effect.gen(function*() {
        yield* StreamClient.announce("orders:eu")
        yield* add(1, 2, 3)
        yield* consumer(() => Effect.sleep("1 hour"))
        yield* TestClock.adjust("40 seconds")
      }).pipe(Effect.scoped, Effect.provide(Live))
      for (const gauge of [StreamMetrics.stream.lag, StreamMetrics.stream.lagAge]) {
        assert.strictEqual((yield* Metric.value(Metric.withAttributes(gauge, { service: "orders" }))).value, 0)
      }
    }))
})

describe("trim", () => {
  it.effect("removes processed messages during processing without causing a gap", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu")
      const { observed } = yield* consumer((n) => n % 150 === 0 ? Effect.sleep("5 minutes") : Effect.void)
      const before = yield* Metric.value(StreamMetrics.stream.gaps)
      yield* add(...Array.from({ length: 300 }, (_, i) => i + 1))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(observed.at(-1), 150)
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 149)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* StreamClient.trim("orders:eu", { keep: "1 hour" }), 0)
      yield* TestClock.adjust("12 minutes")
      assert.deepStrictEqual(observed, Array.from({ length: 300 }, (_, i) => i + 1))
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 151)
      yield* add(301)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(observed.at(-1), 301)
      assert.strictEqual((yield* Metric.value(StreamMetrics.stream.gaps)).count, before.count)
    }).pipe(Effect.provide(Live)))

  it.effect("keeps messages not yet acknowledged by another program's consumer group", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu")
      const ids = yield* add(1, 2, 3, 4)
      yield* consumer()
      yield* send("XGROUP", "CREATE", "orders:eu", "theirs", "0")
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 0)
      yield* send("XREADGROUP", "GROUP", "theirs", "c", "COUNT", "3", "STREAMS", "orders:eu", ">")
      yield* send("XACK", "orders:eu", "theirs", String(ids[0]))
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 1)
      yield* send("XACK", "orders:eu", "theirs", String(ids[1]), String(ids[2]))
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 2)
      assert.strictEqual(yield* send("XLEN", "orders:eu"), 1)
    }).pipe(Effect.provide(Live)))

  it.effect("does not affect a data stream that was deleted and rewritten", () =>
    Effect.gen(function*() {
      for (const id of ["50-0", "60-0"]) yield* send("XADD", "orders:eu", id, "n", "1")
      yield* StreamClient.seek("orders:eu", "now")
      yield* send("DEL", "orders:eu")
      yield* send("XADD", "orders:eu", "1-0", "n", "1")
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 0)
      assert.strictEqual((yield* StreamClient.lag("orders:eu")).messages, 1)
      // The trim removes nothing even if the new ids are larger than the checkpoint
      yield* send("XADD", "orders:eu", "70-0", "n", "1")
      yield* send("XDEL", "orders:eu", "1-0")
      assert.strictEqual(yield* StreamClient.trim("orders:eu"), 0)
      assert.strictEqual((yield* Effect.flip(StreamClient.trim("orders:eu", { keep: -1 })))._tag, "InvalidConfig")
    }).pipe(Effect.provide(Live)))
})

it.effect("without free capacity, an inspection counts the undelivered announcements, and nothing is idle for long", () =>
  Effect.gen(function*() {
    yield* StreamClient.announceAll([{ stream: "orders:eu" }, { stream: "orders:us" }])
    yield* Effect.forkChild(StreamClient.run(Effect.never))
    yield* TestClock.adjust("1 minute")
    const { announced, oldest, pending } = yield* StreamClient.inspect
    assert.deepStrictEqual([announced, pending], [2, 1])
    assert.isAtMost(Duration.toMillis(oldest), 1000)
  }).pipe(
    Effect.provide(
      TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders", capacity: 1, gracePeriod: 0 })
    )
  ))

describe("pause", () => {
  const announce = StreamClient.announceAll([{ stream: "orders:eu" }, { stream: "orders:us" }])
  const ownedNames = Effect.map(StreamClient.owned, (all) => all.map(({ stream }) => stream as string).sort())

  it.effect("a paused data stream is yielded, and continues after its last commit when resumed", () =>
    Effect.gen(function*() {
      yield* announce
      const { observed } = yield* consumer()
      yield* add(1, 2)
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(yield* StreamClient.pause("orders:eu"))
      assert.isFalse(yield* StreamClient.pause("orders:eu"))
      yield* TestClock.adjust("2 seconds")
      yield* add(3)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* ownedNames, ["orders:us"])
      assert.deepStrictEqual(observed, [1, 2])
      assert.deepStrictEqual((yield* StreamClient.inspect).paused, { service: false, streams: ["orders:eu"] as never })
      assert.isTrue(yield* StreamClient.resume("orders:eu"))
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* ownedNames, ["orders:eu", "orders:us"])
      assert.deepStrictEqual(observed, [1, 2, 3])
      assert.deepStrictEqual((yield* StreamClient.owned).map(({ failures }) => failures), [0, 0])
    }).pipe(Effect.provide(Live)))

  it.effect("a paused service takes no data streams until it is resumed, even after a restart", () =>
    Effect.gen(function*() {
      yield* StreamClient.pause()
      yield* announce
      const fiber = yield* Effect.forkChild(StreamClient.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* ownedNames, [])
      yield* Fiber.interrupt(fiber)
      yield* Effect.forkChild(StreamClient.run(Effect.never))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(yield* ownedNames, [])
      yield* StreamClient.resume()
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* ownedNames, ["orders:eu", "orders:us"])
    }).pipe(Effect.provide(Live)))
})
