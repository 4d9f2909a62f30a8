import { assert, it } from "@effect/vitest"
import { Effect, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import * as fleet from "../support/streamFleet.ts"

it.effect("a handler that is set aside while it begins to wait hears that it is asked to stop", () =>
  fleet.test(Effect.gen(function*() {
    const missed: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { a } = yield* fleet.ofOne
      let lease: fleet.Lease | undefined
      const running = yield* a.serve(1, (given) => Effect.suspend(() => ((lease = given), Effect.never)))
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
