/** Leases that were renewed by the same request share a group: one deadline and one next renewal. */
import { FencingToken, type Lease, Mutex, MutexName, SimbaError } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, Layer, Logger, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import * as heldLeases from "../../src/internal/mutex/heldLeases.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import { Faults } from "../support/faultyStore.ts"
import { TestLive, timeLeft } from "../support/setup.ts"

/** A layer whose renewals get the replies that `results` returns. */
const withResults = (
  results: (requests: ReadonlyArray<MutexStore.GuardRequest>) => ReadonlyArray<MutexStore.GuardResult>
) =>
  Mutex.layer().pipe(
    Layer.provide(Layer.effect(
      MutexStore.MutexStore,
      Effect.map(MutexStore.MutexStore, (store) => ({
        ...store,
        guard: (requests, done) => {
          done(Exit.succeed(results(requests)))
          return () => {}
        }
      }))
    )),
    Layer.provide(MutexStore.layerMemory)
  )

const renewed: MutexStore.GuardResult = { _tag: "Renewed" }
const vanished: MutexStore.GuardResult = { _tag: "Lost", ownership: { _tag: "Free" } }
const failed: MutexStore.GuardResult = {
  _tag: "Failed",
  error: new SimbaError.BackendError({ operation: "guard", isRetryable: true, cause: new Error("outage") })
}

const names = (total: number) => Array.from({ length: total }, (_, i) => `m${i}`)

