/** What systems like this one suffered from, and this one must not: docs/known-problems.md says which is which. */
import { MutexMetrics, MutexName } from "@effect-simba/core"
import * as Mutex from "@effect-simba/core/Mutex"
import { type Change, MutexStore, type WakeUp } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import {
  Context,
  Duration,
  Effect,
  Exit,
  Fiber,
  Latch,
  Layer,
  Logger,
  Metric,
  Queue,
  Scope,
  SubscriptionRef
} from "effect"
import { TestClock } from "effect/testing"
import { Faults } from "../support/faultyStore.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"

/** Lets every fiber run that can, without moving the clock. */
const settle = Effect.repeat(Effect.yieldNow, { times: 30 })

const calls = (name: string) =>
  Effect.map(Faults, (faults) => faults.calls.filter((call) => call.startsWith(name)).length)

/** One waiter's channel, in the hands of the test. */
interface Line {
  /** What was sent is not heard. */
  muted: boolean
  readonly forge: (wakeUp: WakeUp) => void
}

class Hands extends Context.Service<Hands, {
  /** The waiters' channels, in the order of their subscriptions. */
  readonly lines: Array<Line>
  readonly announce: (change: Change) => void
  /** Requests about these mutexes are not answered. */
  readonly stuck: Set<string>
}>()("test/Hands") {}

/** The faulty store, with messages that can be forged and lost, and mutexes that hang one by one. */
const handsOn = Layer.effectContext(Effect.gen(function*() {
  const store = yield* MutexStore
  const lines: Array<Line> = []
  const changes = yield* Queue.unbounded<Change>()
  const stuck = new Set<string>()
  const unless = <A, E>(mutexes: ReadonlyArray<string>, effect: Effect.Effect<A, E>) =>
    Effect.suspend(() => mutexes.some((mutex) => stuck.has(mutex)) ? Effect.never : effect)
  return Context.make(
    MutexStore,
    MutexStore.of({
      ...store,
      acquire: (request) => unless([request.mutex], store.acquire(request)),
      guard: (requests) => unless(requests.map(({ mutex }) => mutex), store.guard(requests)),
      wakeUps: (mutex, id) =>
        Effect.gen(function*() {
          const forged = yield* Queue.unbounded<WakeUp>()
          const line: Line = { muted: false, forge: (wakeUp) => void Queue.offerUnsafe(forged, wakeUp) }
          lines.push(line)
          const real = yield* store.wakeUps(mutex, id)
          const heard = Effect.repeat(real.next, { while: () => line.muted })
          return { bound: real.bound, next: Effect.raceFirst(Queue.take(forged), heard) }
        }),
      changes: (mutex) =>
        Effect.map(store.changes(mutex), (real) => ({
          bound: real.bound,
          next: Effect.raceFirst(Queue.take(changes), real.next)
        }))
    })
  ).pipe(
    Context.add(Hands, { lines, stuck, announce: (change) => void Queue.offerUnsafe(changes, change) })
  )
}))

const HandsLive = Mutex.layer({ contender: "us" }).pipe(
  Layer.provideMerge(handsOn),
  Layer.provideMerge(FaultyStore.layer),
  Layer.provideMerge(Logger.layer([]))
)

/** Takes the mutex away from an owner, as a stranger with access to the store can. */
const takeFrom = Effect.fnUntraced(function*(victim: MutexName.ContenderId) {
  const store = yield* MutexStore
  const mutex = MutexName.MutexName.make("m")
  const id = "1-aaaaaaaaaaaa:stranger" as MutexName.ContenderId
  const confirm = Duration.millis(1500)
  yield* store.release({ mutex, id: victim, confirm })
  const result = yield* store.acquire({ mutex, id, mode: "try", lease: Duration.minutes(10), confirm })
  assert.strictEqual(result._tag, "Granted")
  return id
})

