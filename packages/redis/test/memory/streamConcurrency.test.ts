/** Handlers that process messages concurrently. */
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, it } from "@effect/vitest"
import { Effect, Schedule, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const Step = Schema.Struct({ n: Schema.FiniteFromString })

const add = (...numbers: ReadonlyArray<number>) =>
  Redis.use((redis) => Effect.forEach(numbers, (n) => redis.send("XADD", "orders:eu", "*", "n", String(n))))

it.effect("a handler that hangs on one message makes no progress, even while its reader waits for more", () =>
  Effect.gen(function*() {
    const failures: Array<number> = []
    yield* StreamClient.announce("orders:eu")
    yield* add(1)
    yield* Effect.forkChild(StreamClient.run((lease) =>
      Effect.andThen(
        Effect.sync(() => failures.push(lease.failures)),
        StreamMessages.process(Step, () => failures.length === 1 ? Effect.never : Effect.void, { concurrency: 4 })
      )
    ))
    yield* TestClock.adjust("4 seconds")
    assert.deepStrictEqual(failures, [0])
    yield* TestClock.adjust("10 seconds")
    assert.deepStrictEqual(failures, [0, 1])
    // The handler waits for messages longer than `progressTimeout` and keeps its lease
    yield* TestClock.adjust("1 minute")
    assert.lengthOf(failures, 2)
    assert.strictEqual((yield* StreamClient.owned)[0]!.failures, 0)
  }).pipe(
    Effect.provide(
      TestStreams.layerFakeRedis(RedisStreams.layerStore, {
        service: "orders",
        gracePeriod: 0,
        progressTimeout: "5 seconds"
      })
    )
  ))

it.effect("a data stream is dead-lettered if one message keeps failing, even if later messages succeed", () =>
  Effect.gen(function*() {
    yield* StreamClient.announce("orders:eu")
    yield* add(1, 2, 3)
    yield* Effect.forkChild(StreamClient.run(
      StreamMessages.process(
        Step,
        ({ value }) => value.n === 1 ? Effect.andThen(Effect.sleep("100 millis"), Effect.fail("poison")) : Effect.void,
        { concurrency: 4, attempts: Infinity }
      ),
      { retry: Schedule.spaced("1 second"), onError: () => Effect.void }
    ))
    yield* TestClock.adjust("10 seconds")
    assert.lengthOf(yield* StreamClient.deadLetters(), 1)
  }).pipe(
    Effect.provide(
      TestStreams.layerFakeRedis(RedisStreams.layerStore, { service: "orders", maxFailures: 3, deadLetterAfter: 0 })
    )
  ))
