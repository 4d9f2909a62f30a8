/** When and for how long a waiter may rely on a grant in a message, and what the confirmation changes. */
import * as FencingToken from "@effect-simba/core/FencingToken"
import * as Mutex from "@effect-simba/core/Mutex"
import * as MutexMetrics from "@effect-simba/core/MutexMetrics"
import type { Grant, Stamp, Ticket, WakeUp } from "@effect-simba/core/MutexStore"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Exit, Fiber, Latch, Layer, Metric, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { Backend, granting, GrantingLive, outage, refusal, suspending, turn } from "../support/grantingStore.ts"
import { start, timeLeft } from "../support/setup.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

const token = (value: number) => FencingToken.FencingToken.make(value)

const last = 400
const next = token(500)

const long = { localTurn: "1 minute" } as const

/** A waiter whose request reaches the backend after 200 ms and is refused after another 100 ms. */
const queued = Effect.fnUntraced(
  function*<A, E, R>(waiter: Effect.Effect<A, E, R>, stamp?: (micros: number) => Stamp | undefined) {
    const { reply, micros } = yield* Backend
    const fiber = yield* start(waiter)
    yield* settle
    yield* TestClock.adjust(300)
    yield* reply(
      Exit.succeed(refusal(stamp === undefined ? { micros: micros(200), token: last } : stamp(micros(200))))
    )
    yield* settle
    return fiber
  }
)

/** A grant by the backend, `millis` milliseconds after it executed the request. */
const grantAfter = (millis: number, more: Partial<Grant> = {}) =>
  Effect.map(Backend, ({ micros }) => ({ token: next, micros: micros(200 + millis), ...more }))

const notifyAfter = Effect.fnUntraced(function*(millis: number, message: WakeUp) {
  const { notify } = yield* Backend
  yield* TestClock.adjust(millis)
  notify(message)
  yield* settle
})

const isWaiting = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.map(Backend, ({ calls, confirmations }) => {
    assert.isUndefined(fiber.pollUnsafe())
    assert.deepStrictEqual(confirmations, [])
    assert.deepStrictEqual(calls, ["try", "wait", "wait"], "treats the message only as a hint")
  })

