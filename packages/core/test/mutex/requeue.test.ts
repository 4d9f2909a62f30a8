/** Releases that queue the layer's next waiter: what the reply may contain, and when a grant in the reply starts. */
import { Mutex } from "@effect-simba/core"
import type { Ownership } from "@effect-simba/core/MutexState"
import * as MutexStore from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Duration, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { TestClock } from "effect/testing"
import { Faults, outage } from "../support/faultyStore.ts"
import { another, start, TestLive, timeLeft } from "../support/setup.ts"

const turns = { localTurn: 0 }

const hold = (millis: number, options?: Mutex.AcquireOptions) =>
  start(Mutex.withLock("m", { ...turns, ...options })(Effect.sleep(millis)))

describe("a grant in the reply to a release", () => {
  it.effect("starts when the release is sent, not when the reply arrives", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* hold(100)
      const waiting = yield* start(Mutex.acquire("m", turns))
      faults.release = { late: "1500 millis" }
      yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("1500 millis")
      faults.release = "work"
      assert.isDefined(waiting.pollUnsafe())
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiting)), 16_000 * 0.95 - 1500)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("is requested again if it has expired when the reply arrives", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* hold(100)
      const waiting = yield* start(Mutex.acquire("m", { ...turns, ttl: "500 millis", transition: "1200 millis" }))
      faults.release = { late: "1900 millis" }
      yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("1900 millis")
      faults.release = "work"
      assert.isDefined(waiting.pollUnsafe())
      const lease = yield* Fiber.join(waiting)
      assert.isTrue(yield* lease.isHeld)
      assert.strictEqual(yield* timeLeft(lease), 1600)
      assert.isTrue(yield* lease.isHeld)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("is valid until its last millisecond", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      for (const [late, requests] of [[1599, 0], [1600, 1]] as const) {
        const first = yield* hold(100)
        const waiting = yield* start(
          Effect.scoped(Mutex.acquire("m", { ...turns, ttl: "500 millis", transition: "1200 millis" }))
        )
        faults.release = { late }
        yield* TestClock.adjust(100)
        faults.calls.length = 0
        faults.release = "work"
        yield* TestClock.adjust(late)
        assert.lengthOf(faults.calls.filter((call) => call.startsWith("acquire")), requests, String(late))
        yield* Fiber.join(first)
        yield* TestClock.adjust("1 second")
        assert.isDefined(waiting.pollUnsafe())
      }
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("belongs to the waiter for which it was requested, so another waiter sends its own request", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* hold(100)
      const leaving = yield* start(Mutex.acquire("m", { ...turns, timeout: "1 second" }))
      const waiting = yield* start(Mutex.acquire("m", { ...turns, ttl: "20 seconds" }))
      faults.release = { late: "1500 millis" }
      yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("1500 millis")
      faults.release = "work"
      assert.isDefined(waiting.pollUnsafe())
      assert.strictEqual((yield* Effect.flip(Fiber.join(leaving)))._tag, "AcquireTimeout")
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiting)), 26_000 * 0.95)
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("a place that a release has queued", () => {
  it.effect("is released only once if its waiter leaves before the reply", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* hold(100)
      const leaving = yield* start(Effect.flip(Mutex.acquire("m", { ...turns, timeout: "1 second" })))
      faults.release = { late: "1500 millis" }
      yield* TestClock.adjust("100 millis")
      yield* TestClock.adjust("1500 millis")
      faults.release = "work"
      yield* TestClock.adjust("20 seconds")
      assert.isDefined(leaving.pollUnsafe())
      assert.deepStrictEqual(faults.calls, ["acquire try", "listen", "release", "release"])
      assert.strictEqual((yield* Mutex.owner("m"))._tag, "Free")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))

  it.effect("does not show that the mutex is free, so the next acquire queues immediately", () =>
    Effect.gen(function*() {
      const faults = yield* Faults
      yield* start(Effect.provide(Mutex.withLock("m", turns)(Effect.sleep(100)), yield* another("them")))
      yield* hold(100)
      yield* hold(100)
      yield* TestClock.adjust("1 second")
      const before = faults.calls.length
      yield* Mutex.acquire("m", turns)
      assert.include(faults.calls.slice(before), "acquire wait")
    }).pipe(Effect.scoped, Effect.provide(TestLive)))
})

