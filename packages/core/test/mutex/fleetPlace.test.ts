/** Waiters in the fleet's queue: when they poll, what wakes them, and what they clean up. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import * as Mutex from "@effect-simba/core/Mutex"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { MutexStore, type WakeUp } from "@effect-simba/core/MutexStore"
import { BackendError } from "@effect-simba/core/SimbaError"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Duration, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import type { AttemptContext } from "../../src/internal/mutex/attempt.ts"
import { FleetPlace, type QueueContext } from "../../src/internal/mutex/fleetPlace.ts"
import type { LocalWaiter } from "../../src/internal/mutex/localWaiter.ts"
import { Backend, GrantingLive, outage, refusal, suspending, turn } from "../support/grantingStore.ts"
import { start } from "../support/setup.ts"

const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

/** Refuses a waiter. The owner's key has ten minutes left. */
const waiting = Effect.gen(function*() {
  const { reply } = yield* Backend
  const fiber = yield* start(Mutex.acquire("m"))
  yield* settle
  yield* reply(Exit.succeed(refusal(undefined)))
  yield* settle
  return fiber
})

const waits = Effect.map(Backend, ({ calls }) => calls.filter((call) => call === "wait").length)

const pollAfter = (delay: Duration.Input): WakeUp => ({ _tag: "PollAfter", delay: Duration.fromInputUnsafe(delay) })

/**
 * A place without a layer. The first `after` calls to `first` return a normal waiter, and later calls use
 * `queue.first`.
 */
const entryOf = Effect.fnUntraced(function*(queue: Partial<QueueContext>, after = 0) {
  const store = yield* MutexStore
  const services = yield* Effect.context<never>()
  let open = 0
  let isClosed = false
  const at = (_monotonic: number, ring: () => void) => {
    if (isClosed) ring()
    let isOpen = !isClosed
    if (isOpen) open++
    return () => {
      if (isOpen) open--
      isOpen = false
    }
  }
  const nothing = () => undefined
  const attempt = { mutex: "m", settings: { lease: Duration.seconds(10), leaseMillis: 10_000 } }
  let asked = 0
  const context: QueueContext = {
    mutex: MutexName.make("m"),
    context: {
      store,
      inbox: yield* store.inbox("aaaaaaaaaaaa", nothing),
      confirmTimeout: Duration.seconds(1),
      lease: Duration.seconds(10),
      now: () => ({ monotonic: 0, wall: 0 }),
      recorder: { update: nothing, modify: nothing, count: nothing, least: nothing, run: nothing },
      timers: { at, pollAt: at, isClosed: () => isClosed },
      tasks: { add: (task: () => void) => task() } as AttemptContext["tasks"],
      fork: Effect.runForkWith(services),
      random: () => 0
    },
    ...{ asked: nothing, crashed: nothing, failed: nothing, outage: nothing },
    ...{ reached: nothing, refused: nothing, won: nothing },
    ...queue,
    first: () => ++asked > after && queue.first !== undefined ? queue.first() : { attempt } as LocalWaiter
  }
  const entry = new FleetPlace(context, "1-aaaaaaaaaaaa:us" as LeaseId)
  return {
    entry,
    open: () => open,
    close: () => {
      isClosed = true
    }
  }
})

