/** Thousands of waiters or leases can become due together without blocking the event loop. */
import { Mutex } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Exit, Layer, Scheduler, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Slice, SlicedTasks } from "../../src/internal/lease/workSlices.ts"
import { Hands, HandsLive, settle } from "../support/hands.ts"
import { perTurn } from "../support/perTurn.ts"
import { another, start } from "../support/setup.ts"
import { stalling } from "../support/stalling.ts"
import { uncaught } from "../support/uncaught.ts"

const count = 1000
const names = Array.from({ length: count }, (_, index) => `m${index}`)

/** Runs all runnable fibers for more turns than they need. */
const turns = Effect.repeat(settle, { times: 20 })

const setup = Effect.gen(function*() {
  const asked = yield* perTurn
  const store = yield* MutexStore.MutexStore
  const counted = MutexStore.MutexStore.of({
    ...store,
    acquire: (request, done) => {
      asked.note()
      return store.acquire(request, done)
    }
  })
  const them = yield* another("them")
  const us = yield* Layer.build(
    Layer.fresh(Mutex.layer({ processName: "us" })).pipe(Layer.provide(Layer.succeed(MutexStore.MutexStore, counted)))
  )
  return { asked, them, us }
})

describe("a thousand tasks at once", () => {
  it.effect("waiters poll again in slices, after a gap and when a lease ends", () =>
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
      for (let second = 0; second < 30; second++) {
        yield* TestClock.adjust("1 second")
        yield* turns
      }
      const ends = asked.take()
      assert.isAtLeast(ends.all, count)
      assert.isAtMost(ends.most, 64)
      yield* Scope.close(holders, Exit.void)
    }).pipe(Effect.scoped, Effect.provide(HandsLive)))

  it.effect("a waiter with a stopped scheduler does not delay other waiters", () =>
    Effect.gen(function*() {
      const { them, us } = yield* setup
      const still: Scheduler.Scheduler = {
        executionMode: "async",
        shouldYield: () => false,
        makeDispatcher: () => ({ scheduleTask: () => {}, flush: () => {} })
      }
      const few = names.slice(0, 100)
      const holders = yield* Scope.make()
      yield* Effect.forEach(few, (name) => Scope.provide(Mutex.acquire(name), holders)).pipe(Effect.provide(them))
      let granted = 0
      const waiter = (name: string) => Mutex.withLock(name)(Effect.andThen(Effect.sync(() => granted++), Effect.never))
      const context = Context.merge(yield* Effect.context<never>(), us)
      const standing = Effect.runForkWith(context)(waiter("m99"), { scheduler: still })
      yield* Effect.forEach(few.slice(0, 99), (name) => Effect.provide(start(waiter(name)), us))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(granted, 0)
      yield* Scope.close(holders, Exit.void)
      yield* turns
      assert.strictEqual(granted, 100)
      standing.interruptUnsafe()
    }).pipe(Effect.scoped, Effect.provide(HandsLive)))

  it.effect("tasks keep up when turns are long, because later slices are larger", () =>
    Effect.gen(function*() {
      const { clock, stall } = yield* stalling
      const pending: Array<() => void> = []
      const tasks = new SlicedTasks(clock, { scheduleTask: (task) => void pending.push(task), flush: () => {} })
      let done = 0
      for (let i = 0; i < count; i++) tasks.add(() => done++)
      const after = [done]
      while (pending.length > 0) {
        // The second pause is too long to count as work
        stall.millis += after.length === 1 ? 400 : 3_600_000
        pending.shift()!()
        after.push(done)
      }
      assert.deepStrictEqual(after, [32, 288, 928, count, count])
    }))

  it.effect("a task that throws does not delay other tasks, and its error is reported as uncaught", () =>
    Effect.gen(function*() {
      const thrown = yield* uncaught
      const tasks = new SlicedTasks(yield* Clock.Clock, (yield* Scheduler.Scheduler).makeDispatcher())
      const done: Array<number> = []
      for (let i = 0; i < 100; i++) {
        tasks.add(() => {
          done.push(i)
          if (i % 40 === 0) throw new Error(`task ${i}`)
        })
      }
      assert.isBelow(done.length, 100)
      yield* turns
      assert.deepStrictEqual(done, Array.from({ length: 100 }, (_, i) => i))
      assert.deepStrictEqual(thrown.map(String), ["Error: task 0", "Error: task 40", "Error: task 80"])
    }).pipe(Effect.scoped))

  it.effect.each(
    [{ millis: 0, requests: 4 }, { millis: 10, requests: 2 }]
  )(
    "leases that are due together are renewed in requests of up to 500 leases, $requests in a turn if each takes $millis ms",
    ({ millis, requests: most }) =>
      Effect.gen(function*() {
        const { clock, stall } = yield* stalling
        const { note, take } = yield* perTurn
        const store = yield* MutexStore.MutexStore
        const sizes: Array<number> = []
        const counted = MutexStore.MutexStore.of({
          ...store,
          guard: (requests, done) => {
            note()
            stall.millis += millis
            sizes.push(requests.length)
            return store.guard(requests, done)
          }
        })
        const layer = Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeed(MutexStore.MutexStore, counted)))
        yield* Effect.forEach([...names, ...names.map((name) => `second ${name}`)], (name) => Mutex.acquire(name)).pipe(
          Effect.provide(yield* Effect.provideService(Layer.build(layer), Clock.Clock, clock))
        )
        take()
        yield* TestClock.adjust("10 seconds")
        yield* turns
        assert.deepStrictEqual(sizes, [500, 500, 500, 500])
        assert.strictEqual(take().most, most)
      }).pipe(Effect.scoped, Effect.provide(HandsLive))
  )

  it.effect("all leases end in one turn, and their fibers continue in slices", () =>
    Effect.gen(function*() {
      const { lost, interrupted, continued } = {
        lost: yield* perTurn,
        interrupted: yield* perTurn,
        continued: yield* perTurn
      }
      const hands = yield* Hands
      for (const name of names) {
        const body = Effect.onInterrupt(Effect.never, () => Effect.sync(interrupted.note))
        yield* start(Effect.ensuring(Mutex.withLock(name)(body), Effect.sync(continued.note)))
        hands.stuck.add(name)
      }
      const bare = yield* Effect.forEach(names, (name) => Mutex.acquire(`bare ${name}`))
      for (const lease of bare) {
        hands.stuck.add(lease.mutex)
        yield* start(Effect.andThen(lease.lost, Effect.sync(lost.note)))
      }
      for (const each of [lost, interrupted, continued]) each.take()
      yield* TestClock.adjust("15200 millis")
      yield* turns
      assert.deepStrictEqual(interrupted.take(), { most: count, all: count })
      assert.deepStrictEqual(lost.take(), { most: count, all: count })
      const { all, most } = continued.take()
      assert.strictEqual(all, count)
      assert.isAtMost(most, 64)
    }).pipe(Effect.scoped, Effect.provide(HandsLive)))
})