describe("leases that were renewed by the same request", () => {
  it.effect("share a group if their periods are equal, and leave it when they end", () =>
    Effect.gen(function*() {
      const config = yield* MutexConfig.make()
      const leases = yield* heldLeases.make(yield* MutexStore.MutexStore, config)
      leases.follow({ lost: () => {}, released: () => ({}) })
      const store = yield* MutexStore.MutexStore
      let ids = 0
      const add = Effect.fnUntraced(function*(changes: Partial<Parameters<typeof settingsOf>[0]> = {}) {
        const settings = settingsOf({ ...config, ...changes })
        const id = `${ids++}-aaaaaaaaaaaa:us` as MutexName.LeaseId
        const mutex = MutexName.MutexName.make(`m${ids}`)
        const { lease } = settings
        yield* MutexStore.acquire(store, { mutex, id, confirm: lease, lease, mode: "try", ticket: undefined })
        const held = new HeldLease(mutex, id, FencingToken.FencingToken.make(1), settings, leases.now())
        leases.add(held)
        return held
      })
      const shared = [yield* add(), yield* add(), yield* add()] as const
      const others = [
        yield* add({ maxHold: Duration.days(1) }),
        yield* add({ isAlive: Effect.succeed(true) }),
        yield* add({ transition: config.ttl })
      ]
      const groups = (all: ReadonlyArray<HeldLease>) => new Set(all.map(({ group }) => group)).size
      assert.strictEqual(groups([...shared, ...others]), 6)
      yield* TestClock.adjust(config.ttl)
      assert.strictEqual(groups([...shared, ...others]), 4)
      assert.strictEqual(groups(shared), 1)
      const [first, second, third] = shared
      const { group } = first
      yield* leases.release(first)
      assert.deepStrictEqual(group.leases, [third, second])
      yield* leases.release(second)
      assert.deepStrictEqual(group.leases, [third])
      assert.strictEqual(groups(shared), 3)
    }).pipe(Effect.scoped, Effect.provide(MutexStore.layerMemory)))

  it.effect("are in the same list in each request until one of them leaves or another joins them", () => {
    const lists: Array<ReadonlyArray<MutexStore.GuardRequest>> = []
    const layer = withResults((requests) => {
      lists.push(requests)
      return requests.map(() => renewed)
    })
    return Effect.gen(function*() {
      const { ttl } = yield* MutexConfig.make()
      const next = Effect.andThen(TestClock.adjust(ttl), Effect.sync(() => lists.splice(0).at(-1)!))
      const mutexes = (list: ReadonlyArray<MutexStore.GuardRequest>) => list.map(({ mutex }) => mutex as string).sort()
      const scope = yield* Scope.fork(yield* Effect.scope)
      yield* Scope.provide(Mutex.acquire("m0"), scope)
      for (const name of ["m1", "m2"]) yield* Mutex.acquire(name)
      yield* next
      const three = yield* next
      const before = [...three]
      assert.strictEqual(yield* next, three)
      yield* Scope.close(scope, Exit.void)
      const two = yield* next
      assert.deepStrictEqual(mutexes(two), ["m1", "m2"])
      assert.strictEqual(yield* next, two)
      yield* Mutex.acquire("m3")
      yield* next
      const joined = yield* next
      assert.deepStrictEqual(mutexes(joined), ["m1", "m2", "m3"])
      assert.strictEqual(yield* next, joined)
      assert.deepStrictEqual(three, before)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("are renewed in separate requests if they do not fit into one", () =>
    Effect.gen(function*() {
      const { calls } = yield* Faults
      const guards = Effect.sync(() => calls.splice(0).filter((call) => call.startsWith("guard")))
      const some = yield* Effect.forEach(names(300), (name) => Mutex.acquire(name))
      yield* TestClock.adjust("2 seconds")
      const more = yield* Effect.forEach(names(300), (name) => Mutex.acquire(`later ${name}`))
      yield* TestClock.adjust("19500 millis")
      assert.deepStrictEqual(yield* guards, ["guard 300", "guard 300", "guard 300"])
      // Renews the first group half a second before the second group is due
      yield* Mutex.forceRelease("m0")
      yield* TestClock.adjust(0)
      assert.deepStrictEqual(yield* guards, ["guard 300", "guard 300"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* guards, ["guard 299", "guard 300"])
      for (const lease of [...some.slice(1), ...more]) assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("are lost, retried or extended separately if their replies differ", () => {
    let replies: ReadonlyArray<MutexStore.GuardResult> = [renewed, renewed, renewed, renewed]
    const sent: Array<ReadonlyArray<string>> = []
    return Effect.gen(function*() {
      const [a, b, c, d] = yield* Effect.all([
        Mutex.acquire("a"),
        Mutex.acquire("b"),
        Mutex.acquire("c"),
        Mutex.acquire("d")
      ])
      yield* TestClock.adjust("10 seconds")
      replies = [renewed, vanished, failed, renewed]
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* b.lost).reason._tag, "Vanished")
      assert.deepStrictEqual([yield* timeLeft(a), yield* timeLeft(c), yield* timeLeft(d)], [15_200, 5200, 15_200])
      replies = [renewed]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(sent.at(-1), ["c"])
      assert.isAbove(yield* timeLeft(c), 14_000)
      replies = [renewed, renewed, renewed]
      yield* TestClock.adjust("9 seconds")
      // "c" is due within a second of the others
      assert.deepStrictEqual([...sent.at(-1)!].sort(), ["a", "c", "d"])
      for (const lease of [a, c, d]) assert.isTrue(yield* lease.isHeld)
    }).pipe(
      Effect.scoped,
      Effect.provide(withResults((requests) => {
        sent.push(requests.map(({ mutex }) => mutex))
        return replies
      }))
    )
  })

  it.effect("are all lost if they all have another owner, even if the store returns the same reply for each", () => {
    let reply: MutexStore.GuardResult = renewed
    return Effect.gen(function*() {
      const leases = yield* Effect.forEach(names(3), (name) => Mutex.acquire(name))
      yield* TestClock.adjust("10 seconds")
      reply = vanished
      yield* TestClock.adjust("10 seconds")
      for (const lease of leases) assert.strictEqual((yield* lease.lost).reason._tag, "Vanished")
    }).pipe(
      Effect.scoped,
      Effect.provide(withResults((requests) => requests.map(() => reply)))
    )
  })

  it.effect("are not extended by a reply that does not contain all of them", () =>
    Effect.gen(function*() {
      const leases = yield* Effect.forEach(names(3), (name) => Mutex.acquire(name))
      yield* TestClock.adjust("30 seconds")
      for (const lease of leases) assert.isFalse(yield* lease.isHeld)
    }).pipe(
      Effect.scoped,
      Effect.provide([
        withResults((requests) => requests.slice(1).map(() => renewed)),
        Logger.layer([])
      ])
    ))

  it.effect("are all lost at their deadline in an outage, and are all kept if it ends before", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const leases = yield* Effect.forEach(names(20), (name) => Mutex.acquire(name))
      yield* TestClock.adjust("10 seconds")
      faults.calls.length = 0
      faults.guard = "fail"
      yield* TestClock.adjust("15 seconds")
      faults.guard = "work"
      yield* TestClock.adjust("1 minute")
      for (const lease of leases) assert.isTrue(yield* lease.isHeld)
      faults.calls.length = 0
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(faults.calls, ["guard 20"])
      faults.guard = "fail"
      yield* TestClock.adjust("30 seconds")
      for (const lease of leases) assert.strictEqual((yield* lease.lost).reason._tag, "BackendGone")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("are renewed at once if one of them is reported as released by force, and only that one is lost", () =>
    Effect.gen(function*() {
      const { calls } = yield* Faults
      const [a, b] = yield* Effect.all([Mutex.acquire("a"), Mutex.acquire("b")])
      yield* TestClock.adjust("12 seconds")
      calls.length = 0
      yield* Mutex.forceRelease("a")
      assert.strictEqual((yield* a.lost).reason._tag, "ForcedRelease")
      assert.deepStrictEqual(calls.filter((call) => call.startsWith("guard")), ["guard 2"])
      assert.strictEqual(yield* timeLeft(b), 15_200)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

/** What happens to leases, in steps of a second. */
const Steps = Schema.Array(Schema.Union([
  Schema.TaggedStruct("Acquire", {}),
  Schema.TaggedStruct("Wait", { seconds: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 11 })) }),
  Schema.TaggedStruct("Release", { which: Schema.Int }),
  Schema.TaggedStruct("Force", { which: Schema.Int })
]))

/** Returns the time left of each lease after each step, which is zero for a lease that has ended. */
const timesLeft = (steps: typeof Steps.Type, options: Mutex.LeaseOptions) =>
  Effect.gen(function*() {
    const held: Array<readonly [Lease.Lease, Scope.Closeable]> = []
    const times: Array<ReadonlyArray<number>> = []
    for (const step of steps) {
      if (step._tag === "Wait") yield* TestClock.adjust(`${step.seconds} seconds`)
      else if (step._tag === "Acquire") {
        const scope = yield* Scope.fork(yield* Effect.scope)
        held.push([yield* Scope.provide(Mutex.acquire(`m${held.length}`, options), scope), scope])
      } else if (held.length > 0) {
        const index = Math.abs(step.which) % held.length
        if (step._tag === "Release") yield* Scope.close(held[index]![1], Exit.void)
        else yield* Mutex.forceRelease(`m${index}`)
        yield* TestClock.adjust(0)
      }
      times.push(yield* Effect.forEach(held, ([lease]) => timeLeft(lease)))
    }
    return times
  }).pipe(Effect.scoped, Effect.provide(Mutex.layerMemory()))

it.effect.prop(
  "sharing a group does not change how long leases last",
  [Steps],
  ([steps]) =>
    Effect.gen(function*() {
      // Leases with `maxHold` do not share groups
      assert.deepStrictEqual(yield* timesLeft(steps, {}), yield* timesLeft(steps, { maxHold: "1 day" }))
    }),
  { arbitrary: { runs: 100, seed: "groups" } }
)
