/** How watches follow mutex owners: when a watch polls, and what each follower receives. */
import { type FencingToken, Mutex, MutexName } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Latch, Layer, Option, Queue, References, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { instant } from "../../src/internal/lease/instant.ts"
import * as timerQueue from "../../src/internal/lease/timerQueue.ts"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import * as ownerWatch from "../../src/internal/mutex/ownerWatch.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { another, TestLive } from "../support/setup.ts"

/** A separate layer that counts its polls and its subscriptions. */
const counted = Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const asked = { polls: 0, subscriptions: 0, instants: new Set<number>() }
  const clock = yield* Clock.Clock
  const us = yield* Layer.build(
    Layer.fresh(Mutex.layer({ processName: "us" })).pipe(Layer.provide(Layer.succeed(MutexStore.MutexStore, {
      ...store,
      inspect: (mutex, limit) => {
        asked.polls++
        asked.instants.add(clock.currentTimeMillisUnsafe())
        return store.inspect(mutex, limit)
      },
      changes: (mutex) => {
        asked.subscriptions++
        return store.changes(mutex)
      }
    })))
  )
  return { asked, us }
})

const mutex = MutexName.MutexName.make("m")

/** What a watch needs from its layer, and a count of its polls. */
const watching = Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const clock = yield* Clock.Clock
  const asked = { polls: 0 }
  const context = {
    lease: Duration.seconds(16),
    now: () => instant(clock),
    timers: yield* timerQueue.make,
    store: {
      ...store,
      inspect: (mutex: MutexName.MutexName, limit: number) => {
        asked.polls++
        return store.inspect(mutex, limit)
      }
    }
  }
  return { asked, context }
})

const follow = (name: string) =>
  Effect.gen(function*() {
    const observed: Array<string> = []
    yield* Effect.forkScoped(
      Stream.runForEach(Mutex.events(name), (event) => Effect.sync(() => void observed.push(event._tag))),
      { startImmediately: true }
    )
    return observed
  })

