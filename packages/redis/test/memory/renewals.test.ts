import { MutexName } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Fiber } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { overRedis } from "../../src/internal/client/commandSink.ts"
import * as renewals from "../../src/internal/mutex/renewalBatch.ts"
import { freshId } from "../support/harness.ts"

describe("renewals over any provider of Redis", () => {
  it.effect("do not outlive whoever asked for them: what waits to be sent is taken back", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const send = (command: string) =>
        Effect.onInterrupt(
          Effect.andThen(Effect.sync(() => log.push(`${command} begins`)), Effect.never),
          () => Effect.sync(() => log.push(`${command} ends`))
        )
      const direct = yield* overRedis({ send } as unknown as Redis["Service"], { coalescing: false })
      const renew = renewals.make(direct, "sha")
      const request = { mutex: MutexName.MutexName.make("m"), id: freshId(), lease: Duration.seconds(16) }
      const renewing = yield* Effect.forkChild(renew([request]), { startImmediately: true })
      assert.deepStrictEqual(log, ["EVALSHA begins"])
      yield* Fiber.interrupt(renewing)
      assert.deepStrictEqual(log, ["EVALSHA begins", "EVALSHA ends"])
    }))
})
