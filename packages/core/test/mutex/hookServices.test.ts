/** Hooks may use services from the caller, or from the layer that defines the hook. */
import { Contender, Mutex, type SimbaError } from "@effect-simba/core"
import type * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { start, TestLive } from "../support/setup.ts"

class Pager extends Context.Service<Pager, { readonly calls: Array<string> }>()("test/Pager") {}

const call = (who: string) => Pager.use(({ calls }) => Effect.sync(() => void calls.push(who)))

const isAlive = Effect.as(call("isAlive"), true)

const pager = () => {
  const calls: Array<string> = []
  return { calls, layer: Layer.succeed(Pager, { calls }) }
}

describe("isAlive", () => {
  const Watched = Mutex.named("m", { isAlive })

  const holding: ReadonlyArray<
    readonly [string, Effect.Effect<unknown, unknown, Mutex.Mutex | Pager | Scope.Scope>]
  > = [
    ["acquire", Mutex.acquire("m", { isAlive })],
    ["acquireIfAvailable", Mutex.acquireIfAvailable("m", { isAlive })],
    ["acquireAll", Mutex.acquireAll(["m", "n"], { isAlive })],
    ["withLock", Effect.never.pipe(Mutex.withLock("m", { isAlive }))],
    ["withLockIfAvailable", Effect.never.pipe(Mutex.withLockIfAvailable("m", { isAlive }))],
    ["contend", Mutex.contend("m", { isAlive })],
    ["a named mutex", Watched.acquire]
  ]

  it.effect.each(holding)("has its caller's services: %s", ([, hold]) => {
    const { calls, layer } = pager()
    return Effect.gen(function*() {
      // The caller has the services, but the fiber that renews the lease does not
      yield* start(Effect.provide(Effect.andThen(hold, Effect.never), layer))
      yield* TestClock.adjust("11 seconds")
      assert.include(calls, "isAlive")
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Held")
    }).pipe(Effect.scoped, Effect.provide(TestLive))
  })

  it.effect("has the services from a contender's layer", () => {
    const { calls, layer } = pager()
    class Jobs extends Contender.Service<Jobs>()("test/Jobs") {}
    return Effect.gen(function*() {
      yield* Layer.build(Jobs.layer("m", { isAlive }).pipe(Layer.provide(layer)))
      yield* TestClock.adjust("11 seconds")
      assert.deepStrictEqual(calls, ["isAlive"])
    }).pipe(Effect.scoped, Effect.provide(TestLive))
  })

  it("adds its services to the types of the operations that accept it", () => {
    const locked = Effect.void.pipe(Mutex.withLock("m", { isAlive }))
    expectTypeOf<Effect.Services<typeof locked>>().toEqualTypeOf<Mutex.Mutex | Pager>()
    expectTypeOf<Effect.Services<ReturnType<typeof Watched.withLock<void, never, never>>>>()
      .toEqualTypeOf<Mutex.Mutex | Pager>()
    expectTypeOf<Effect.Services<typeof Watched.acquire>>().toEqualTypeOf<Mutex.Mutex | Pager | Scope.Scope>()
    const acquired = Mutex.acquire("m", { isAlive, timeout: "1 second" })
    expectTypeOf<Effect.Services<typeof acquired>>().toEqualTypeOf<Mutex.Mutex | Pager | Scope.Scope>()
  })
})

describe("onOverrun", () => {
  it.effect("has the services from the layer", () => {
    const { calls, layer } = pager()
    const overrunning = Mutex.layer({ onOverrun: ({ resource }) => call(resource) })
    expectTypeOf(overrunning).toEqualTypeOf<
      Layer.Layer<Mutex.Mutex, SimbaError.InvalidConfig | SimbaError.BackendError, MutexStore.MutexStore | Pager>
    >()
    const live = overrunning.pipe(Layer.provide(layer), Layer.provideMerge(FaultyStore.layer))
    return Effect.gen(function*() {
      const faults = yield* Faults
      const fiber = yield* start(Effect.flip(Mutex.withLock("m")(Effect.uninterruptible(Effect.sleep("1 minute")))))
      faults.guard = "fail"
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(calls, ["m"])
    }).pipe(Effect.provide(live))
  })
})