describe("messages", () => {
  it.effect("S5: a hand-off that its waiter never hears of costs the next one a confirm period", () =>
    Effect.gen(function*() {
      const { lines } = yield* Hands
      const [holder, next] = [yield* Scope.make(), yield* Scope.make()]
      yield* Effect.provide(Scope.provide(Mutex.acquire("m"), holder), yield* another("them"))
      const deaf = yield* start(Mutex.acquire("m"))
      const waiter = yield* Effect.provide(start(Scope.provide(Mutex.acquire("m"), next)), yield* another("next"))
      lines[0]!.muted = true
      yield* Scope.close(holder, Exit.void)
      yield* TestClock.adjust("1500 millis")
      assert.isUndefined(waiter.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
      // And the deaf one is not lost: it looks when the lease that it knew of would have ended
      yield* TestClock.adjust("20 seconds")
      lines[0]!.muted = false
      yield* Scope.close(next, Exit.void)
      assert.isTrue(yield* (yield* Fiber.join(deaf)).isHeld)
    }).pipe(Effect.provide(HandsLive)))

  it.effect("S8: a late acquired message does not make a contender the owner", () =>
    Effect.gen(function*() {
      const { announce } = yield* Hands
      const contention = yield* Mutex.contend("m")
      let begun = 0
      yield* start(contention.whileLeader(Effect.andThen(Effect.sync(() => begun++), Effect.never)))
      yield* settle
      const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
      const stranger = yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* lease.lost).reason, "TakenOver")
      announce({ _tag: "Acquired", owner: lease.id })
      yield* settle
      yield* TestClock.adjust("5 seconds")
      assert.deepInclude(yield* SubscriptionRef.get(contention.state), { isOwner: false, after: stranger })
      assert.isFalse(yield* lease.isHeld)
      assert.strictEqual(begun, 1)
    }).pipe(Effect.provide(HandsLive)))

  it.effect("S9: a late released message does not end a lease that is held", () =>
    Effect.gen(function*() {
      const { lines } = yield* Hands
      const faults = yield* Faults
      const holder = yield* Scope.make()
      const old = yield* Scope.provide(Mutex.acquire("m"), holder)
      let interrupted = false
      const waiter = yield* start(
        Mutex.withLock("m")((lease) =>
          Effect.sleep("1 minute").pipe(
            Effect.onInterrupt(() => Effect.sync(() => interrupted = true)),
            Effect.andThen(lease.ensure)
          )
        )
      )
      yield* Scope.close(holder, Exit.void)
      yield* settle
      faults.calls.length = 0
      lines[0]!.forge({ _tag: "YourTurn", from: old.id })
      yield* settle
      assert.deepStrictEqual(faults.calls, [])
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(waiter)
      assert.isFalse(interrupted)
      assert.strictEqual(yield* calls("acquire"), 0)
    }).pipe(Effect.provide(HandsLive)))

  it.effect("B9: a waiter subscribes once, however often it is woken for nothing", () =>
    Effect.gen(function*() {
      const { lines } = yield* Hands
      yield* Effect.provide(Mutex.acquire("m"), yield* another("them"))
      const waiter = yield* start(Mutex.acquire("m"))
      for (let i = 0; i < 20; i++) {
        lines[0]!.forge({ _tag: "YourTurn", from: "somebody" })
        lines[0]!.forge({ _tag: "Gap" })
        yield* settle
      }
      yield* TestClock.adjust("1 minute")
      assert.isUndefined(waiter.pollUnsafe())
      assert.isAtLeast(yield* calls("acquire wait"), 41)
      assert.strictEqual(yield* calls("subscribe"), 1)
    }).pipe(Effect.provide(HandsLive)))

  it.effect("B11: a release wakes one waiter, and the others sleep on", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const holder = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), holder)
      const waiters = yield* Effect.forEach(Array.from({ length: 20 }), (_, n) =>
        Effect.flatMap(another(`${n}`), (place) => Effect.provide(start(Mutex.acquire("m")), place)))
      faults.calls.length = 0
      yield* Scope.close(holder, Exit.void)
      yield* settle
      assert.deepStrictEqual(faults.calls, ["release", "acquire wait"])
      assert.deepStrictEqual(
        waiters.map((waiter) =>
          waiter.pollUnsafe() !== undefined
        ),
        [
          true,
          ...waiters.slice(1).map(() => false)
        ]
      )
      // Only the next one looks whether the first has come
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(faults.calls, ["release", "acquire wait", "acquire wait"])
    }).pipe(Effect.provide(TestLive)))
})

