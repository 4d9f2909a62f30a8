/** Scripts on a `Redis` service without a command sink. The first use loads a script; concurrent uses wait for it. */
import { assert, it } from "@effect/vitest"
import { Effect, Fiber, References } from "effect"
import type { Redis } from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import { call, script } from "../../src/internal/client/script.ts"

it.effect("if the fiber loading a script is interrupted, the next fiber loads it", () =>
  Effect.gen(function*() {
    const stuck: Array<number> = []
    for (let ops = 3; ops < 40; ops++) {
      const redis = { send: () => Effect.as(Effect.yieldNow, "reply") } as Partial<Redis["Service"]> as Redis["Service"]
      const run = call(redis, "test", script("return 1", Schema.String, () => [[], []]))
      const first = yield* Effect.forkChild(
        Effect.provideService(run(undefined), References.MaxOpsBeforeYield, ops),
        { startImmediately: true }
      )
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(run(undefined), { startImmediately: true })
      for (let i = 0; i < 50; i++) yield* Effect.yieldNow
      if (second.pollUnsafe() === undefined) stuck.push(ops)
      yield* Fiber.interrupt(second)
    }
    assert.deepStrictEqual(stuck, [])
  }))
