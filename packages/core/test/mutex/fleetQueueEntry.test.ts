/** How long a waiter sleeps, and what it leaves behind. */
import * as Mutex from "@effect-simba/core/Mutex"
import { type ContenderId, MutexName } from "@effect-simba/core/MutexName"
import { MutexStore, type WakeUp } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { AttemptContext } from "../../src/internal/mutex/attempt.ts"
import { FleetQueueEntry, type QueueContext } from "../../src/internal/mutex/fleetQueueEntry.ts"
import type { LocalWaiter } from "../../src/internal/mutex/localWaiter.ts"
import { Backend, GrantingLive, refusal } from "../support/grantingStore.ts"
import { start } from "../support/setup.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

/** The owner's key lasts for ten minutes more. */
const waiting = Effect.gen(function*() {
  const { answer } = yield* Backend
  const fiber = yield* start(Mutex.acquire("m"))
  yield* settle
  yield* answer(Exit.succeed(refusal(undefined)))
  yield* settle
  return fiber
})

const waits = Effect.map(Backend, ({ calls }) => calls.filter((call) => call === "wait").length)

const lookIn = (delay: Duration.Input): WakeUp => ({ _tag: "LookIn", delay: Duration.fromInputUnsafe(delay) })

describe("a waiter that sleeps", () => {
  it.effect("looks again when the owner's key has expired, also after a hint to look later", () =>
    Effect.gen(function*() {
      const { tell } = yield* Backend
      yield* waiting
      tell(lookIn("1 hour"))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("looks one millisecond after what a hint says, and once only", () =>
    Effect.gen(function*() {
      const { tell } = yield* Backend
      yield* waiting
      tell(lookIn("100 millis"))
      tell(lookIn("200 millis"))
      yield* TestClock.adjust(100)
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("asks once more for all that it heard while a request was under way", () =>
    Effect.gen(function*() {
      const { answer, tell } = yield* Backend
      yield* start(Mutex.acquire("m"))
      yield* settle
      tell({ _tag: "Gap" })
      tell({ _tag: "YourTurn", from: "them" })
      tell({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(yield* waits, 1)
      for (let i = 0; i < 2; i++) {
        yield* answer(Exit.succeed(refusal(undefined)))
        yield* settle
        assert.strictEqual(yield* waits, 2)
      }
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("listens no longer than it waits", () =>
    Effect.gen(function*() {
      const { listeners } = yield* Backend
      const fiber = yield* waiting
      assert.strictEqual(listeners.size, 1)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(listeners.size, 0)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("leaves no timer behind, however it is woken", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore
      const { answer, tell } = yield* Backend
      let open = 0
      const timers = {
        at: () => {
          let isOpen = true
          open++
          return () => {
            if (isOpen) open--
            isOpen = false
          }
        },
        isClosed: () => false
      }
      const services = yield* Effect.context<never>()
      const nothing = () => undefined
      const queue = {
        mutex: MutexName.make("m"),
        context: {
          store,
          confirmTimeout: Duration.seconds(1),
          now: () => ({ monotonic: 0, wall: 0 }),
          recorder: { update: nothing, modify: nothing, count: nothing, run: nothing },
          timers,
          tasks: { pass: Effect.void } as AttemptContext["tasks"],
          fork: Effect.runForkWith(services),
          random: () => 0
        },
        first: () =>
          ({ attempt: { mutex: "m", terms: { lease: Duration.seconds(10), leaseMillis: 10_000 } } }) as LocalWaiter,
        ...{
          asked: nothing,
          confirmed: nothing,
          crashed: nothing,
          failed: nothing,
          lost: nothing,
          outage: nothing,
          reached: nothing
        },
        ...{ refused: nothing, released: nothing, won: nothing }
      } satisfies QueueContext
      const entry = new FleetQueueEntry(queue, "1-aaaaaaaaaaaa:us" as ContenderId, "contending")
      const refuse = Effect.andThen(answer(Exit.succeed(refusal(undefined))), settle)
      entry.start()
      assert.strictEqual(open, 1, "the limit of the request")
      yield* refuse
      assert.strictEqual(open, 1, "the sleep")
      tell(lookIn("1 second"))
      assert.strictEqual(open, 1)
      tell({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(open, 1)
      yield* refuse
      entry.end()
      assert.strictEqual(open, 0)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))
})
