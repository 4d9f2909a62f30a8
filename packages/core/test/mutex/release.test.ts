/** Tests releasing a lease: what a release waits for, how it is retried, and what happens when the layer closes. */
import { Mutex, type SimbaError } from "@effect-simba/core"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Faults, outage } from "../support/faultyStore.ts"
import { takeFrom } from "../support/hands.ts"
import { start, TestLive } from "../support/setup.ts"

const names = ["a", "b", "c", "d", "e"]

const acquireAll = Effect.forEach(names, (name) => Mutex.acquire(name), { discard: true })

type Done = (exit: Exit.Exit<MutexStore.Released, SimbaError.BackendError | SimbaError.ProtocolError>) => void

/**
 * A mutex on a store that records releases in `sent`. The caller does not wait for them, and the test replies to them
 * by calling `done`. While `state.isReady` is false, releases go to the in-process store, and the caller waits for the
 * reply.
 */
const sending = Effect.gen(function*() {
  const store = yield* MutexStore.MutexStore
  const sent: Array<{ readonly request: MutexStore.ReleaseRequest; readonly done: Done }> = []
  const state = { isReady: true }
  const scope = yield* Scope.make()
  const context = yield* Layer.buildWithScope(
    Layer.fresh(Mutex.layer({ processName: "sender" })).pipe(
      Layer.provide(Layer.succeed(MutexStore.MutexStore, {
        ...store,
        release: (request, done) => state.isReady ? void sent.push({ request, done }) : store.release(request, done),
        isReady: () => state.isReady
      }))
    ),
    scope
  )
  return { close: Scope.close(scope, Exit.void), mutex: Context.get(context, Mutex.Mutex), sent, state, store }
})

