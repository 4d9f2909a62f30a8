/** What operators do to data streams while a fleet processes them. */
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const Step = Schema.Struct({ n: Schema.FiniteFromString })

const send = (...command: readonly [string, ...ReadonlyArray<string>]) => Redis.use((redis) => redis.send(...command))

const add = (...numbers: ReadonlyArray<number>) =>
  Effect.forEach(numbers, (n) => send("XADD", "orders:eu", "*", "n", String(n)))

const Live = TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders", gracePeriod: 0 })

/** Processes orders, and keeps what was processed, with the token. */
const consumer = Effect.fnUntraced(function*(work: (n: number) => Effect.Effect<void> = () => Effect.void) {
  const seen: Array<number> = []
  const ended: Array<number> = []
  yield* StreamClient.run(({ token }) =>
    StreamMessages.process(Step, ({ value }) =>
      Effect.sync(() => seen.push(value.n)).pipe(
        Effect.andThen(work(value.n)),
        Effect.onInterrupt(() => Effect.sync(() => ended.push(token)))
      ))
  ).pipe(Effect.forkChild)
  yield* TestClock.adjust("5 seconds")
  return { seen, ended }
})

describe("seek", () => {
  it.effect("is refused while a handler runs, and forced takes the data stream from it: nothing commits over it", () =>
    Effect.gen(function*() {
      yield* StreamClient.announce("orders:eu")
      yield* add(1, 2, 3)
      const { ended, seen } = yield* consumer((n) => n === 3 ? Effect.sleep("10 minutes") : Effect.void)
      assert.deepStrictEqual(seen, [1, 2, 3])
      const [before] = yield* StreamClient.owned
      assert.strictEqual((yield* Effect.flip(StreamClient.seek("orders:eu", "beginning")))._tag, "AlreadyOwned")
      assert.strictEqual(yield* StreamClient.seek("orders:eu", "beginning", { force: true }), "0-0")
      assert.strictEqual((yield* Effect.flip(before!.commit("9-0" as never)))._tag, "LeaseLost")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(seen, [1, 2, 3, 1, 2, 3])
      assert.deepStrictEqual(ended, [before!.token])
      const [after] = yield* StreamClient.owned
      assert.isAbove(after!.token, before!.token)
    }).pipe(Effect.provide(Live)))

  it.effect("of a finished data stream counts from its next announcement on: since a time, an id, or now", () =>
    Effect.gen(function*() {
      const ids: Array<string> = []
      for (const n of [1, 2, 3]) {
        ids.push(...(yield* add(n)).map(String))
        yield* TestClock.adjust("1 minute")
      }
      const { seen } = yield* consumer()
      const cases = [
        [DateTime.makeUnsafe(Number(ids[1]!.split("-")[0])), [2, 3]],
        [ids[2]!, [3]],
        ["beginning", [1, 2, 3]],
        ["now", []]
      ] as const
      for (const [to, expected] of cases) {
        seen.length = 0
        yield* StreamClient.seek("orders:eu", to)
        yield* StreamClient.announce("orders:eu")
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(seen, [...expected])
        yield* (yield* StreamClient.owned)[0]!.done
        yield* TestClock.adjust("10 seconds")
      }
    }).pipe(Effect.provide(Live)))

  it.effect("refuses what is no position and no name", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(StreamClient.seek("orders:eu", "yesterday")))._tag, "InvalidConfig")
      assert.strictEqual((yield* Effect.flip(StreamClient.seek("", "now")))._tag, "InvalidName")
    }).pipe(Effect.provide(Live)))
})
