import { Mutex, MutexName } from "@effect-simba/core"
import * as MutexConfig from "@effect-simba/core/MutexConfig"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { HeldLease } from "../../src/internal/mutex/heldLease.ts"
import * as heldLeases from "../../src/internal/mutex/heldLeases.ts"
import { settingsOf } from "../../src/internal/mutex/leaseOptions.ts"
import * as FaultyStore from "../support/faultyStore.ts"
import { another, start } from "../support/setup.ts"

const closed = (error: unknown) =>
  assert.deepInclude(error as object, { _tag: "BackendError", operation: "acquire", isRetryable: false })

/** A layer on the store, and an effect that closes the layer but not the store. */
const open = Effect.gen(function*() {
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(Layer.fresh(Mutex.layer({ processName: "us" })), scope)
  return { mutex: Context.get(context, Mutex.Mutex), close: Scope.close(scope, Exit.void) }
})

const test = <A, E>(body: Effect.Effect<A, E, MutexStore.MutexStore | FaultyStore.Faults | Scope.Scope>) =>
  body.pipe(Effect.scoped, Effect.provide(Layer.provideMerge(FaultyStore.layer, Logger.layer([]))))

describe("a closed layer whose store stays open", () => {
  it.effect("grants nothing", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      yield* close
      const faults = yield* FaultyStore.Faults
      let runs = 0
      const body = Effect.sync(() => runs++)
      closed(yield* Effect.flip(mutex.withLock("m")(body)))
      closed(yield* Effect.flip(mutex.withLockIfAvailable("m")(body)))
      closed(yield* Effect.flip(Effect.scoped(mutex.acquire("m"))))
      closed(yield* Effect.flip(Effect.scoped(mutex.acquireIfAvailable("m"))))
      closed(yield* Effect.flip(Effect.scoped(mutex.acquireAll(["m", "n"]))))
      assert.strictEqual(runs, 0)
      assert.deepStrictEqual(faults.calls, [])
    })))

  it.effect("fails current and new event streams of its mutexes", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const observed: Array<string> = []
      const events = Mutex.events("m").pipe(
        Stream.runForEach(({ _tag }) => Effect.sync(() => observed.push(_tag))),
        Effect.provideService(Mutex.Mutex, mutex),
        Effect.flip
      )
      const other = Context.get(yield* another("them"), Mutex.Mutex)
      const following = yield* start(events)
      yield* Effect.scoped(Effect.andThen(other.acquire("m"), TestClock.adjust("1 second")))
      assert.deepStrictEqual(observed, ["Acquired"])
      yield* close
      const failure = { operation: "events", isRetryable: false }
      assert.deepInclude(yield* Fiber.join(following), failure)
      const { calls } = yield* FaultyStore.Faults
      const before = calls.length
      assert.deepInclude(yield* events, failure)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(calls.slice(before), [])
    })))

  type Ask = (mutex: Mutex.Mutex["Service"]) => Effect.Effect<unknown, unknown>
  const ways: ReadonlyArray<readonly [string, Ask]> = [
    ["withLock", (mutex) => mutex.withLock("m")(Effect.never)],
    ["withLockIfAvailable", (mutex) => mutex.withLockIfAvailable("m")(Effect.never)],
    ["acquire", (mutex) => Effect.scoped(mutex.acquire("m"))]
  ]

  it.effect.each(ways)(
    "fails a request in flight and releases its grant when it closes (%s)",
    ([, ask]) =>
      test(Effect.gen(function*() {
        const { close, mutex } = yield* open
        const faults = yield* FaultyStore.Faults
        faults.acquire = { late: "10 seconds" }
        const asking = yield* start(Effect.flip(ask(mutex)))
        yield* TestClock.adjust("1 second")
        const other = Context.get(yield* another("them"), Mutex.Mutex)
        assert.strictEqual((yield* other.owner("m"))._tag, "Held")
        yield* close
        closed(yield* Fiber.join(asking))
        assert.strictEqual((yield* other.owner("m"))._tag, "Free")
      }))
  )

  it.effect("does not retry a failed request", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const faults = yield* FaultyStore.Faults
      faults.acquire = "fail"
      const asking = yield* start(Effect.flip(mutex.withLock("m")(Effect.never)))
      yield* TestClock.adjust("3 seconds")
      yield* close
      const asked = faults.calls.filter((call) => call === "acquire try").length
      yield* TestClock.adjust("1200 millis")
      assert.isDefined(asking.pollUnsafe())
      closed(yield* Fiber.join(asking))
      assert.strictEqual(faults.calls.filter((call) => call === "acquire try").length, asked)
    })))

  it.effect("loses and releases a lease that is granted after its lease table has closed", () =>
    test(Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const config = yield* MutexConfig.make()
      const scope = yield* Scope.make()
      const leases = yield* Scope.provide(heldLeases.make(store, config), scope)
      const mutex = MutexName.MutexName.make("m")
      const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
      const sent = leases.now()
      const request = { mutex, id, mode: "try", lease: Duration.seconds(16), confirm: config.confirmTimeout } as const
      const granted = yield* MutexStore.acquire(store, request)
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(granted._tag, "Granted")
      if (granted._tag !== "Granted") return
      const holding = new HeldLease(mutex, id, granted.token, settingsOf(config), sent)
      leases.add(holding)
      assert.strictEqual(holding.loss?.reason._tag, "BackendGone")
      assert.isFalse(holding.isOpen())
      assert.strictEqual((yield* store.owner(mutex))._tag, "Free")
    })))

  it.effect("after a hint of a forced release, probes that lease once, but not the next holder's lease", () =>
    test(Effect.gen(function*() {
      const store = yield* MutexStore.MutexStore
      const faults = yield* FaultyStore.Faults
      const config = yield* MutexConfig.make()
      const leases = yield* heldLeases.make(store, config)
      const mutex = MutexName.MutexName.make("m")
      const id = "1-aaaaaaaaaaaa:us" as MutexName.LeaseId
      const request = { mutex, id, mode: "try", lease: Duration.seconds(16), confirm: config.confirmTimeout } as const
      const granted = yield* MutexStore.acquire(store, request)
      assert.strictEqual(granted._tag, "Granted")
      if (granted._tag !== "Granted") return
      leases.suspect(id)
      for (let i = 0; i < 2; i++) {
        const holding = new HeldLease(mutex, id, granted.token, settingsOf(config), leases.now())
        leases.add(holding)
        yield* TestClock.adjust("1 second")
        assert.isTrue(holding.isOpen())
        assert.strictEqual(faults.calls.filter((call) => call.startsWith("guard")).length, 1)
      }
    })))

  it.effect("interrupts work, waits for it to end, and releases its mutex before the close returns", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const faults = yield* FaultyStore.Faults
      const log: Array<string> = []
      const finalizer = (name: string) => Effect.andThen(Effect.sleep("300 millis"), Effect.sync(() => log.push(name)))
      const work = (name: string) => Effect.onInterrupt(Effect.never, () => finalizer(name))
      const locked = yield* start(Effect.flip(mutex.withLock("a")(work("locked"))))
      const scope = yield* Scope.make()
      const bare = yield* start(
        Effect.flatMap(
          Scope.provide(mutex.acquire("b"), scope),
          (lease) => Effect.flip(lease.protect(work("protected")))
        )
      )
      yield* TestClock.adjust(1)
      const closing = yield* start(Effect.andThen(close, Effect.sync(() => log.push("closed"))))
      const other = Context.get(yield* another("them"), Mutex.Mutex)
      yield* TestClock.adjust("299 millis")
      for (const name of ["a", "b"]) assert.strictEqual((yield* other.owner(name))._tag, "Held")
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      assert.deepStrictEqual(log, ["locked", "protected", "closed"])
      for (const name of ["a", "b"]) assert.strictEqual((yield* other.owner(name))._tag, "Free")
      for (const fiber of [locked, bare]) {
        assert.deepInclude(yield* Fiber.join(fiber), { _tag: "LeaseLost", reason: { _tag: "BackendGone" } })
      }
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, 2)
    })))

  it.effect("releases the mutex of work that has ended, while other work is still running", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const stuck = yield* start(Effect.exit(mutex.withLock("a")(Effect.uninterruptible(Effect.sleep("10 seconds")))))
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(mutex.acquire("b"), scope)
      yield* start(Effect.exit(lease.protect(Effect.never)))
      yield* TestClock.adjust(1)
      yield* start(close)
      const { owner } = Context.get(yield* another("them"), Mutex.Mutex)
      yield* TestClock.adjust("1 second")
      const owners = [(yield* owner("a"))._tag, (yield* owner("b"))._tag]
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(owners, ["Held", "Free"])
      yield* Fiber.join(stuck)
    })))

  it.effect("closing the layer neither awaits nor releases a lease without protected work", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(mutex.acquire("m"), scope)
      const closing = yield* start(close)
      yield* TestClock.adjust(0)
      assert.isDefined(closing.pollUnsafe())
      assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "BackendGone")
      const other = Context.get(yield* another("them"), Mutex.Mutex)
      assert.strictEqual((yield* other.owner("m"))._tag, "Held")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* other.owner("m"))._tag, "Free")
    })))

  it.effect("a fiber that is waiting for the loss of a lease without work is notified", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const lease = yield* mutex.acquire("bare")
      const lost = yield* start(lease.lost)
      yield* close
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "BackendGone")
    })))

  it.effect("work may close its own layer", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const work = yield* start(Effect.exit(mutex.withLock("m")(Effect.andThen(close, Effect.never))))
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(work.pollUnsafe())
      const other = Context.get(yield* another("them"), Mutex.Mutex)
      assert.strictEqual((yield* other.owner("m"))._tag, "Free")
    })))

  it.effect("work that outlives the layer releases its mutex when it ends", () =>
    test(Effect.gen(function*() {
      const { close, mutex } = yield* open
      const work = yield* start(Effect.flip(mutex.withLock("m")(Effect.uninterruptible(Effect.sleep("10 seconds")))))
      const closing = yield* start(close)
      const other = Context.get(yield* another("them"), Mutex.Mutex)
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(closing.pollUnsafe())
      yield* TestClock.adjust("7 seconds")
      assert.strictEqual((yield* other.owner("m"))._tag, "Held")
      yield* TestClock.adjust("1 second")
      assert.deepInclude(yield* Fiber.join(work), { _tag: "LeaseLost", reason: { _tag: "BackendGone" } })
      assert.strictEqual((yield* other.owner("m"))._tag, "Free")
    })))
})
