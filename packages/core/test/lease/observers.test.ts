import { Mutex } from "@effect-simba/core"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Listeners } from "../../src/internal/lease/observers.ts"
import type { ClientContext } from "../../src/streams/internal/context.ts"
import { LeaseImpl } from "../../src/streams/internal/leaseHandle.ts"
import { OwnedStream } from "../../src/streams/internal/ownedStream.ts"
import { acquisitionAt } from "../support/acquisition.ts"
import { Faults } from "../support/faultyStore.ts"
import { start, TestLive } from "../support/setup.ts"
import { newTable } from "../support/streamTable.ts"
import { uncaught } from "../support/uncaught.ts"

const fail = () => {
  throw new Error("observer")
}

/** Runs the effect in a fiber with an observer that throws. */
const observed = Effect.fnUntraced(function*<A, E>(effect: Effect.Effect<A, E>) {
  Effect.runCallbackWith(yield* Effect.context<never>())(effect, { onExit: fail })
})

const observedItself = Effect.withFiber<never>((fiber) => {
  fiber.addObserver(fail)
  return Effect.never
})

describe("an observer that throws", () => {
  it.effect("does not prevent calls to other observers or the loss of other leases", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const thrown = yield* uncaught
      const scope = yield* Effect.scope
      const leases = yield* Effect.forEach(["a", "b"], (name) => Scope.provide(Mutex.acquire(name), scope))
      yield* observed(leases[0]!.lost)
      yield* observed(leases[0]!.protect(Effect.never))
      yield* start(leases[0]!.protect(observedItself))
      const notified = yield* Effect.forEach(leases, (lease) =>
        Effect.all([
          start(Effect.flip(lease.protect(Effect.never))),
          start(lease.lost)
        ]))
      faults.guard = "fail"
      yield* TestClock.adjust("15200 millis")
      for (const fibers of notified) {
        for (const fiber of fibers) {
          const exit = fiber.pollUnsafe()
          assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && exit.value.reason._tag === "BackendGone")
        }
      }
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(thrown.map(String), ["Error: observer", "Error: observer", "Error: observer"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("does not hide the loss of a data stream from other observers", () =>
    Effect.gen(function*() {
      const thrown = yield* uncaught
      const { table } = yield* newTable()
      const owned = new OwnedStream(acquisitionAt(table.now()), table.periods)
      table.add(owned)
      const lease = new LeaseImpl({ table } as ClientContext, owned)
      yield* observed(lease.lost)
      yield* observed(lease.protect(Effect.never))
      const notified = [yield* start(lease.lost), yield* start(Effect.flip(lease.protect(Effect.never)))]
      table.lose(owned, "Vanished")
      for (const fiber of notified) {
        const exit = fiber.pollUnsafe()
        assert.isTrue(exit !== undefined && Exit.isSuccess(exit) && exit.value.reason._tag === "Vanished")
      }
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(thrown.map(String), ["Error: observer", "Error: observer"])
    }).pipe(Effect.scoped))

  it.effect("does not prevent a release", () =>
    Effect.gen(function*() {
      const thrown = yield* uncaught
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      const ended = yield* Deferred.make<void>()
      yield* observed(lease.protect(Effect.never))
      yield* observed(lease.protect(Effect.onInterrupt(Effect.never, () => Deferred.await(ended))))
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* TestClock.adjust(1)
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(ended, undefined)
      yield* Fiber.join(closing)
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(thrown.map(String), ["Error: observer", "Error: observer"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

it("a listener is called for only one event, and never after it was removed", () => {
  const listeners = new Listeners<number>()
  const heard: Array<string> = []
  listeners.add((value) => heard.push(`a ${value}`))
  const remove = listeners.add((value) => heard.push(`b ${value}`))
  remove()
  listeners.notify(1)
  listeners.notify(2)
  assert.deepStrictEqual(heard, ["a 1"])
})

it.effect("if a fiber's observer throws on an event, other listeners still receive that event", () =>
  Effect.gen(function*() {
    const thrown = yield* uncaught
    const listeners = new Listeners<number>()
    yield* observed(listeners.next(() => undefined))
    const other = yield* start(listeners.next(() => undefined))
    listeners.notify(1)
    assert.strictEqual(yield* Fiber.join(other), 1)
    yield* TestClock.adjust(1)
    assert.deepStrictEqual(thrown.map(String), ["Error: observer"])
  }).pipe(Effect.scoped))
