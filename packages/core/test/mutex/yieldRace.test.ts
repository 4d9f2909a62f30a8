import { Mutex } from "@effect-simba/core"
import { assert, it } from "@effect/vitest"
import { Clock, Effect, References } from "effect"
import { TestLive } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"

it.effect("a fiber that is set aside while it begins to wait for a loss hears of it", () =>
  Effect.gen(function*() {
    const missed: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { clock, stall } = yield* stalling
      yield* Effect.gen(function*() {
        const lease = yield* Mutex.acquire(`m${before}`)
        const waiting = yield* Effect.forkChild(
          Effect.provideService(
            Effect.andThen(Effect.forEach(Array.from({ length: before }), () => Effect.void), lease.lost),
            References.MaxOpsBeforeYield,
            40
          ),
          { startImmediately: true }
        )
        stall.millis = 20_000
        assert.isFalse(yield* lease.isHeld)
        for (let i = 0; i < 50; i++) yield* Effect.yieldNow
        if (waiting.pollUnsafe() === undefined) missed.push(before)
      }).pipe(Effect.provide(TestLive), Effect.provideService(Clock.Clock, clock))
    }
    assert.deepStrictEqual(missed, [])
  }))
