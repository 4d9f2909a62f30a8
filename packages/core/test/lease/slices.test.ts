/** Thousands of waiters or leases that come to the same instant leave the event loop its turns. */
import { Mutex, MutexStore } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Hands, HandsLive, settle } from "../support/hands.ts"
import { another, start } from "../support/setup.ts"

const count = 1000
const names = Array.from({ length: count }, (_, index) => `m${index}`)

/** How often something was noted in one turn of the event loop at most, and in all. */
const perTurn = Effect.gen(function*() {
  const turns: Array<number> = [0]
  let next = setImmediate(function count() {
    turns.push(0)
    next = setImmediate(count)
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => clearImmediate(next)))
  return {
    note: () => void turns[turns.length - 1]!++,
    take: () => {
      const taken = turns.splice(0, turns.length, 0)
      return { most: Math.max(...taken), all: taken.reduce((a, b) => a + b, 0) }
    }
  }
})

/** Lets every fiber run that can, for as many turns as all of them need. */
const turns = Effect.repeat(settle, { times: 20 })

const setup = Effect.gen(function*() {
  const asked = yield* perTurn
  const store = yield* MutexStore.MutexStore
  const counted = MutexStore.MutexStore.of({
    ...store,
    acquire: (request) => Effect.andThen(Effect.sync(asked.note), store.acquire(request))
  })
  const them = yield* another("them")
  const us = yield* Layer.build(
    Layer.fresh(Mutex.layer({ contender: "us" })).pipe(Layer.provide(Layer.succeed(MutexStore.MutexStore, counted)))
  )
  return { asked, them, us }
})

describe("a thousand at once", () => {
  it.effect("waiters look again in slices, after a gap and when a lease ends", () =>
    Effect.gen(function*() {
      const { asked, them, us } = yield* setup
      const holders = yield* Scope.make()
      yield* Effect.forEach(names, (name) => Scope.provide(Mutex.acquire(name, { maxHold: "20 seconds" }), holders))
        .pipe(
          Effect.provide(them)
        )
      const { lines } = yield* Hands
      yield* Effect.forEach(names, (name) => Effect.provide(start(Mutex.withLock(name)(Effect.never)), us))
      yield* TestClock.adjust("1 second")
      yield* turns
      assert.strictEqual(lines.length, count)
      asked.take()
      for (const line of lines) line.forge({ _tag: "Gap" })
      yield* turns
      const gap = asked.take()
      assert.strictEqual(gap.all, count)
      assert.isAtMost(gap.most, 64)
      for (const line of lines) line.muted = true
      yield* TestClock.adjust("30 seconds")
      yield* turns
      const ends = asked.take()
      assert.isAtLeast(ends.all, count)
      assert.isAtMost(ends.most, 64)
      yield* Scope.close(holders, Exit.void)
    }).pipe(Effect.scoped, Effect.provide(HandsLive)))

  it.effect("leases end in slices", () =>
    Effect.gen(function*() {
      const ended = yield* perTurn
      const mutex = yield* Mutex.Mutex
      const hands = yield* Hands
      for (const name of names) {
        const lease = yield* mutex.acquire(name)
        yield* start(Effect.andThen(lease.lost, Effect.sync(ended.note)))
        hands.stuck.add(name)
      }
      ended.take()
      yield* TestClock.adjust("15200 millis")
      yield* turns
      const { all, most } = ended.take()
      assert.strictEqual(all, count)
      assert.isAtMost(most, 64)
    }).pipe(Effect.scoped, Effect.provide(HandsLive)))
})