describe("a release that fails", () => {
  it.effect("is retried without queueing the waiter, which sends a separate request", () =>
    Effect.gen(function*() {
      const requests: Array<MutexStore.ReleaseRequest> = []
      const layer = Mutex.layer({ processName: "us" }).pipe(
        Layer.provide(Layer.effect(
          MutexStore.MutexStore,
          Effect.map(MutexStore.MutexStore, (store) => ({
            ...store,
            release: (request, done) => {
              if (requests.push(request) > 1) store.release(request, done)
              else done(Exit.fail(outage))
            }
          }))
        )),
        Layer.provide(MutexStore.layerMemory),
        Layer.provideMerge(Logger.layer([]))
      )
      yield* Effect.gen(function*() {
        yield* hold(100)
        const waiting = yield* start(Mutex.acquire("m", turns))
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(waiting)
        assert.deepStrictEqual(requests.map(({ requeue }) => requeue !== undefined), [true, false])
      }).pipe(Effect.scoped, Effect.provide(layer))
    }))
})

describe("a waiter queued by a release that grants the mutex to another layer", () => {
  const own = "1-bbbbbbbbbbbb:them"

  /** A store that replies to releases with this ownership and a fixed ticket. */
  const replying = (
    ownership: Ownership,
    { position, wait = 101 }: { position?: number; wait?: number } = { position: 1 }
  ) => {
    const asked: Array<MutexStore.AcquireRequest> = []
    const ticket = "1700000000.000001" as MutexStore.Ticket
    const layer = Mutex.layer({ processName: "us" }).pipe(
      Layer.provide(Layer.effect(
        MutexStore.MutexStore,
        Effect.map(MutexStore.MutexStore, (store) => ({
          ...store,
          acquire: (request, done) => {
            asked.push(request)
            return store.acquire(request, done)
          },
          release: ({ requeue }, done) =>
            done(
              Exit.succeed({
                requeued: requeue &&
                  { ownership, ticket, token: undefined, ...(position !== undefined && { position }) }
              })
            )
        }))
      )),
      Layer.provide(MutexStore.layerMemory),
      Layer.provideMerge(Logger.layer([]))
    )
    const queued = Effect.gen(function*() {
      yield* hold(100)
      yield* start(Mutex.acquire("m", turns))
      yield* TestClock.adjust(wait)
      return asked.filter(({ mode }) => mode === "wait").map(({ ticket }) => ticket)
    })
    return { asked: Effect.scoped(Effect.provide(queued, layer)), ticket }
  }

  it.effect("does not poll if the new owner runs effect-simba", () =>
    Effect.gen(function*() {
      const { asked } = replying({ _tag: "Held", owner: own, timeLeft: Duration.seconds(16) })
      assert.deepStrictEqual(yield* asked, [])
      // The waiter polls less often than it would alongside Simba contenders
      assert.deepStrictEqual(
        yield* replying(
          { _tag: "Held", owner: own, timeLeft: Duration.seconds(16) },
          { position: 1, wait: 10_000 }
        ).asked,
        []
      )
    }))

  it.effect("polls if the reply does not contain a position", () =>
    Effect.gen(function*() {
      const owner = { _tag: "Held", owner: own, timeLeft: Duration.seconds(16) } as const
      const { asked, ticket } = replying(owner, {})
      assert.deepStrictEqual(yield* asked, [ticket])
    }))

  it.effect.each<readonly [string, Ownership]>([
    ["a Simba owner", { _tag: "Held", owner: "1:1@stock", timeLeft: Duration.millis(1500) }],
    ["no owner", { _tag: "Free" }]
  ])("polls with its own ticket if the reply names %s", ([, ownership]) =>
    Effect.gen(function*() {
      const { asked, ticket } = replying(ownership)
      assert.deepStrictEqual(yield* asked, [ticket])
    }))
})

describe("an unreadable reply to a release", () => {
  /** Replies to releases lack most fields of the queued place. */
  const broken = Layer.effect(
    MutexStore.MutexStore,
    Effect.map(MutexStore.MutexStore, (store) =>
      MutexStore.MutexStore.of({
        ...store,
        isReady: () => true,
        release: (request, done) =>
          store.release(
            request,
            (exit) => done(request.requeue === undefined ? exit : Exit.succeed({ requeued: { position: 0 } } as never))
          )
      }))
  )
  const Live = Mutex.layer().pipe(
    Layer.provide(broken),
    Layer.provide(MutexStore.layerMemory),
    Layer.provideMerge(Logger.layer([]))
  )

  it.effect("makes the first waiter fail, and the next one is served", () =>
    Effect.gen(function*() {
      yield* hold(100)
      const first = yield* start(Effect.exit(Mutex.withLock("m", turns)(Effect.void)))
      const second = yield* start(Mutex.withLock("m", turns)(Effect.succeed("served")))
      yield* TestClock.adjust("20 seconds")
      const exit = yield* Fiber.join(first)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause), String(exit))
      assert.strictEqual(yield* Fiber.join(second), "served")
    }).pipe(Effect.scoped, Effect.provide(Live)))
})
