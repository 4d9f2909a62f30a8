import { assert, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { storeTimeout } from "../../src/internal/lease/replyTimeout.ts"

const limit = Duration.seconds(1)

it.effect("a reply in the same turn as the timeout counts, even though the timer runs first", () =>
  Effect.gen(function*() {
    const reply = Effect.delay(Effect.as(Effect.yieldNow, "reply"), limit)
    const fiber = yield* Effect.forkChild(storeTimeout(reply, "renew", limit), { startImmediately: true })
    yield* TestClock.adjust(limit)
    assert.strictEqual(yield* Fiber.join(fiber), "reply")
  }))

it.effect("a request without a reply fails with an error that names the operation and the limit", () =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(Effect.flip(storeTimeout(Effect.never, "renew", limit)))
    yield* TestClock.adjust("999 millis")
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    const error = yield* Fiber.join(fiber)
    assert.deepInclude(error, { _tag: "BackendError", operation: "renew", isRetryable: true })
    assert.include(error.message, "1s")
  }))
