import { assert, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Latch, Logger } from "effect"
import { TestClock } from "effect/testing"
import { sleepUntil, supervise } from "../../src/internal/lease/backgroundLoop.ts"

it.effect("a loop that crashes or interrupts itself is logged and restarted, and can still be interrupted", () =>
  Effect.gen(function*() {
    const notified: Array<unknown> = []
    let begun = 0
    const loop = Effect.suspend(() => [Effect.die("mistake"), Effect.interrupt, Effect.never][begun++]!)
    const logger = Logger.make(({ message }) => {
      notified.push(message)
    })
    const fiber = yield* Effect.forkChild(supervise("The loop", loop).pipe(Effect.provide(Logger.layer([logger]))))
    yield* TestClock.adjust("1 second")
    assert.strictEqual(begun, 3)
    assert.strictEqual(notified.length, 2)
    yield* Fiber.interrupt(fiber)
  }))

it.effect("a loop sleeps until it is time, or until the latch opens", () =>
  Effect.gen(function*() {
    for (const [opens, at] of [[400, 400], [undefined, 1000]] as const) {
      const began = yield* Clock.currentTimeMillis
      const changed = Latch.makeUnsafe(false)
      const sleeping = yield* Effect.forkChild(
        Effect.andThen(sleepUntil(began + 1000, changed), Clock.currentTimeMillis),
        { startImmediately: true }
      )
      yield* TestClock.adjust(400)
      if (opens !== undefined) changed.openUnsafe()
      yield* TestClock.adjust(600)
      assert.strictEqual((yield* Fiber.join(sleeping)) - began, at)
    }
  }))

it.effect("a loop does not sleep if it is already time", () =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const stuck: Clock.Clock = Object.assign(Object.create(clock), { sleep: () => Effect.never })
    for (const at of [-1, 0]) {
      const sleeping = Effect.provideService(sleepUntil(at, Latch.makeUnsafe(false)), Clock.Clock, stuck)
      const fiber = yield* Effect.forkChild(sleeping, { startImmediately: true })
      assert.deepStrictEqual(fiber.pollUnsafe(), Exit.void, String(at))
    }
  }))

it.effect("a loop whose sleep crashes does not wake up as if it were time", () =>
  Effect.gen(function*() {
    const clock = yield* Clock.Clock
    const broken: Clock.Clock = Object.assign(Object.create(clock), { sleep: () => Effect.die("mistake") })
    const sleeping = sleepUntil(1000, Latch.makeUnsafe(false))
    const exit = yield* Effect.exit(Effect.provideService(sleeping, Clock.Clock, broken))
    assert.deepStrictEqual(exit, Exit.die("mistake"))
  }))
