/** Runs the examples that need no server in virtual time, and checks their results. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import * as mutexExample from "../mutex.ts"
import * as serviceExample from "../service.ts"
import * as withLockExample from "../with-lock.ts"

const Mutexes = Mutex.layerMemory()

/** Runs an example in virtual time until it ends. */
const inNoTime = <A, E, R>(example: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(example)
    yield* TestClock.adjust("5 minutes")
    return yield* Fiber.join(fiber)
  })

describe("mutex.ts", () => {
  it.effect("postpones an entry until the books are closed", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* inNoTime(mutexExample.program), ["put off", "added"])
    }).pipe(Effect.provide(Mutexes)))
})

describe("with-lock.ts", () => {
  const { Balances } = withLockExample

  it.effect("passes a larger token to the table on each run", () =>
    Effect.gen(function*() {
      const first = yield* inNoTime(withLockExample.settle)
      const second = yield* inNoTime(withLockExample.settle)
      assert.isAbove(second, first)
    }).pipe(Effect.provide([Mutexes, Balances.layer])))

  it.effect("is rejected by the table if an owner with a larger token wrote first", () =>
    Effect.gen(function*() {
      const balances = yield* Balances
      const settling = yield* Effect.forkChild(withLockExample.settle)
      yield* TestClock.adjust("1 second")
      yield* balances.set("alice", 10, Number.MAX_SAFE_INTEGER)
      yield* TestClock.adjust("1 second")
      const error = yield* Effect.flip(Fiber.join(settling))
      assert.strictEqual(error._tag, "Superseded")
    }).pipe(Effect.provide([Mutexes, Balances.layer])))

  it.effect("retries if its lease was lost", () => {
    let renewals = 0
    let grants = 0
    const flaky = Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        acquire: (request, done) =>
          store.acquire(request, (exit) => {
            grants++
            done(exit)
          }),
        guard: (requests, done) => {
          renewals++
          if (renewals > 1) return store.guard(requests, done)
          done(Exit.succeed(requests.map(() => ({ _tag: "Lost", ownership: { _tag: "Free" } }))))
          return () => {}
        }
      }))
    ).pipe(Layer.provide(MutexStore.layerMemory))
    return Effect.gen(function*() {
      yield* inNoTime(withLockExample.program)
      assert.deepStrictEqual([renewals > 0, grants > 1], [true, true])
    }).pipe(
      Effect.provide([
        Balances.layer,
        Mutex.layer({ ttl: "1 second", transition: "6 seconds" }).pipe(Layer.provide(flaky))
      ])
    )
  })
})

describe("service.ts", () => {
  const { MutexLive, program, Reports } = serviceExample
  const configured = (env: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromEnv({ env }))

  it.effect("makes the report once", () =>
    Effect.gen(function*() {
      const [first, second] = yield* inNoTime(program)
      assert.deepStrictEqual([Option.isSome(first!), Option.isSome(second!)], [true, false])
    }).pipe(
      Effect.provide(Reports.layer.pipe(Layer.provide(MutexLive), Layer.provide(configured({}))))
    ))

  it.effect("rejects an unknown value for LOCKS", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Layer.build(MutexLive))
      assert.strictEqual(error._tag, "ConfigError")
    }).pipe(Effect.provide(configured({ LOCKS: "postgres" }))))

  it.effect("rejects mutexes on Redis if they are disabled", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Layer.build(MutexLive))
      assert.strictEqual(error._tag, "InvalidConfig")
    }).pipe(Effect.provide(configured({ LOCKS: "redis", SIMBA_REDIS_ENABLED: "false" }))))
})