describe("one another's way", () => {
  it.effect("S14: a mutex whose requests hang delays neither renewals nor acquires of others", () =>
    Effect.gen(function*() {
      const { stuck } = yield* Hands
      const slow = yield* Mutex.acquire("slow")
      yield* TestClock.adjust("1500 millis")
      const quick = yield* Mutex.acquire("quick")
      stuck.add("slow")
      const waiting = yield* start(Effect.scoped(Mutex.acquire("slow")))
      yield* TestClock.adjust("10001 millis")
      assert.isAtLeast(yield* timeLeft(quick), 15_199)
      assert.isUndefined(waiting.pollUnsafe())
      yield* Effect.scoped(Mutex.acquire("another"))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual((yield* slow.lost).reason, "BackendGone")
      assert.isTrue(yield* quick.isHeld)
      yield* Fiber.interrupt(waiting)
    }).pipe(Effect.provide(HandsLive)))

  it.effect("S15: work that is slow to stop does not hide that the leadership is over", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const contention = yield* Mutex.contend("m")
      const gate = yield* Latch.make(false)
      yield* start(contention.whileLeader(Effect.onInterrupt(Effect.never, () => gate.await)))
      yield* settle
      const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
      faults.guard = "hang"
      yield* TestClock.adjust("15199 millis")
      assert.isTrue((yield* SubscriptionRef.get(contention.state)).isOwner)
      yield* TestClock.adjust("1 millis")
      assert.isFalse((yield* SubscriptionRef.get(contention.state)).isOwner)
      assert.strictEqual((yield* lease.lost).reason, "BackendGone")
      yield* gate.open
    }).pipe(Effect.provide(TestLive)))

  it.effect("S23: stopping a contender during an outage is bounded, and blocks nobody", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const contention = yield* Mutex.contend("m")
      const other = yield* Mutex.acquire("other")
      yield* settle
      assert.isTrue((yield* SubscriptionRef.get(contention.state)).isOwner)
      faults.release = "hang"
      const stopping = yield* start(contention.stop)
      yield* settle
      assert.isFalse((yield* SubscriptionRef.get(contention.state)).isOwner)
      yield* Mutex.acquire("third")
      yield* other.ensure
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(stopping.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(stopping)
      yield* TestClock.adjust("1 minute")
      assert.isTrue(yield* other.isHeld)
    }).pipe(Effect.provide(TestLive)))

  it.effect("B17: a namesake renews nothing that a dead process held", () =>
    Effect.gen(function*() {
      const process = yield* Scope.make()
      const namesake = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer({ contender: "us" })), process)
      // Each its second attempt, so that only the random part tells the ids apart
      yield* Effect.provide(Effect.scoped(Mutex.acquire("x")), namesake)
      const lease = yield* Effect.provide(Mutex.acquire("m"), namesake)
      const own = yield* Mutex.acquire("n")
      assert.strictEqual(lease.id.split(":")[1], own.id.split(":")[1])
      // Without its layer nothing renews or releases it any more, as after a crash
      yield* Scope.close(process, Exit.void)
      const waiter = yield* start(Mutex.acquire("m"))
      yield* TestClock.adjust("16 seconds")
      assert.isUndefined(waiter.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isTrue(yield* (yield* Fiber.join(waiter)).isHeld)
      assert.isTrue(yield* own.isHeld)
    }).pipe(Effect.provide(TestLive)))
})

