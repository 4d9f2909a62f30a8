/** When the library reports an acquire that waits for its own process. */
import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import * as FaultyStore from "../support/faultyStore.ts"
import { start } from "../support/setup.ts"

const logging = () => {
  const lines: Array<string> = []
  const logger = Logger.make<unknown, void>(({ logLevel, message }) => {
    if (logLevel === "Warn") lines.push(String(message))
  })
  const live = Mutex.layer().pipe(Layer.provideMerge(FaultyStore.layer), Layer.provideMerge(Logger.layer([logger])))
  return { lines, live }
}

describe("an acquire that waits for its own process", () => {
  it.effect("is reported once for all waiters, with the time since the grant", () => {
    const { lines, live } = logging()
    return Effect.gen(function*() {
      yield* TestClock.adjust("1 second")
      yield* Mutex.acquire("m")
      yield* TestClock.adjust("10 minutes")
      for (let i = 0; i < 3; i++) yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("1 minute")
      assert.lengthOf(lines, 1)
      assert.include(lines[0], "for 10m 5s")
    }).pipe(Effect.scoped, Effect.provide(live))
  })

  it.effect("is not reported if it gives up early, but a later acquire is", () => {
    const { lines, live } = logging()
    return Effect.gen(function*() {
      yield* Mutex.acquire("m")
      yield* Fiber.interrupt(yield* start(Mutex.acquire("m")))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(lines, [])
      yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped, Effect.provide(live))
  })

  it.effect("is timed from the current holder's grant, not from an earlier holder's", () => {
    const { lines, live } = logging()
    return Effect.gen(function*() {
      yield* start(Mutex.withLock("m")(Effect.sleep("4 seconds")))
      yield* start(Mutex.acquire("m"))
      yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("9999 millis")
      assert.deepStrictEqual(lines, [])
      yield* TestClock.adjust(1)
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped, Effect.provide(live))
  })
})
