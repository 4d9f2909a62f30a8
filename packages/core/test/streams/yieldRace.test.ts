import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import { stalling } from "../support/stalling.ts"
import * as fleet from "../support/streamFleet.ts"

it.effect("a handler that is set aside while it begins to wait is notified that it must stop", () =>
  fleet.test(Effect.gen(function*() {
    const missed: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { a } = yield* fleet.ofOne
      let lease: fleet.Lease | undefined
      const running = yield* a.serve(1, (granted) => Effect.suspend(() => ((lease = granted), Effect.never)))
      yield* TestClock.adjust("1 second")
      const waiting = yield* Effect.forkChild(
        Effect.provideService(
          Effect.andThen(Effect.forEach(Array.from({ length: before }), () => Effect.void), lease!.revoked),
          References.MaxOpsBeforeYield,
          40
        ),
        { startImmediately: true }
      )
      const closing = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
      yield* TestClock.adjust("10 millis")
      assert.isTrue(yield* lease!.isRevoked)
      if (waiting.pollUnsafe() === undefined) missed.push(before)
      yield* Fiber.interrupt(closing)
      yield* a.kill
    }
    assert.deepStrictEqual(missed, [])
  })))

it.effect("work that is set aside while its protection begins does not begin after the loss", () =>
  Effect.gen(function*() {
    const { clock, stall } = yield* stalling
    const late: Array<number> = []
    for (let before = 0; before < 40; before++) {
      stall.millis = 0
      yield* fleet.test(Effect.gen(function*() {
        const { a } = yield* fleet.ofOne
        let lease: fleet.Lease | undefined
        yield* a.serve(1, (granted) => Effect.suspend(() => ((lease = granted), Effect.never)))
        yield* TestClock.adjust("1 second")
        let isLost = false
        yield* Effect.forkChild(
          Effect.provideService(
            Effect.andThen(
              Effect.forEach(Array.from({ length: before }), () => Effect.void),
              lease!.protect(Effect.sync(() => void (isLost && late.push(before))))
            ),
            References.MaxOpsBeforeYield,
            40
          ),
          { startImmediately: true }
        )
        stall.millis = 20_000
        isLost = !(yield* lease!.isHeld)
        assert.isTrue(isLost)
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        yield* a.kill
      })).pipe(Effect.provideService(Clock.Clock, clock))
    }
    assert.deepStrictEqual(late, [])
  }))
