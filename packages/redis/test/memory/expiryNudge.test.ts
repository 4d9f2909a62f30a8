/**
 * Redis publishes a key's expiry only when it notices the expiry. The nudge accesses expired keys, so that Redis
 * notices immediately.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import * as expiryNudge from "../../src/streams/internal/expiryNudge.ts"

const setup = (delay: number) =>
  Effect.gen(function*() {
    const touched: Array<ReadonlyArray<string>> = []
    const send = (command: string, ...keys: ReadonlyArray<string>) =>
      Effect.delay(
        Effect.sync(() => {
          assert.strictEqual(command, "EXISTS")
          touched.push(keys)
          return 0
        }),
        delay
      )
    const scope = yield* Scope.make()
    const nudge = yield* Scope.provide(expiryNudge.make({ send } as unknown as Redis["Service"]), scope)
    return { nudge, scope, touched }
  })

describe("the expiry of yielded leases", () => {
  it.effect("a key is accessed again if it is added during its access", () =>
    Effect.gen(function*() {
      const { nudge, touched } = yield* setup(10)
      nudge("a")
      // The key has not expired yet
      yield* TestClock.adjust("2 millis")
      assert.deepStrictEqual(touched, [])
      yield* TestClock.adjust("3 millis")
      nudge("a")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(touched, [["a"], ["a"]])
      // The key is not accessed a third time
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(touched, 2)
    }))

  it.effect("closing accesses all keys, even those whose access it interrupts", () =>
    Effect.gen(function*() {
      const { nudge, scope, touched } = yield* setup(10)
      nudge("a")
      yield* TestClock.adjust("5 millis")
      nudge("b")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("20 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.deepStrictEqual(touched, [["a", "b"]])
    }))

  it.effect("closing takes at most a second if the server does not reply", () =>
    Effect.gen(function*() {
      const { nudge, scope } = yield* setup(Infinity)
      nudge("a")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.isDefined(closing.pollUnsafe())
    }))
})
