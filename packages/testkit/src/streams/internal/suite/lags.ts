/**
 * Contract for stream stores: how far a data stream lags behind, and what trimming removes. Registered by
 * `StreamStoreSuite`.
 */
import { assert } from "@effect/vitest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type Cases, only } from "./bench.ts"

export const lagging = ({ append, bench, it, trim }: Cases): void => {
  if (append === undefined) return

  it.effect("the lag is the number of messages after the checkpoint and the age of the first", () =>
    Effect.gen(function*() {
      const { party, pass, service, stream } = yield* bench("lag")
      const ownership = yield* party().own("one")
      const none = { messages: 0, isCounted: true, age: Duration.zero, first: undefined }
      assert.deepStrictEqual(yield* service.lag(ownership.stream), none)
      assert.deepStrictEqual(yield* service.lag(stream("missing")), none)
      const ids = yield* Effect.forEach([1, 2, 3, 4], (n) => append(ownership.stream, [["n", String(n)]]))
      const lag = Effect.map(
        service.lag(ownership.stream),
        ({ first, isCounted, messages }) => [messages, isCounted, first] as const
      )
      assert.deepStrictEqual(yield* lag, [4, true, ids[0]!])
      yield* service.commit(ownership, ids[0]!, false, 1)
      assert.deepStrictEqual(yield* lag, [3, true, ids[1]!])
      // Without an offset, the store counts the messages one by one
      yield* service.commit(ownership, ids[1]!)
      assert.deepStrictEqual(yield* lag, [2, true, ids[2]!])
      yield* pass(Duration.millis(100))
      const { age } = yield* service.lag(ownership.stream)
      assert.isAtLeast(Duration.toMillis(age), 100)
      yield* service.commit(ownership, ids[3]!, false, 4)
      assert.deepStrictEqual(yield* service.lag(ownership.stream), none)
    }))

  it.effect("many lags are read concurrently without counting deleted messages", () =>
    Effect.gen(function*() {
      const { party, service, stream } = yield* bench("lags")
      const ownership = yield* party().own("one")
      const ids = yield* Effect.forEach([1, 2, 3], (n) => append(ownership.stream, [["n", String(n)]]))
      yield* append(stream("two"), [["n", "1"]])
      if (trim !== undefined) yield* trim(ownership.stream, ids[2]!)
      const lags = yield* Effect.forEach([ownership.stream, stream("two"), stream("three")], service.lag, {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(lags.map(({ messages }) => messages), [trim === undefined ? 3 : 1, 1, 0])
    }))

  it.effect("trimming removes only committed messages that are old enough", () =>
    Effect.gen(function*() {
      const { party, pass, service } = yield* bench("trim")
      const ownership = yield* party().own("one")
      const ids = yield* Effect.forEach([1, 2, 3], (n) => append(ownership.stream, [["n", String(n)]]))
      assert.strictEqual(yield* service.trim(ownership.stream, Duration.zero), 0)
      yield* service.commit(ownership, ids[1]!, false, 2)
      yield* pass(Duration.millis(100))
      assert.strictEqual(yield* service.trim(ownership.stream, Duration.hours(1)), 0)
      assert.strictEqual(yield* service.trim(ownership.stream, Duration.millis(50)), 2)
      assert.strictEqual(yield* service.trim(ownership.stream, Duration.zero), 0)
      assert.deepStrictEqual((yield* service.lag(ownership.stream)).messages, 1)
      assert.strictEqual(only(yield* service.messages(ownership.stream, "0-0" as never, 10)).id, ids[2])
      yield* service.commit(ownership, ids[2]!, false, 3)
      assert.strictEqual(yield* service.trim(ownership.stream, Duration.zero), 1)
      const fourth = yield* append(ownership.stream, [["n", "4"]])
      assert.strictEqual(only(yield* service.messages(ownership.stream, ids[2]!, 10)).id, fourth)
    }))
}
