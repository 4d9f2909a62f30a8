/** Tests lease operations whose fiber yields to the scheduler, or is interrupted, between any two steps. */
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber, References } from "effect"
import { TestClock } from "effect/testing"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import * as leaseEnds from "../../src/streams/internal/leaseEnds.ts"
import { LeaseImpl } from "../../src/streams/internal/leaseHandle.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import * as ownerEnds from "../../src/streams/internal/ownerEnds.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { stalling } from "../support/stalling.ts"
import * as fleet from "../support/streamFleet.ts"
import { newTable } from "../support/streamTable.ts"

it.effect("a handler does not miss a revocation if its fiber yields to the scheduler as it begins to wait for `revoked`", () =>
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

it.effect("work does not start after a loss if its fiber yields to the scheduler as `protect` begins", () =>
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

/** One owned data stream, without a client. */
const owning = Effect.gen(function*() {
  const { config, table } = yield* newTable()
  const owned = new OwnedStream(acquisitionAt(table.now()), table.periods)
  table.add(owned)
  return { config, owned, table }
})

/**
 * Starts the effect in a fiber that yields to the scheduler after 40 operations. `before` of them precede the effect.
 */
const setAside = <A, E>(before: number, effect: Effect.Effect<A, E>) =>
  Effect.forkChild(
    Effect.provideService(
      Effect.andThen(Effect.forEach(Array.from({ length: before }), () => Effect.void), effect),
      References.MaxOpsBeforeYield,
      40
    ),
    { startImmediately: true }
  )

it.effect("no renewal reports a lease as lost when it has ended on the backend but not yet locally", () =>
  Effect.gen(function*() {
    const exposed: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { config, owned, table } = yield* owning
      let isGranted = false
      const store = { done: () => Effect.sync(() => ((isGranted = true), "Done")) }
      const ends = leaseEnds.make(table, store as never, config)
      const ending = yield* setAside(before, ends.done(owned))
      for (let i = 0; i < 20; i++) {
        if (isGranted && owned.isOpen() && !owned.isEnding) exposed.push(before)
        yield* Effect.yieldNow
      }
      yield* Fiber.join(ending)
      assert.strictEqual(owned.outcome, "done")
    }
    assert.deepStrictEqual(exposed, [])
  }))

it.effect("a handler does not count as waiting or processing if it is interrupted as it begins to do so", () =>
  Effect.gen(function*() {
    const wrong: Array<string> = []
    for (let before = 0; before < 40; before++) {
      const { owned, table } = yield* owning
      const client = { table, store: { awaitMessages: () => Effect.never } } as unknown as ClientContext
      const lease = new LeaseImpl(client, owned)
      const waiting = yield* setAside(before, lease.messagesAfter("0-0" as never, 1))
      waiting.interruptUnsafe()
      yield* Fiber.await(waiting)
      if (owned.waiting !== 0) wrong.push(`waits after ${before}`)
      const processing = yield* setAside(before, lease.inHand(Effect.never))
      processing.interruptUnsafe()
      yield* Fiber.await(processing)
      if (owned.inHand !== 0) wrong.push(`processes after ${before}`)
    }
    assert.deepStrictEqual(wrong, [])
  }))

it.effect("an interrupted call to `done` has either marked the data stream and stopped the handler, or done neither", () =>
  Effect.gen(function*() {
    const left: Array<number> = []
    for (let before = 0; before < 40; before++) {
      const { config, owned, table } = yield* owning
      const client = { config, table, ends: { done: () => Effect.void } } as unknown as ClientContext
      owned.hasHandler = true
      const marking = yield* setAside(before, ownerEnds.done(client, owned))
      marking.interruptUnsafe()
      yield* Fiber.await(marking)
      if (owned.isMarkedDone !== owned.isStopped) left.push(before)
    }
    assert.deepStrictEqual(left, [])
  }))