describe("followers of owners", () => {
  it.effect("all followers of a mutex share one watch, and a new follower receives the current owner", () =>
    Effect.gen(function*() {
      const { asked, us } = yield* counted
      const owner = yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const first = yield* Effect.provide(follow("m"), us)
      yield* TestClock.adjust("10 seconds")
      const alone = asked.polls
      const contenders = yield* Effect.provide(Effect.replicateEffect(Mutex.contend("m"), 10), us)
      const others = yield* Effect.provide(Effect.replicateEffect(follow("m"), 10), us)
      yield* TestClock.adjust(1)
      for (const observed of [first, ...others]) assert.deepStrictEqual(observed, ["Acquired"])
      for (const { state } of contenders) {
        assert.deepInclude(yield* state, { _tag: "Following", leader: owner.id })
      }
      asked.polls = 0
      yield* TestClock.adjust("10 seconds")
      assert.isAtMost(asked.polls, alone)
      assert.strictEqual(asked.subscriptions, 1)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("polls for many mutexes are sent together if they are due within a quarter of a second", () =>
    Effect.gen(function*() {
      const { asked, us } = yield* counted
      for (let i = 0; i < 20; i++) {
        yield* Effect.provide(follow(`m ${i}`), us)
        yield* TestClock.adjust("47 millis")
      }
      yield* TestClock.adjust("2 seconds")
      asked.polls = 0
      asked.instants.clear()
      yield* TestClock.adjust("10 seconds")
      assert.isAtLeast(asked.polls, 20 * 9)
      assert.isAtMost(asked.instants.size, 10_000 / 250 + 1)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a watch ends with its last follower, and the next follower starts a new one", () =>
    Effect.gen(function*() {
      const { asked, us } = yield* counted
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const scopes = yield* Effect.replicateEffect(Scope.make(), 3)
      for (const scope of scopes) yield* Scope.provide(Effect.provide(follow("m"), us), scope)
      yield* TestClock.adjust("2 seconds")
      for (const scope of scopes.slice(1)) yield* Scope.close(scope, Exit.void)
      asked.polls = 0
      yield* TestClock.adjust("20 seconds")
      assert.isAtLeast(asked.polls, 19)
      yield* Scope.close(scopes[0]!, Exit.void)
      asked.polls = 0
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(asked.polls, 0)
      const observed = yield* Effect.provide(follow("m"), us)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(observed, ["Acquired"])
      assert.strictEqual(asked.subscriptions, 2)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("a leader does not poll, and its state shows that it leads until it stops leading", () =>
    Effect.gen(function*() {
      const { asked, us } = yield* counted
      const jobs = yield* Effect.provide(Mutex.contend("m"), us)
      const observed = yield* Effect.provide(follow("m"), us)
      yield* TestClock.adjust("1 second")
      const { id } = Option.getOrThrow(yield* jobs.lease)
      asked.polls = 0
      for (let i = 0; i < 60; i++) {
        yield* TestClock.adjust("1 second")
        assert.deepInclude(yield* jobs.state, { _tag: "Leading", after: id, isInTtl: true })
      }
      assert.strictEqual(asked.polls, 0)
      yield* jobs.stop
      yield* TestClock.adjust(1)
      assert.deepInclude(yield* jobs.state, { _tag: "Stopped", before: id, after: undefined })
      assert.deepStrictEqual(observed, ["Acquired", "Released"])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("if the owner runs effect-simba, a follower polls when the owner should have renewed, not every second", () =>
    Effect.gen(function*() {
      const faults = yield* FaultyStore.Faults
      const { asked, us } = yield* counted
      const owner = yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const jobs = yield* Effect.provide(Mutex.contend("m"), us)
      yield* TestClock.adjust("1 second")
      asked.polls = 0
      yield* TestClock.adjust("10 minutes")
      assert.isAtLeast(asked.polls, 50)
      assert.isAtMost(asked.polls, 70)
      assert.deepInclude(yield* jobs.state, { after: owner.id, isInTtl: true })
      faults.guard = "fail"
      yield* TestClock.adjust("12 seconds")
      assert.deepInclude(yield* jobs.state, { after: owner.id, isInTransition: true })
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* jobs.state, { _tag: "Leading", before: owner.id })
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect.each([3, 4, 5, 6, 7])(
    "the first followers in a layer share one watch even if they start at the same time (%i steps per turn)",
    (steps) =>
      Effect.gen(function*() {
        const { asked, us } = yield* counted
        yield* Effect.gen(function*() {
          for (let i = 0; i < 3; i++) {
            yield* Effect.forkScoped(Stream.runDrain(Mutex.events("m")))
            yield* Effect.forkScoped(Mutex.contend("m"))
          }
        }).pipe(Effect.provide(us))
        for (let i = 0; i < 300; i++) yield* Effect.yieldNow
        assert.strictEqual(asked.subscriptions, 1)
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(References.MaxOpsBeforeYield, steps))
  )

  it.effect("a follower that leaves while another is notified receives nothing more, and the watch ends with its last follower", () =>
    Effect.gen(function*() {
      const { context, asked } = yield* watching
      const follow = yield* ownerWatch.make(context, () => undefined)
      const hears = yield* Latch.make(true)
      const heard: Array<string> = []
      const follower = (name: string, hear: Effect.Effect<void>) => ({
        on: () => Effect.andThen(Effect.sync(() => void heard.push(name)), hear),
        refused: () => Effect.void,
        nextPoll: (_: unknown, now: number) => now + 1000,
        renewals: false
      })
      const [slow, gone] = [yield* Scope.make(), yield* Scope.make()]
      const poll = yield* Scope.provide(follow(mutex, follower("slow", hears.await)), slow)
      yield* Scope.provide(follow(mutex, follower("gone", Effect.void)), gone)
      assert.include(heard.splice(0), "gone")
      yield* hears.close
      poll()
      assert.deepStrictEqual(heard, ["slow"])
      yield* Scope.close(gone, Exit.void)
      yield* hears.open
      yield* TestClock.adjust("1 second")
      assert.notInclude(heard, "gone")
      heard.length = 0
      yield* TestClock.adjust("2 seconds")
      assert.include(heard, "slow", "the watch continues")
      yield* Scope.close(slow, Exit.void)
      asked.polls = 0
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(asked.polls, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect.each([3, 4, 5, 6, 7])(
    "a change between any two steps of a poll is noticed (%i steps per turn)",
    (steps) =>
      Effect.gen(function*() {
        const missed: Array<number> = []
        for (let turns = 0; turns < 60; turns++) {
          const { context } = yield* watching
          const follow = yield* ownerWatch.make(context, () => undefined)
          let polls = 0
          const poll = yield* follow(mutex, {
            on: () => Effect.sync(() => void polls++),
            refused: () => Effect.void,
            nextPoll: () => Infinity,
            renewals: false
          })
          for (let i = 0; i < turns; i++) yield* Effect.yieldNow
          const before = polls
          poll()
          for (let i = 0; i < 100; i++) yield* Effect.yieldNow
          if (polls === before) missed.push(turns)
        }
        assert.deepStrictEqual(missed, [])
      }).pipe(Effect.scoped, Effect.provide(TestLive), Effect.provideService(References.MaxOpsBeforeYield, steps))
  )
})

describe("a watch", () => {
  /** A follower that does not request polls. Records its events and the times of polls. */
  const idle = Effect.fnUntraced(function*(change: Partial<MutexStore.MutexStore["Service"]> = {}, held?: HeldLease) {
    const { context } = yield* watching
    const clock = yield* Clock.Clock
    const polls: Array<number> = []
    const events: Array<string> = []
    const limits = new Set<number>()
    const follow = yield* ownerWatch.make({
      ...context,
      store: {
        ...context.store,
        ...change,
        inspect: (mutex, limit) => {
          polls.push(clock.currentTimeMillisUnsafe())
          limits.add(limit)
          return (change.inspect ?? context.store.inspect)(mutex, limit)
        }
      }
    }, () => held)
    yield* follow(mutex, {
      on: (_, all) => Effect.sync(() => void events.push(...all.map(({ _tag }) => _tag))),
      refused: () => Effect.void,
      nextPoll: () => Infinity,
      renewals: true
    })
    return { events, limits, polls }
  })

  it.effect("polls a tenth of a second before the end of a lease, and a millisecond after it", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const id = "1:1@simba" as MutexName.LeaseId
      yield* MutexStore.acquire(store, {
        mutex,
        id,
        mode: "try",
        lease: Duration.seconds(16),
        confirm: Duration.seconds(1)
      })
      const { events, limits, polls } = yield* idle()
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([...new Set(polls)], [0, 15_901, 16_001])
      assert.deepStrictEqual(events, ["Acquired", "Expired"])
      assert.deepStrictEqual([...limits], [0], "requests no waiters")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("leaves no timers behind when its last follower leaves", () =>
    Effect.gen(function*() {
      const { context } = yield* watching
      const pending = new Set<object>()
      const pollAt = (at: number, ring: () => void) => {
        const timer = {}
        pending.add(timer)
        const cancel = context.timers.pollAt(at, ring)
        return () => {
          pending.delete(timer)
          cancel()
        }
      }
      const follow = yield* ownerWatch.make({ ...context, timers: { ...context.timers, pollAt } }, () => undefined)
      const follower = {
        on: () => Effect.void,
        refused: () => Effect.void,
        nextPoll: (_: unknown, now: number) => now + 1000,
        renewals: false
      }
      const scope = yield* Scope.make()
      yield* Scope.provide(follow(mutex, follower), scope)
      yield* TestClock.adjust(0)
      assert.strictEqual(pending.size, 1)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(pending.size, 0)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("reports an owner whose lease never ends", () =>
    Effect.gen(function*() {
      const ownership = { _tag: "Held", owner: "somebody" } as const
      const state = { ownership, token: undefined, waiting: 0, waiters: [] }
      const { events, polls } = yield* idle({ inspect: () => Effect.succeed(state) })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual([events, new Set(polls)], [["Acquired"], new Set([0])])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("polls at its subscription's interval if the subscription cannot detect gaps", () =>
    Effect.gen(function*() {
      const changes = () => Effect.succeed({ next: Effect.never, bound: Duration.seconds(2) })
      const { polls } = yield* idle({ changes })
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([...new Set(polls)], [0, 2000, 4000, 6000, 8000, 10_000])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("reports a gap, then polls", () =>
    Effect.gen(function*() {
      const published = yield* Queue.unbounded<MutexStore.Change>()
      const changes = () => Effect.succeed({ next: Queue.take(published), bound: undefined })
      const { events, polls } = yield* idle({ changes })
      yield* TestClock.adjust("1 second")
      Queue.offerUnsafe(published, { _tag: "Gap" })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([events, new Set(polls)], [["Gap"], new Set([0, 1000])])
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("polls after a message about another owner, but not after one about its own layer", () =>
    Effect.gen(function*() {
      const published = yield* Queue.unbounded<MutexStore.Change>()
      const changes = () => Effect.succeed({ next: Queue.take(published), bound: undefined })
      const settings = settingsOf({
        ttl: Duration.seconds(10),
        transition: Duration.seconds(6),
        localTurn: Duration.zero
      })
      const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
      const own = new HeldLease(mutex, id, 100 as FencingToken.FencingToken, settings, { monotonic: 0, wall: 0 })
      const { events, polls } = yield* idle({ changes }, own)
      const before = polls.length
      Queue.offerUnsafe(published, { _tag: "Acquired", owner: id })
      yield* TestClock.adjust(1)
      assert.deepStrictEqual([polls.length - before, events], [0, ["Acquired"]])
      Queue.offerUnsafe(published, { _tag: "Acquired", owner: "1-bbbbbbbbbbbb:them" })
      yield* TestClock.adjust(1)
      assert.strictEqual(polls.length - before, 1)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})