describe("the end of a lease", () => {
  it.effect("B24: a release after a known loss is not waited for where work outlived the loss, either", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      yield* start(Effect.exit(lease.protect(Effect.onInterrupt(Effect.never, () => Effect.sleep("2 seconds")))))
      yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* lease.lost).reason, "TakenOver")
      faults.release = "hang"
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("2 seconds")
      assert.isDefined(closing.pollUnsafe())
      assert.strictEqual((yield* Effect.flip(lease.ensure)).reason, "TakenOver")
    }).pipe(Effect.provide(TestLive)))

  it.effect("B27: a waiter goes by what the server says of the owner's lease, not by its own periods", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      faults.release = "fail"
      yield* Mutex.acquire("long", { ttl: "60 seconds", transition: "6 seconds" })
      yield* Mutex.acquire("short", { ttl: "2 seconds", transition: "3 seconds" })
      const behindLong = yield* start(Mutex.acquire("long", { ttl: "2 seconds", transition: "3 seconds" }))
      const behindShort = yield* start(Mutex.acquire("short", { ttl: "60 seconds", transition: "6 seconds" }))
      yield* TestClock.adjust("5 seconds")
      assert.isUndefined(behindShort.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(behindShort)
      yield* TestClock.adjust("60999 millis")
      assert.isUndefined(behindLong.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(behindLong)
    }).pipe(Effect.provide(TestLive)))

  it.effect("B28: a late answer about an old lease says nothing about the next one of the same name", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const store = yield* MutexStore
      const scope = yield* Scope.make()
      const old = yield* Scope.provide(Mutex.acquire("m"), scope)
      // Gone at the server, which the renewal is told, and tells late
      yield* store.release({ mutex: old.mutex, id: old.id, confirm: Duration.seconds(1) })
      faults.guard = { late: "900 millis" }
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* calls("guard"), 1)
      yield* Scope.close(scope, Exit.void)
      const lease = yield* Mutex.acquire("m")
      const lost = yield* start(lease.lost)
      faults.guard = "work"
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(lost.pollUnsafe())
      assert.strictEqual((yield* Effect.flip(old.ensure)).reason, "Released")
    }).pipe(Effect.provide(TestLive)))

  it.effect("B29: work under a backend that only fails is stopped at the deadline, neither early nor late", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      faults.guard = "fail"
      let interrupted = false
      const working = yield* start(
        Effect.never.pipe(
          Effect.onInterrupt(() => Effect.sync(() => interrupted = true)),
          Mutex.withLock("m"),
          Effect.flip
        )
      )
      yield* TestClock.adjust("15199 millis")
      assert.isAtLeast(yield* calls("guard"), 5)
      assert.isFalse(interrupted)
      yield* TestClock.adjust("1 millis")
      assert.isTrue(interrupted)
      assert.deepInclude(yield* Fiber.join(working), { _tag: "LeaseLost", reason: "BackendGone" })
    }).pipe(Effect.provide(TestLive)))

  it.effect("B30: who released a mutex may have it again at once", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const first = yield* Effect.scoped(Mutex.acquire("m"))
      const second = yield* Effect.scoped(Mutex.acquire("m"))
      assert.isAbove(second.token, first.token)
      assert.deepStrictEqual(faults.calls, ["acquire try", "release", "acquire try", "release"])
    }).pipe(Effect.provide(TestLive)))
})

describe("what users are told", () => {
  it.effect("B25: each way to fail has a tag and a message of its own", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* Mutex.acquire("held")
      const timedOut = yield* start(Effect.flip(Effect.scoped(Mutex.acquire("held", { timeout: "1 second" }))))
      const lease = yield* Mutex.acquire("m")
      yield* TestClock.adjust("1 second")
      yield* takeFrom(lease.id)
      yield* TestClock.adjust("10 seconds")
      const released = yield* Effect.scoped(Mutex.acquire("released"))
      const errors: ReadonlyArray<{ readonly _tag: string; readonly message: string; readonly reason?: string }> = [
        yield* Fiber.join(timedOut),
        yield* Effect.flip(lease.ensure),
        yield* Effect.flip(released.ensure),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("outer")).pipe(Mutex.withLock("outer"))),
        yield* Effect.flip(Effect.scoped(Mutex.acquire(" "))),
        yield* Effect.flip(Effect.scoped(Mutex.acquire("x", { ttl: 0 }))),
        yield* Effect.andThen(
          Effect.sync(() => faults.acquire = "fail"),
          Effect.flip(Effect.scoped(Mutex.tryAcquire("y")))
        )
      ]
      assert.deepStrictEqual(errors.map((error) => error._tag), [
        "AcquireTimeout",
        "LeaseLost",
        "LeaseLost",
        "AlreadyHeld",
        "InvalidName",
        "InvalidConfig",
        "BackendError"
      ])
      assert.deepInclude(errors[1], { reason: "TakenOver" })
      assert.deepInclude(errors[2], { reason: "Released" })
      assert.strictEqual(new Set(errors.map((error) => error.message)).size, errors.length)
    }).pipe(Effect.provide(TestLive)))

  it.effect("S24: there are tokens, several mutexes at once, an inspection and figures", () =>
    Effect.gen(function*() {
      const { token } = yield* Effect.scoped(Mutex.acquire("a"))
      const group = yield* Mutex.acquireAll(["a", "b"])
      assert.isAbove(group.tokens.get("a")!, token)
      const state = yield* Mutex.inspect("b")
      assert.strictEqual(state.token, group.tokens.get("b"))
      assert.strictEqual((yield* Metric.value(MutexMetrics.held)).value, 2)
      assert.strictEqual((yield* Metric.value(MutexMetrics.attempts.granted)).count, 3)
    }).pipe(Effect.provide(TestLive), Effect.provideService(Metric.MetricRegistry, new Map())))
})
