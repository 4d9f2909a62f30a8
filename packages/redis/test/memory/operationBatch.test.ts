/** Requests from one event-loop turn share a call to the server. */
import { FencingToken } from "@effect-simba/core/FencingToken"
import * as Mutex from "@effect-simba/core/Mutex"
import { type LeaseId, MutexName } from "@effect-simba/core/MutexName"
import { acquire, guard, MutexStore, release, wakeUps } from "@effect-simba/core/MutexStore"
import { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import { RedisMutex } from "@effect-simba/redis"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Duration, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { uncaught } from "../../../core/test/support/uncaught.ts"
import * as direct from "../../src/internal/client/commandSink.ts"
import * as RedisKeys from "../../src/internal/mutex/keys.ts"
import { coalescing } from "../support/commandSink.ts"
import { contender, exitsOf, freshName, granted, requestOf } from "../support/harness.ts"

/** A store on a command sink that coalesces commands like ioredis. `state.reply` may reply in place of the server. */
const openDirect = Effect.gen(function*() {
  const client = yield* Layer.build(FakeRedis.layerClient({ name: "direct" }))
  const redis = Context.get(client, Redis)
  const over = yield* coalescing(redis)
  const state: {
    isReady: boolean
    reply:
      | ((command: string) => {
        readonly before: boolean
        readonly failure: direct.Failure | undefined
        readonly value?: unknown
      } | undefined)
      | undefined
  } = { isReady: true, reply: undefined }
  const own: direct.CommandSink["Service"] = {
    afterCurrentTask: over.afterCurrentTask,
    isReady: () => state.isReady,
    send: (command, args, done) => {
      const reply = state.reply?.(command)
      if (reply === undefined) return over.send(command, args, done)
      if (!reply.before) return over.send(command, args, () => done(reply.failure, undefined))
      over.afterCurrentTask(() => done(reply.failure, reply.value))
      return undefined
    }
  }
  const context = yield* Layer.build(
    Layer.fresh(RedisMutex.layerStore).pipe(
      Layer.provide(Layer.succeedContext(Context.add(client, direct.CommandSink, own)))
    )
  )
  const store = Context.get(context, MutexStore)
  const openMutex = Effect.map(
    Layer.build(Layer.fresh(Mutex.layer()).pipe(Layer.provide(Layer.succeedContext(context)))),
    Context.get(Mutex.Mutex)
  )
  return { openMutex, state, store }
})

const calls = Effect.map(
  Effect.flatMap(FakeRedis.FakeRedis, ({ trace }) => trace),
  (commands) => commands.filter(({ args }) => args[0] === "EVALSHA" || args[0] === "EVAL").map(({ args }) => args)
)

type Held = ReturnType<typeof requestOf>

const FakeLive = Layer.merge(FakeRedis.layer(), Logger.layer([]))

describe("requests from one event-loop turn", () => {
  it.effect("an interrupted caller does not affect other callers in the batch", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const requests = Array.from({ length: 3 }, () => requestOf("interrupted"))
      const fibers = yield* Effect.forEach(
        requests,
        (request) => Effect.forkChild(acquire(store, request), { startImmediately: true })
      )
      yield* Fiber.interrupt(fibers[1]!)
      granted(yield* Fiber.join(fibers[0]!))
      granted(yield* Fiber.join(fibers[2]!))
      assert.strictEqual((yield* calls).length, 1)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a fiber observer that throws does not affect other callers in the batch", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const thrown = yield* uncaught
      const fibers = yield* Effect.forEach(
        Array.from({ length: 3 }, () => requestOf("observed")),
        (request) => Effect.forkChild(acquire(store, request), { startImmediately: true })
      )
      fibers[0]!.addObserver(() => {
        throw new Error("an observer")
      })
      granted(yield* Fiber.join(fibers[1]!))
      granted(yield* Fiber.join(fibers[2]!))
      yield* Effect.promise(() => new Promise(setImmediate))
      assert.deepStrictEqual(thrown.map(String), ["Error: an observer"])
      assert.strictEqual((yield* calls).length, 1)
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect("a confirmation is sent immediately, together with the operations that are waiting to be batched", () =>
    Effect.gen(function*() {
      const { state, store } = yield* openDirect
      const { id, lease, mutex } = requestOf("confirmed")
      const waiting = yield* Effect.forkChild(acquire(store, requestOf("waiting")), { startImmediately: true })
      let sent = 0
      state.reply = () => void sent++
      const confirmed = yield* Effect.callback<Exit.Exit<unknown, unknown>>((resume) => {
        store.confirm({ mutex, id, lease, token: FencingToken.make(1) }, (exit) => resume(Effect.succeed(exit)))
        assert.strictEqual(sent, 1)
      })
      assert.isTrue(Exit.isSuccess(confirmed))
      granted(yield* Fiber.join(waiting))
      assert.strictEqual((yield* calls).length, 1)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a release by an owner that had to wait is sent immediately", () =>
    Effect.gen(function*() {
      const { state, store } = yield* openDirect
      const { confirm, id, lease, mutex } = requestOf("waited")
      granted(yield* acquire(store, { mutex, id, lease, confirm, mode: "try" }))
      const waiter = contender(store, mutex)
      yield* wakeUps(store, mutex, waiter.id)
      yield* waiter.wait
      let sent = 0
      state.reply = () => void sent++
      const releasing = (id: LeaseId, sentAtOnce: number) =>
        Effect.callback<unknown>((resume) => {
          store.release({ mutex, id, lease, confirm }, (exit) => resume(Effect.succeed(exit)))
          assert.strictEqual(sent, sentAtOnce)
        })
      yield* releasing(id, 0)
      sent = 0
      yield* releasing(waiter.id, 1)
      assert.deepStrictEqual(yield* store.owner(mutex), { _tag: "Free" })
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect("each acquire in a batch has its own lease duration", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const wanted = [16_000, 30_000, 7000].map((millis) => ({ ...requestOf("terms"), lease: Duration.millis(millis) }))
      yield* Effect.forEach(wanted, (request) => acquire(store, request), { concurrency: "unbounded" })
      assert.strictEqual((yield* calls).length, 1)
      const left = yield* Effect.forEach(wanted, ({ mutex }) => store.owner(mutex))
      assert.deepStrictEqual(
        left,
        wanted.map(({ id, lease }) => ({ _tag: "Held", owner: id, timeLeft: lease }) as const)
      )
    }).pipe(Effect.provide(FakeLive)))

  it.effect("each release in a batch has its own confirm period", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const pairs = [1500, 700, 2500].map((confirm) => [requestOf(`${confirm}`), Duration.millis(confirm)] as const)
      for (const [request] of pairs) {
        yield* acquire(store, request)
        const waiter = contender(store, request.mutex)
        yield* wakeUps(store, request.mutex, waiter.id)
        yield* waiter.wait
      }
      // No waiter is fresh after more than a confirm period
      yield* TestClock.adjust("3 seconds")
      yield* Effect.forEach(
        pairs,
        ([{ id, mutex }, confirm]) => release(store, { mutex, id, confirm, lease: Duration.seconds(16) }),
        {
          concurrency: "unbounded"
        }
      )
      const left = yield* Effect.forEach(pairs, ([{ mutex }]) => store.owner(mutex))
      assert.deepStrictEqual(
        left.map((ownership) => ownership._tag === "Held" && ownership.timeLeft),
        pairs.map(([, confirm]) => confirm)
      )
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect("each request in a batch reaches its own mutex, even if one name is a prefix of the next", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const { mutex } = requestOf("name")
      const names = ["", " and", " and more", ""].map((end) => MutexName.make(`${mutex}${end}`))
      const results = yield* Effect.forEach(
        names,
        (mutex) => acquire(store, { ...requestOf("other"), mutex }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(results.map(({ _tag }) => _tag), ["Granted", "Granted", "Granted", "Refused"])
      assert.strictEqual((yield* calls).length, 1)
    }).pipe(Effect.provide(FakeLive)))

  it.effect.each<readonly [string, (store: MutexStore["Service"], held: Held) => Effect.Effect<unknown, unknown>]>([
    ["a renewal", (store, held) => guard(store, [held])],
    ["asking for the owner", (store, { mutex }) => store.owner(mutex)],
    ["a forced release", (store, { confirm, mutex }) => store.forceRelease(mutex, confirm)]
  ])("%s is sent after the batch from the same turn", ([, ask]) =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const [held, other] = [requestOf("held"), requestOf("other")]
      yield* acquire(store, held)
      const before = (yield* calls).length
      yield* Effect.all([acquire(store, other), ask(store, held)], { concurrency: "unbounded", discard: true })
      const [first, second] = (yield* calls).slice(before)
      assert.include(first!, RedisKeys.owner(other.mutex))
      assert.include(second!, RedisKeys.owner(held.mutex))
    }).pipe(Effect.provide(FakeLive)))

  it.effect("inspections share a call with other requests", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const request = requestOf("inspected")
      const mutexes = [request.mutex, ...Array.from({ length: 19 }, (_, n) => requestOf(`idle ${n}`).mutex)]
      const inspecting = Effect.forEach(mutexes, (mutex) => store.inspect(mutex, 0), { concurrency: "unbounded" })
      const [acquired, found] = yield* Effect.all([acquire(store, request), inspecting], { concurrency: "unbounded" })
      const { token } = granted(acquired)
      assert.strictEqual(found[0]!.token, token)
      assert.deepStrictEqual(
        found.slice(1).map(({ ownership }) => ownership._tag),
        Array.from({ length: 19 }, () => "Free")
      )
      assert.strictEqual((yield* calls).length, 1)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("if a command cannot be written, all operations in its call fail but the next call works", () =>
    Effect.gen(function*() {
      const { state, store } = yield* openDirect
      state.reply = () => {
        throw new RangeError("Invalid string length")
      }
      for (const exit of yield* exitsOf([acquire(store, requestOf("one")), acquire(store, requestOf("two"))])) {
        assert.isTrue(Exit.isFailure(exit) && String(exit.cause).includes("Invalid string length"))
      }
      state.reply = undefined
      granted(yield* acquire(store, requestOf("three")))
    }).pipe(Effect.provide(FakeLive)))

  it.effect.each([null, "1", ["1"], ["1", "2", "3"], {}].map((value) => ({ value })))(
    "if the reply is not a list with a reply to each, all operations in the call fail: $value",
    ({ value }) =>
      Effect.gen(function*() {
        const { state, store } = yield* openDirect
        state.reply = () => ({ before: true, failure: undefined, value })
        for (const exit of yield* exitsOf([acquire(store, requestOf("one")), acquire(store, requestOf("two"))])) {
          const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
          assert.instanceOf(error, ProtocolError)
          assert.strictEqual(error.read, typeof value === "string" ? value : JSON.stringify(value))
        }
      }).pipe(Effect.provide(FakeLive))
  )

  it.effect("if the server has forgotten the script, the text is sent without the interrupted requests", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const { state, store } = yield* openDirect
      const kept = requestOf("kept")
      const abandoned = requestOf("abandoned")
      yield* server.flushScripts
      // NOSCRIPT arrives after the caller has been interrupted
      state.reply = (command) =>
        command === "EVALSHA"
          ? { before: true, failure: { cause: new Error("NOSCRIPT No matching script. Please use EVAL.") } }
          : undefined
      const keeping = yield* Effect.forkChild(acquire(store, kept), { startImmediately: true })
      const leaving = yield* Effect.forkChild(acquire(store, abandoned), { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      granted(yield* Fiber.join(keeping))
      const [args] = yield* calls
      assert.strictEqual(args![0], "EVAL")
      assert.include(args!, RedisKeys.owner(kept.mutex))
      assert.notInclude(args!, RedisKeys.owner(abandoned.mutex))
      assert.deepStrictEqual(yield* store.owner(abandoned.mutex), { _tag: "Free" })
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a release is repeated if its connection breaks, without affecting a later owner", () =>
    Effect.gen(function*() {
      const { openMutex, state, store } = yield* openDirect
      const mutex = yield* openMutex
      const m = freshName("broken")
      const closed = { before: false, failure: { cause: new Error("Connection is closed.") } }
      yield* mutex.acquire(m).pipe(
        Effect.tap(() => Effect.sync(() => void (state.reply = () => closed))),
        Effect.scoped
      )
      // The server has executed the release, and another contender acquires the mutex before the repetition.
      yield* TestClock.adjust("10 millis")
      assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
      state.reply = undefined
      const next = contender(store, m)
      yield* next.own
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* next.guard, { _tag: "Renewed" })
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a release is repeated until it reaches the server", () =>
    Effect.gen(function*() {
      const { openMutex, state, store } = yield* openDirect
      const mutex = yield* openMutex
      const m = freshName("lost")
      const lost = { before: true, failure: { cause: new Error("Connection is closed.") } }
      yield* mutex.acquire(m).pipe(
        Effect.tap(() => Effect.sync(() => void (state.reply = () => lost))),
        Effect.scoped
      )
      yield* TestClock.adjust("10 millis")
      assert.strictEqual((yield* store.owner(m))._tag, "Held")
      state.reply = undefined
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a release is awaited only if the connection is not ready", () =>
    Effect.gen(function*() {
      const { openMutex, state } = yield* openDirect
      const mutex = yield* openMutex
      state.isReady = false
      const m = freshName("waited for")
      yield* Effect.scoped(mutex.acquire(m))
      const server = yield* FakeRedis.FakeRedis
      assert.isUndefined(yield* server.dump(RedisKeys.owner(m)))
      state.isReady = true
      const other = freshName("not awaited")
      yield* Effect.scoped(mutex.acquire(other))
      assert.isDefined(yield* server.dump(RedisKeys.owner(other)))
    }).pipe(Effect.provide(FakeLive)))

  it.effect("READONLY fails the whole call, which makes the client disconnect from the replica", () =>
    Effect.gen(function*() {
      const { store } = yield* openDirect
      const server = yield* FakeRedis.FakeRedis
      yield* server.setErrorState("READONLY")
      const exits = yield* exitsOf(
        [requestOf("replica"), requestOf("replica")].map((request) => acquire(store, request))
      )
      for (const exit of exits) {
        const error = yield* Effect.flip(exit)
        assert.instanceOf(error, BackendError)
        assert.isTrue(error.isRetryable)
      }
      yield* server.setErrorState(undefined)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("a reply with too few items fails all requests in the call", () =>
    Effect.gen(function*() {
      const context = Context.make(Redis, {
        ...Context.get(yield* Layer.build(FakeRedis.layerClient()), Redis),
        send: (command) => Effect.succeed((command === "SCRIPT" ? "sha" : ["1"]) as never)
      })
      const over = yield* coalescing(Context.get(context, Redis))
      const client = yield* Layer.build(FakeRedis.layerClient())
      const store = Context.get(
        yield* Layer.build(
          Layer.fresh(RedisMutex.layerStore).pipe(
            Layer.provide(Layer.succeedContext(Context.add(client, direct.CommandSink, over)))
          )
        ),
        MutexStore
      )
      const exits = yield* exitsOf([requestOf("length"), requestOf("length")].map((request) => acquire(store, request)))
      for (const exit of exits) assert.instanceOf(yield* Effect.flip(exit), ProtocolError)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("closing the layer interrupts a command that is still waiting for its reply", () =>
    Effect.gen(function*() {
      let ended = 0
      const never = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void ended++))
      yield* Effect.scoped(Effect.gen(function*() {
        const silent = Context.make(Redis, {
          ...Context.get(yield* Layer.build(FakeRedis.layerClient()), Redis),
          send: () => never
        })
        const over = yield* direct.overRedis(Context.get(silent, Redis))
        over.send("GET", ["a"], () => {})
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(ended, 0)
      }))
      assert.strictEqual(ended, 1)
    }).pipe(Effect.provide(FakeLive)))
})