describe("a grant by message", () => {
  it.effect("lasts for its period less the margin, measured from when the last request was sent", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(1000, turn(yield* grantAfter(1000)))
      const lease = yield* Fiber.join(waiter)
      assert.strictEqual(lease.token, next)
      // Granted at least 1,000 ms after the request was sent, so at most 300 ms ago. The margin is 5% of 2.5 s.
      assert.strictEqual(yield* timeLeft(lease), 1500 - 300 - 125)
      yield* lease.ensure
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("counts as a hand-off, unlike a request that finds the mutex free", () =>
    Effect.gen(function*() {
      const { reply } = yield* Backend
      const handOffs = Effect.map(Metric.value(MutexMetrics.mutex.handOffs), ({ count }) => count)
      const polling = yield* queued(Mutex.acquire("n"))
      yield* TestClock.adjust("17 seconds")
      yield* reply(Exit.succeed({ _tag: "Granted", token: next }))
      yield* Fiber.join(polling)
      assert.strictEqual(yield* handOffs, 0)
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(1000, turn(yield* grantAfter(1000)))
      yield* Fiber.join(waiter)
      assert.strictEqual(yield* handOffs, 1)
    }).pipe(
      Effect.scoped,
      Effect.provide(GrantingLive),
      Effect.provideService(Metric.MetricRegistry, new Map())
    ))

  it.effect("has a margin of at least a tenth of a second", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(10, turn(yield* grantAfter(10)))
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiter)), 1500 - 300 - 100)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("has a margin that grows with the waiting time, because clocks may run at different rates", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(7000, turn(yield* grantAfter(7300)))
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiter)), 1500 - 440)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("starts no later than its message arrives", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      // The backend's clock was set forward
      yield* notifyAfter(1000, turn(yield* grantAfter(2500)))
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiter)), 1500 - 200)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("is only a hint if less than half its period is left", () =>
    Effect.gen(function*() {
      const [young, old] = [yield* Effect.exit(at(425)), yield* Effect.exit(at(426))]
      assert.deepStrictEqual([Exit.isSuccess(young), Exit.isSuccess(old)], [true, false])
    }))

  /** Asserts that the waiter relies on a grant even if the message takes this long. */
  const at = (millis: number) =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(millis - 75, turn(yield* grantAfter(0)))
      assert.isDefined(waiter.pollUnsafe())
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(GrantingLive)))

  it.effect("is only a hint if its token is no larger than the one in the last reply, regardless of the backend's clock", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(10, turn(yield* grantAfter(10, { token: token(last) })))
      yield* isWaiting(waiter)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("is only a hint if the backend's clock was set back", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(10, turn(yield* grantAfter(-1)))
      yield* isWaiting(waiter)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("is only a hint if the last reply contained no time", () =>
    Effect.gen(function*() {
      const waiter = yield* queued(Mutex.acquire("m"), () => undefined)
      yield* notifyAfter(10, turn(yield* grantAfter(10)))
      yield* isWaiting(waiter)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("is only a hint if the machine has been suspended", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* suspending
      yield* Effect.gen(function*() {
        const waiter = yield* queued(Mutex.acquire("m"))
        state.millis = 5000
        yield* notifyAfter(5000, turn(yield* grantAfter(10)))
        yield* isWaiting(waiter)
      }).pipe(Effect.scoped, Effect.provide(GrantingLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("is only a hint if the local wall clock was set back, because this can hide a suspension", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* suspending
      let step = 0
      const stepping = { ...clock, currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + step }
      yield* Effect.gen(function*() {
        const waiter = yield* queued(Mutex.acquire("m"))
        step = -3000
        state.millis = 2000
        yield* notifyAfter(2000, turn(yield* grantAfter(10)))
        yield* isWaiting(waiter)
      }).pipe(Effect.scoped, Effect.provide(GrantingLive), Effect.provideService(Clock.Clock, stepping))
    }))

  it.effect("is compared with the reply that follows a gap if it arrives after the gap", () =>
    Effect.gen(function*() {
      const { reply, micros, notify } = yield* Backend
      const waiter = yield* queued(Mutex.acquire("m"))
      notify({ _tag: "Gap" })
      yield* notifyAfter(10, turn(yield* grantAfter(10)))
      yield* isWaiting(waiter)
      // The grant has ended, because this refusal has a later time
      yield* reply(Exit.succeed(refusal({ micros: micros(20), token: next })))
      yield* settle
      const { confirmations } = yield* Backend
      assert.isUndefined(waiter.pollUnsafe())
      assert.deepStrictEqual(confirmations, [])
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("waits for the reply if it arrives first", () =>
    Effect.gen(function*() {
      const { reply, micros, notify } = yield* Backend
      const waiter = yield* start(Mutex.acquire("m"))
      yield* settle
      notify(turn(yield* grantAfter(10)))
      yield* TestClock.adjust(300)
      assert.isUndefined(waiter.pollUnsafe())
      yield* reply(Exit.succeed(refusal({ micros: micros(200), token: last })))
      yield* settle
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(waiter)), 1500 - 290 - 100)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))
})

describe("the confirmation of a grant by message", () => {
  const granted = Effect.fnUntraced(function*<A, E, R>(waiter: Effect.Effect<A, E, R>) {
    const fiber = yield* queued(waiter)
    yield* notifyAfter(100, turn(yield* grantAfter(100)))
    const { confirmations } = yield* Backend
    assert.strictEqual(confirmations.length, 1)
    return { fiber, ...confirmations[0]! }
  })

  it.effect("is sent with the grant's token before the work begins", () =>
    Effect.gen(function*() {
      const { calls } = yield* Backend
      const { fiber, request } = yield* granted(Mutex.withLock("m")(() => Effect.sync(() => void calls.push("work"))))
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(calls, ["try", "wait", "confirm", "work", "release"])
      assert.strictEqual(request.token, next)
    }).pipe(Effect.provide(GrantingLive)))

  it.effect("extends the lease from when it was sent", () =>
    Effect.gen(function*() {
      const { done, fiber } = yield* granted(Mutex.acquire("m"))
      const lease = yield* Fiber.join(fiber)
      yield* TestClock.adjust(50)
      done(Exit.succeed({ _tag: "Granted", token: next }))
      assert.strictEqual(yield* timeLeft(lease), 16_000 * 0.95 - 50)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("ends the lease and interrupts the work if it is refused", () =>
    Effect.gen(function*() {
      const { done, fiber } = yield* granted(Mutex.withLock("m")(Effect.never))
      done(Exit.succeed(refusal(undefined)))
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.deepInclude(error, { _tag: "LeaseLost", reason: { _tag: "TakenOver", owner: "them" } })
    }).pipe(Effect.provide(GrantingLive)))

  it.effect("is followed by a renewal if it fails", () =>
    Effect.gen(function*() {
      const { calls } = yield* Backend
      const { done, fiber } = yield* granted(Mutex.acquire("m"))
      done(Exit.fail(outage))
      yield* settle
      assert.deepStrictEqual(calls.slice(-2), ["confirm", "renew"])
      assert.strictEqual(yield* timeLeft(yield* Fiber.join(fiber)), 16_000 * 0.95)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("is followed by a renewal if the store throws", () =>
    Effect.gen(function*() {
      const { calls, confirmations } = yield* Backend
      confirmations.push = () => {
        throw new Error("a bug")
      }
      const waiter = yield* queued(Mutex.acquire("m"))
      yield* notifyAfter(100, turn(yield* grantAfter(100)))
      assert.deepStrictEqual(calls.slice(-2), ["confirm", "renew"])
      assert.strictEqual((yield* Fiber.join(waiter)).token, next)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(GrantingLive))))

  const guards = {
    "the default guard": GrantingLive,
    "a user's guard": granting({ guard: Schedule.spaced("10 seconds") })
  }

  it.effect.each(Object.entries(guards))(
    "is followed by a renewal before the grant ends if it gets no reply (%s)",
    ([, live]) =>
      Effect.gen(function*() {
        const { calls } = yield* Backend
        const { done, fiber } = yield* granted(Mutex.acquire("m"))
        const lease = yield* Fiber.join(fiber)
        yield* TestClock.adjust(1000)
        assert.deepStrictEqual(calls.slice(-2), ["confirm", "renew"])
        const left = yield* timeLeft(lease)
        done(Exit.succeed({ _tag: "Granted", token: next }))
        assert.strictEqual(yield* timeLeft(lease), left, "does not shorten the lease if its reply is late")
      }).pipe(Effect.scoped, Effect.provide(live))
  )

  it.effect("has no effect on a lease that has ended", () =>
    Effect.gen(function*() {
      const { done, fiber } = yield* granted(Mutex.withLock("m")(Effect.void))
      yield* Fiber.join(fiber)
      done(Exit.succeed(refusal(undefined)))
      // These would renew the lease, and renewals throw
      done(Exit.succeed({ _tag: "Granted", token: next }))
      done(Exit.fail(outage))
    }).pipe(Effect.provide(GrantingLive)))

  it.effect("is not sent if the waiter has left, and the waiter's place is released", () =>
    Effect.gen(function*() {
      const { calls, confirmations } = yield* Backend
      const fiber = yield* queued(Mutex.acquire("m"))
      yield* Fiber.interrupt(fiber)
      yield* notifyAfter(10, turn(yield* grantAfter(10)))
      assert.deepStrictEqual([calls, confirmations], [["try", "wait", "release"], []])
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("must get a reply before the lease is handed on", () =>
    Effect.gen(function*() {
      const { releases } = yield* Backend
      const release = Latch.makeUnsafe(false)
      const { fiber } = yield* granted(Mutex.withLock("m", long)(release.await))
      const behind = yield* start(Mutex.withLock("m", long)(Effect.void))
      yield* release.open
      yield* Fiber.join(fiber)
      yield* settle
      assert.isUndefined(behind.pollUnsafe())
      assert.deepStrictEqual(releases.map(({ requeue }) => requeue !== undefined), [true])
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("allows the lease to be handed on to the next fiber once it has got a reply", () =>
    Effect.gen(function*() {
      const { releases } = yield* Backend
      const release = Latch.makeUnsafe(false)
      const { done, fiber } = yield* granted(Mutex.withLock("m", long)(release.await))
      const behind = yield* start(Mutex.withLock("m", long)((lease) => Effect.succeed(lease.token)))
      done(Exit.succeed({ _tag: "Granted", token: next }))
      yield* release.open
      yield* Fiber.join(fiber)
      assert.strictEqual(yield* Fiber.join(behind), next + 1)
      assert.strictEqual(releases.length, 1)
    }).pipe(Effect.provide(GrantingLive)))
})

describe("a grant by message for a whole lease", () => {
  const whole = 16_000
  const fresh = Effect.fnUntraced(function*<A, E, R>(waiter: Effect.Effect<A, E, R>, millis = whole) {
    const fiber = yield* queued(waiter)
    yield* notifyAfter(100, turn(yield* grantAfter(100), millis))
    return fiber
  })

  it.effect("is not confirmed, so the only requests are to queue and to release", () =>
    Effect.gen(function*() {
      const { calls } = yield* Backend
      yield* Fiber.join(yield* fresh(Mutex.withLock("m")(Effect.sync(() => void calls.push("work")))))
      assert.deepStrictEqual(calls, ["try", "wait", "work", "release"])
    }).pipe(Effect.provide(GrantingLive)))

  it.effect("is timed like any other grant by message, and renewed like any other lease", () =>
    Effect.gen(function*() {
      const { calls } = yield* Backend
      const lease = yield* Fiber.join(yield* fresh(Mutex.acquire("m")))
      // Granted at least 100 ms after the request was sent, so at most 300 ms ago. The margin is 5% of 16.1 s.
      assert.strictEqual(yield* timeLeft(lease), whole - 300 - 805)
      yield* TestClock.adjust(9699)
      assert.notInclude(calls, "renew")
      yield* TestClock.adjust(1)
      assert.include(calls, "renew")
      assert.strictEqual(yield* timeLeft(lease), whole * 0.95)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect.each([[1500, "shorter"], [20_000, "longer"]] as const)(
    "is confirmed immediately if it lasts %s ms, which is %s than the waiter's lease",
    ([millis]) =>
      Effect.gen(function*() {
        const { calls } = yield* Backend
        const lease = yield* Fiber.join(yield* fresh(Mutex.acquire("m"), millis))
        assert.strictEqual(calls.at(-1), "confirm")
        assert.isAtMost(yield* timeLeft(lease), Math.min(millis, whole) - 300)
      }).pipe(Effect.scoped, Effect.provide(GrantingLive))
  )

  it.effect("needs no request if a release has queued the waiter", () =>
    Effect.gen(function*() {
      const { calls, micros, requeue } = yield* Backend
      const release = Latch.makeUnsafe(false)
      const strict = { localTurn: 0 }
      const fiber = yield* fresh(Mutex.withLock("m", strict)(release.await))
      const behind = yield* start(Mutex.withLock("m", strict)((lease) => Effect.succeed(lease.token)))
      requeue({
        ownership: { _tag: "Held", owner: "1-bbbbbbbbbbbb:them", timeLeft: Duration.seconds(16) },
        ticket: "1700000000.400001" as Ticket,
        position: 0,
        token: undefined,
        stamp: { micros: micros(400), token: token(600) }
      })
      yield* release.open
      yield* Fiber.join(fiber)
      yield* notifyAfter(100, turn({ token: token(700), micros: micros(500) }, whole))
      assert.deepStrictEqual(calls, ["try", "wait", "release", "release"])
      assert.strictEqual(yield* Fiber.join(behind), 700)
    }).pipe(Effect.provide(GrantingLive)))

  it.effect("may be handed on to the next fiber in the process, with its token's stride", () =>
    Effect.gen(function*() {
      const { releases } = yield* Backend
      const release = Latch.makeUnsafe(false)
      const fiber = yield* fresh(Mutex.withLock("m", long)(release.await))
      const behind = yield* start(
        Mutex.withLock("m", long)((lease) => Effect.all([timeLeft(lease), Effect.succeed(lease)]))
      )
      yield* TestClock.adjust(1000)
      yield* release.open
      yield* Fiber.join(fiber)
      const [left, lease] = yield* Fiber.join(behind)
      assert.deepStrictEqual([left, lease.token], [whole - 300 - 805 - 1000, next + 1])
      assert.strictEqual(releases.length, 1)
    }).pipe(Effect.provide(GrantingLive)))
})