describe("one slice", () => {
  const sliced = Effect.map(stalling, ({ clock, stall }) => {
    // Move the clock away from zero
    stall.millis = 3_600_000
    return { clock, stall, slice: new Slice(clock) }
  })

  it.effect("runs at least one task, at most 32 tasks, and no new ones after 5 milliseconds", () =>
    Effect.gen(function*() {
      const { slice } = yield* sliced
      const rooms = Array.from({ length: 34 }, () => slice.hasRoom())
      assert.deepStrictEqual(rooms, Array.from({ length: 34 }, (_, i) => i < 32))
      for (const [millis, room] of [[4, true], [5, false], [1000, false]] as const) {
        const { slice, stall } = yield* sliced
        stall.millis += millis
        assert.deepStrictEqual([slice.hasRoom(), slice.hasRoom()], [true, room], String(millis))
      }
    }))

  it.effect("runs a task that another task adds only after the other task has ended", () =>
    Effect.gen(function*() {
      const { clock } = yield* sliced
      const tasks = new SlicedTasks(clock, { scheduleTask: () => {}, flush: () => {} })
      const done: Array<string> = []
      tasks.add(() => {
        tasks.add(() => done.push("inner"))
        done.push("outer")
      })
      assert.deepStrictEqual(done, ["outer", "inner"])
    }))
})
