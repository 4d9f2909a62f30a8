import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { supervise } from "../../src/internal/lease/backgroundLoop.ts"

it.effect("a loop that crashes is logged and restarted, and can still be interrupted", () =>
  Effect.gen(function*() {
    const notified: Array<unknown> = []
    let begun = 0
    const loop = Effect.suspend(() => ++begun < 3 ? Effect.die("mistake") : Effect.never)
    const logger = Logger.make(({ message }) => {
      notified.push(message)
    })
    const fiber = yield* Effect.forkChild(supervise("The loop", loop).pipe(Effect.provide(Logger.layer([logger]))))
    yield* TestClock.adjust("1 second")
    assert.strictEqual(begun, 3)
    assert.strictEqual(notified.length, 2)
    yield* Fiber.interrupt(fiber)
  }))