describe("a sleeping waiter", () => {
  it.effect("polls after the duration of a lease, even if the owner's lease is longer or a hint asks for a later poll", () =>
    Effect.gen(function*() {
      const { notify } = yield* Backend
      yield* waiting
      notify(pollAfter("1 hour"))
      yield* TestClock.adjust("16 seconds")
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  /** The reply arrives after five seconds, which is 3.5 seconds more than a confirm period. */
  const pollsEarlier = (sleep: () => void) =>
    Effect.gen(function*() {
      const { reply } = yield* Backend
      yield* start(Mutex.acquire("m"))
      yield* settle
      sleep()
      yield* TestClock.adjust("5 seconds")
      yield* reply(Exit.succeed(refusal(undefined)))
      yield* settle
      yield* TestClock.adjust(16_000 - 3500)
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive))

  it.effect("polls earlier after a late reply, because less of the lease is left", () => pollsEarlier(() => {}))

  it.effect("polls earlier after a reply that arrived during a suspension", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* suspending
      const sleeping = pollsEarlier(() => {
        state.millis = 5000
      })
      yield* Effect.provideService(sleeping, Clock.Clock, clock)
    }))

  it.effect("polls only once for a hint, one millisecond after the time in the hint", () =>
    Effect.gen(function*() {
      const { notify } = yield* Backend
      yield* waiting
      notify(pollAfter("100 millis"))
      notify(pollAfter("200 millis"))
      yield* TestClock.adjust(100)
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
      yield* TestClock.adjust(1000)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("sends only one more request for all messages that arrived while a request was in flight", () =>
    Effect.gen(function*() {
      const { reply, notify } = yield* Backend
      yield* start(Mutex.acquire("m"))
      yield* settle
      notify({ _tag: "Gap" })
      notify({ _tag: "YourTurn" })
      notify({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(yield* waits, 1)
      for (let i = 0; i < 2; i++) {
        yield* reply(Exit.succeed(refusal(undefined)))
        yield* settle
        assert.strictEqual(yield* waits, 2)
      }
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("sends a request immediately if its turn comes during the pause after an outage", () =>
    Effect.gen(function*() {
      const { reply, notify } = yield* Backend
      const fiber = yield* waiting
      notify({ _tag: "Gap" })
      yield* settle
      for (let failures = 0; failures < 5; failures++) {
        yield* reply(Exit.fail(outage))
        yield* TestClock.adjust("1200 millis")
      }
      const asked = yield* waits
      yield* reply(Exit.fail(outage))
      notify({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(yield* waits, asked, "a gap does not end its pause, because every reconnection is a gap")
      notify({ _tag: "YourTurn" })
      yield* settle
      assert.strictEqual(yield* waits, asked + 1)
      notify({ _tag: "YourTurn" })
      yield* reply(Exit.fail(outage))
      yield* settle
      assert.strictEqual(yield* waits, asked + 2, "skips the pause if its turn comes during a failing request")
      yield* reply(Exit.fail(outage))
      yield* settle
      assert.strictEqual(yield* waits, asked + 2, "only once")
      yield* TestClock.adjust("1200 millis")
      yield* reply(Exit.succeed({ _tag: "Granted", token: FencingToken.make(8) }))
      assert.strictEqual((yield* Fiber.join(fiber)).token, 8)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* waits, asked + 3)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect(
    "after a gap, ignores grants until a request gets a reply",
    () =>
      Effect.gen(function*() {
        const { reply, confirmations, micros, notify } = yield* Backend
        const fiber = yield* start(Mutex.acquire("m"))
        yield* settle
        const refuse = reply(Exit.succeed(refusal({ token: FencingToken.make(7), micros: micros(0) })))
        const grant = turn({ token: FencingToken.make(8), micros: micros(1) })
        notify({ _tag: "Gap" })
        notify(grant)
        notify(grant)
        yield* refuse
        yield* settle
        assert.isUndefined(fiber.pollUnsafe())
        assert.strictEqual(yield* waits, 2)
        notify(grant)
        notify({ _tag: "Gap" })
        yield* refuse
        assert.strictEqual((yield* Fiber.join(fiber)).token, 8)
        assert.strictEqual(confirmations.length, 1)
      }).pipe(Effect.scoped, Effect.provide(GrantingLive)),
    { tags: ["H5"] }
  )

  it.effect("stops listening when it stops waiting, and ignores late messages", () =>
    Effect.gen(function*() {
      const { listeners } = yield* Backend
      const fiber = yield* waiting
      const [listener] = listeners
      assert.strictEqual(listeners.size, 1)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(listeners.size, 0)
      yield* start(Mutex.acquire("m"))
      yield* settle
      assert.strictEqual(yield* waits, 2)
      listener!({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("subscribes before it sends a request", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore
      const { listeners } = yield* Backend
      const listening: Array<number> = []
      const acquire: typeof store.acquire = (request, done) => {
        listening.push(listeners.size)
        return store.acquire(request, done)
      }
      const context = yield* Layer.build(
        Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeed(MutexStore, { ...store, acquire })))
      )
      yield* Effect.provide(waiting, context)
      assert.deepStrictEqual(listening, [0, 1], "none for the try-acquire, one for the request that queues")
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)), { tags: ["H4"] })

  it.effect("polls at the interval that its inbox requires if gaps cannot be detected", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore
      const inbox: typeof store.inbox = (key, onForced) =>
        Effect.map(store.inbox(key, onForced), (inbox) => ({ ...inbox, bound: Duration.seconds(2) }))
      const context = yield* Layer.build(
        Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeed(MutexStore, { ...store, inbox })))
      )
      yield* Effect.provide(waiting, context)
      yield* TestClock.adjust(1999)
      assert.strictEqual(yield* waits, 1)
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("ends its subscription even if the store replies immediately", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore
      const { listeners } = yield* Backend
      const acquire: typeof store.acquire = (request, done) => {
        if (request.mode === "try") return store.acquire(request, done)
        done(Exit.succeed({ _tag: "Granted", token: FencingToken.make(8) }))
        return () => {}
      }
      const context = yield* Layer.build(
        Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeed(MutexStore, { ...store, acquire })))
      )
      yield* Effect.provide(Mutex.acquire("m"), context)
      assert.strictEqual(listeners.size, 0)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("fails if its request crashes, while the waiters behind it keep waiting", () =>
    Effect.gen(function*() {
      const { reply } = yield* Backend
      const first = yield* start(Mutex.acquire("m"))
      const second = yield* start(Mutex.acquire("m"))
      yield* settle
      yield* reply(Exit.die("bug"))
      assert.deepStrictEqual(yield* Fiber.await(first), Exit.die("bug"))
      yield* settle
      assert.isUndefined(second.pollUnsafe())
      assert.strictEqual(yield* waits, 2)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("fails thousands of waiters one by one if the store refuses each request at once", () =>
    Effect.gen(function*() {
      const store = yield* MutexStore
      const refused = new BackendError({ operation: "acquire", isRetryable: false, cause: new Error("refused") })
      const acquire: typeof store.acquire = (request, done) => {
        if (request.mode === "try") return store.acquire(request, done)
        done(Exit.fail(refused))
        return () => {}
      }
      const context = yield* Layer.build(
        Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeed(MutexStore, { ...store, acquire })))
      )
      yield* Effect.gen(function*() {
        const fibers: Array<Fiber.Fiber<unknown, unknown>> = []
        for (let i = 0; i < 20_000; i++) fibers.push(yield* Effect.forkChild(Mutex.acquire("m")))
        const exits = yield* Effect.forEach(fibers, Fiber.await)
        assert.isTrue(exits.every((exit) => Exit.isFailure(exit) && Cause.squash(exit.cause) === refused))
      }).pipe(Effect.provide(context))
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("leaves no timers behind, regardless of what wakes it", () =>
    Effect.gen(function*() {
      const { reply, notify } = yield* Backend
      const { entry, open } = yield* entryOf({})
      const refuse = Effect.andThen(reply(Exit.succeed(refusal(undefined))), settle)
      entry.contend()
      assert.strictEqual(open(), 1, "the request's time limit")
      yield* refuse
      assert.strictEqual(open(), 1, "the sleep")
      notify(pollAfter("1 second"))
      assert.strictEqual(open(), 1)
      notify({ _tag: "Gap" })
      yield* settle
      assert.strictEqual(open(), 1)
      yield* refuse
      entry.end()
      assert.strictEqual(open(), 0)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("leaves no timers behind when its turn ends a pause", () =>
    Effect.gen(function*() {
      const { reply, notify } = yield* Backend
      const { entry, open } = yield* entryOf({})
      entry.contend()
      yield* reply(Exit.fail(outage))
      yield* settle
      assert.strictEqual(open(), 1, "the pause")
      notify({ _tag: "YourTurn" })
      yield* settle
      assert.strictEqual(yield* waits, 2)
      assert.strictEqual(open(), 1, "the request's time limit")
      yield* reply(Exit.succeed(refusal(undefined)))
      yield* settle
      // The place checks the turn against this reply, then sends another request
      yield* reply(Exit.succeed(refusal(undefined)))
      yield* settle
      entry.end()
      assert.strictEqual(open(), 0)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("pauses after a failed request, even if its turn came before the request", () =>
    Effect.gen(function*() {
      const { reply, notify } = yield* Backend
      yield* start(Mutex.acquire("m"))
      yield* settle
      notify({ _tag: "YourTurn" })
      yield* reply(Exit.succeed(refusal(undefined)))
      yield* settle
      assert.strictEqual(yield* waits, 2, "the turn is confirmed")
      yield* reply(Exit.fail(outage))
      yield* TestClock.adjust(39)
      assert.strictEqual(yield* waits, 2)
      yield* TestClock.adjust(22)
      assert.strictEqual(yield* waits, 3)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("polls immediately after a suspension if the lease in the reply has ended by then", () =>
    Effect.gen(function*() {
      const { clock, state } = yield* suspending
      yield* Effect.gen(function*() {
        const { reply } = yield* Backend
        yield* start(Mutex.acquire("m"))
        yield* settle
        state.millis = 30_000
        yield* TestClock.adjust("30 seconds")
        yield* reply(Exit.succeed(refusal(undefined)))
        yield* settle
        assert.strictEqual(yield* waits, 2)
      }).pipe(Effect.scoped, Effect.provide(GrantingLive), Effect.provideService(Clock.Clock, clock))
    }))

  it.effect("sleeps without a timer if its layer's timers are closed", () =>
    Effect.gen(function*() {
      const { reply } = yield* Backend
      const { close, entry } = yield* entryOf({})
      entry.contend()
      close()
      yield* reply(Exit.succeed(refusal(undefined)))
      yield* settle
      assert.strictEqual(yield* waits, 1)
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))

  it.effect("ends with a defect if it crashes, without affecting the sender of the notification", () =>
    Effect.gen(function*() {
      const { reply, micros, notify } = yield* Backend
      const crashes: Array<unknown> = []
      const { entry } = yield* entryOf({
        first: () => {
          throw new Error("bug")
        },
        crashed: (_entry, cause) => void crashes.push(Cause.squash(cause))
      }, 2)
      entry.contend()
      yield* reply(Exit.succeed(refusal({ token: FencingToken.make(7), micros: micros(0) })))
      yield* settle
      notify(turn({ token: FencingToken.make(8), micros: micros(1) }))
      assert.deepStrictEqual(crashes.map(String), ["Error: bug"])
    }).pipe(Effect.scoped, Effect.provide(GrantingLive)))
})