describe("releasing", () => {
  it.effect("waits for the work to end, even if the first step of that work closes the lease's scope with `runSync`", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
      const { owner } = yield* Mutex.Mutex
      const context = yield* Effect.context<never>()
      const observed: Array<string> = []
      const closing = Effect.gen(function*() {
        const first = Effect.sync(() => {
          Effect.runSyncExitWith(context)(Scope.close(scope, Exit.void))
          observed.push(Effect.runSyncWith(context)(Effect.orDie(owner("m")))._tag)
        })
        return yield* Effect.onInterrupt(
          Effect.andThen(first, Effect.never),
          () => Effect.map(Effect.orDie(owner("m")), ({ _tag }) => void observed.push(_tag))
        )
      })
      const loss = yield* Effect.flip(lease.protect(closing))
      assert.strictEqual(loss._tag, "LeaseLost")
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(observed, ["Held", "Held"])
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.provide(TestLive)))

  it.effect("work may close the scope of its lease in its first step", () =>
    Effect.gen(function*() {
      for (const interruptible of [true, false]) {
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        const closing = Scope.close(scope, Exit.void)
        const working = yield* start(lease.protect(interruptible ? closing : Effect.uninterruptible(closing)))
        yield* TestClock.adjust(1)
        assert.isDefined(working.pollUnsafe())
        assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
      }
    }).pipe(Effect.provide(TestLive)))

  it.effect("closing a layer waits for the reply to a release that is sent in the meantime", () =>
    Effect.gen(function*() {
      const { close, mutex, sent, state } = yield* sending
      const faults = yield* Faults
      const [first, second] = [yield* Scope.make(), yield* Scope.make()]
      yield* Scope.provide(mutex.acquire("a"), first)
      yield* Scope.provide(mutex.acquire("b"), second)
      state.isReady = false
      faults.release = { late: "1 second" }
      yield* start(Scope.close(first, Exit.void))
      yield* TestClock.adjust("10 millis")
      const closing = yield* start(close)
      yield* TestClock.adjust(1)
      state.isReady = true
      yield* start(Scope.close(second, Exit.void))
      assert.strictEqual(sent.length, 1)
      yield* TestClock.adjust("1 second")
      assert.isUndefined(closing.pollUnsafe())
      sent[0]!.done(Exit.succeed({ requeued: undefined }))
      yield* TestClock.adjust(1)
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect("several hanging releases delay closing their scope by only one release timeout in total", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Scope.provide(acquireAll, scope)
      faults.release = "hang"
      const closing = yield* start(Scope.close(scope, Exit.void))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(closing.pollUnsafe())
      assert.strictEqual(faults.calls.filter((call) => call === "release").length, names.length)
      // Once a release gets a reply, later releases are awaited again
      faults.release = "work"
      yield* Effect.scoped(Mutex.acquire("f"))
      faults.release = { late: "300 millis" }
      const repeated = yield* start(Effect.scoped(Mutex.acquire("g")))
      yield* TestClock.adjust("299 millis")
      assert.isUndefined(repeated.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(repeated.pollUnsafe())
      // Let the hanging releases time out, so that closing the layer does not wait for them
      yield* TestClock.adjust("10 seconds")
    }).pipe(Effect.provide(TestLive)))

  it.effect("a hanging release is awaited until the deadline at the latest", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      const scope = yield* Scope.make()
      yield* Scope.provide(Mutex.acquire("m"), scope)
      faults.guard = faults.release = "hang"
      yield* TestClock.adjust("14900 millis")
      const closing = yield* start(Scope.close(scope, Exit.void))
      // The deadline is at 15.2 seconds, and the release timeout is 2 seconds
      yield* TestClock.adjust("299 millis")
      const before = closing.pollUnsafe()
      yield* TestClock.adjust("1 millis")
      const after = closing.pollUnsafe()
      faults.release = "work"
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([before, after], [undefined, Exit.void])
    }).pipe(Effect.scoped, Effect.provide(TestLive)), { tags: ["L4"] })

  it.effect("closing the layer waits for releases in flight, for at most one release timeout in total", () =>
    Effect.gen(function*() {
      const { close, mutex, sent } = yield* sending
      yield* Effect.scoped(Effect.forEach(names, (name) => mutex.acquire(name)))
      assert.deepStrictEqual(sent.map(({ request }) => request.mutex), [...names].reverse())
      const closing = yield* start(close)
      for (const { done } of sent.slice(1)) done(Exit.succeed({ ownership: { _tag: "Free" }, requeued: undefined }))
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect("closing the layer ends as soon as the last release gets a reply", () =>
    Effect.gen(function*() {
      const { close, mutex, sent } = yield* sending
      yield* Effect.scoped(mutex.acquire("a"))
      const closing = yield* start(close)
      yield* TestClock.adjust("1 second")
      assert.isUndefined(closing.pollUnsafe())
      sent[0]!.done(Exit.succeed({ ownership: { _tag: "Free" }, requeued: undefined }))
      yield* TestClock.adjust(Duration.zero)
      assert.isDefined(closing.pollUnsafe())
    }).pipe(Effect.provide(TestLive)))

  it.effect("a release grants the next owner the layer's lease, regardless of the length of the lease that it ends", () =>
    Effect.gen(function*() {
      const { mutex, sent } = yield* sending
      yield* Effect.scoped(mutex.acquire("a", { ttl: "1 minute" }))
      const { done, request } = sent[0]!
      assert.deepStrictEqual([request.lease, request.confirm].map(Duration.toMillis), [16_000, 1500])
      done(Exit.succeed({ ownership: { _tag: "Free" }, requeued: undefined }))
    }).pipe(Effect.provide(TestLive)))

  it.effect("a failed release is retried until it succeeds", () =>
    Effect.gen(function*() {
      const { mutex, sent, state, store } = yield* sending
      yield* Effect.scoped(mutex.acquire("a"))
      const { done, request } = sent[0]!
      const faults = yield* Faults
      faults.release = "fail"
      state.isReady = false
      done(Exit.fail(outage))
      yield* TestClock.adjust("500 millis")
      assert.strictEqual((yield* store.owner(request.mutex))._tag, "Held")
      faults.release = "work"
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* store.owner(request.mutex))._tag, "Free")
      assert.strictEqual(sent.length, 1)
    }).pipe(Effect.provide(TestLive)))

  it.effect("the caller waits for a release if the store is not ready", () =>
    Effect.gen(function*() {
      const { mutex, sent, state } = yield* sending
      const faults = yield* Faults
      state.isReady = false
      faults.release = { late: "1 second" }
      const closing = yield* start(Effect.scoped(mutex.acquire("a")))
      yield* TestClock.adjust("999 millis")
      assert.isUndefined(closing.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      assert.strictEqual(sent.length, 0)
    }).pipe(Effect.provide(TestLive)))

  it.effect(
    "a release after a known loss is not awaited, even if work continued after the loss",
    () =>
      Effect.gen(function*() {
        const faults = yield* Faults
        const scope = yield* Scope.make()
        const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
        yield* start(Effect.exit(lease.protect(Effect.onInterrupt(Effect.never, () => Effect.sleep("2 seconds")))))
        yield* takeFrom(lease.id)
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* lease.lost).reason._tag, "TakenOver")
        faults.release = "hang"
        const closing = yield* start(Scope.close(scope, Exit.void))
        yield* TestClock.adjust("2 seconds")
        assert.isDefined(closing.pollUnsafe())
        assert.strictEqual((yield* Effect.flip(lease.ensure)).reason._tag, "TakenOver")
      }).pipe(Effect.provide(TestLive)),
    { tags: ["B24"] }
  )
})

describe("a fiber started by protected work", () => {
  const closing = Effect.fnUntraced(function*(
    work: (close: Effect.Effect<void>) => Effect.Effect<unknown, unknown>
  ) {
    const scope = yield* Scope.make()
    const lease = yield* Scope.provide(Mutex.acquire("m"), scope)
    const ended = yield* start(Effect.exit(lease.protect(work(Scope.close(scope, Exit.void)))))
    yield* TestClock.adjust("20 seconds")
    assert.isDefined(ended.pollUnsafe())
    assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
  })

  it.effect("may close the scope of its lease from inside `Effect.timeout`", () =>
    closing(Effect.timeout("10 seconds")).pipe(Effect.provide(TestLive)))

  it.effect("may close the scope of its lease while other fibers work, and thereby interrupts them", () =>
    closing((close) => Effect.all([Effect.never, Effect.delay(close, "1 second")], { concurrency: 2 })).pipe(
      Effect.provide(TestLive)
    ))
})
