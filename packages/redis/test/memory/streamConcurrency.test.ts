/** Handlers of several messages at once, in a client. */
import { StreamClient, StreamMessages } from "@effect-simba/core/streams"
import { RedisStreams } from "@effect-simba/redis/streams"
import { TestStreams } from "@effect-simba/testkit/streams"
import { assert, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const Step = Schema.Struct({ n: Schema.FiniteFromString })

const add = (...numbers: ReadonlyArray<number>) =>
  Redis.use((redis) => Effect.forEach(numbers, (n) => redis.send("XADD", "orders:eu", "*", "n", String(n))))

it.effect("a message that hangs is no progress, although the reader waits for others", () =>
  Effect.gen(function*() {
    const tokens: Array<number> = []
    yield* StreamClient.announce("orders:eu")
    yield* add(1)
    yield* Effect.forkChild(StreamClient.run(({ token }) =>
      Effect.andThen(
        Effect.sync(() => tokens.push(token)),
        StreamMessages.process(Step, () => tokens.length === 1 ? Effect.never : Effect.void, { concurrency: 4 })
      )
    ))
    yield* TestClock.adjust("4 seconds")
    assert.lengthOf(tokens, 1)
    yield* TestClock.adjust("10 seconds")
    assert.lengthOf(tokens, 2)
    // Waiting alone is no lack of progress
    yield* TestClock.adjust("1 minute")
    assert.lengthOf(tokens, 2)
    assert.strictEqual((yield* StreamClient.owned)[0]!.failures, 1)
  }).pipe(
    Effect.provide(
      TestStreams.layerFakeRedis(RedisStreams.layerStore, {
        service: "orders",
        gracePeriod: 0,
        progressTimeout: "5 seconds"
      })
    )
  ))
