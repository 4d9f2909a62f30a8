/** Servers that are silent, reply with errors or lose data in a failover. */
import * as Mutex from "@effect-simba/core/Mutex"
import { MutexStore } from "@effect-simba/core/MutexStore"
import { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import { StreamClient } from "@effect-simba/core/streams"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { FakeRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { Redis, RedisError } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { inspect } from "node:util"
import { backendError } from "../../src/internal/client/errors.ts"
import { FakeLive, openFake, start } from "../support/fakeProcess.ts"
import { contender, freshName } from "../support/harness.ts"

/** An error reply with the name set by ioredis. */
class ReplyError extends Error {
  override readonly name = "ReplyError"
}

describe("with a provider without timeouts and a server that never replies", () => {
  const streams = StreamClient.layer({ service: "svc" }).pipe(Layer.provide(RedisStreams.layerStore))

  it.effect.each(
    [
      ["mutexes", "PUBSUB", RedisMutex.layerStore],
      ["mutexes", "SCRIPT", RedisMutex.layerStore],
      ["mutexes", "a subscription", RedisMutex.layerStore],
      ["mutexes", "the inbox", RedisMutex.layerRedis()],
      ["data streams", "PING", streams],
      ["data streams", "CONFIG", streams]
    ] as const
  )("the layer for %s fails after 30 seconds (%s)", ([, silent, layer]) =>
    Effect.gen(function*() {
      const context = yield* Layer.build(FakeRedis.layerClient({ name: "a" }))
      const redis = Context.get(context, Redis)
      // Without a Subscriber, subscriptions go through Redis.subscribe
      const others = silent === "a subscription" ? Context.empty() : Context.add(context, Subscriber, {
        ...Context.get(context, Subscriber),
        listen: (channel, listener) =>
          silent === "the inbox" && channel.startsWith("simba:inbox:")
            ? Effect.never
            : Context.get(context, Subscriber).listen!(channel, listener)
      })
      const provider = Layer.succeedContext(Context.add(others, Redis, {
        ...redis,
        send: (command, ...args) => command === silent ? Effect.never : redis.send(command, ...args),
        subscribe: () => Effect.never
      }))
      const building = yield* start(Effect.flip(Layer.build(Layer.provide(layer as typeof streams, provider))))
      yield* TestClock.adjust("29999 millis")
      assert.isUndefined(building.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const error = building.pollUnsafe()
      assert.isTrue(error !== undefined && Exit.isSuccess(error))
      assert.deepInclude((error as Exit.Success<object>).value, { _tag: "BackendError", isRetryable: true })
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))
})

it("a BackendError does not contain the failed command's arguments, which may be secret", () => {
  const cause = Object.assign(new Error("ERR"), { command: { name: "SET", args: ["key", "hunter2"] } })
  assert.notInclude(inspect(backendError("fenced write", cause), { depth: null, showHidden: true }), "hunter2")
})

describe("a server that replies with errors", () => {
  it.effect.each(["BUSY", "LOADING", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"] as const)(
    "renewals and acquires are retried until %s is over",
    (state) =>
      Effect.gen(function*() {
        const server = yield* FakeRedis.FakeRedis
        const mutex = yield* openFake("a")
        const lease = yield* mutex.acquire("m")
        yield* TestClock.adjust("9 seconds")
        yield* server.setErrorState(state)
        const acquiring = yield* start(mutex.acquire("n"))
        const refused = yield* Effect.flip(Effect.scoped(mutex.acquireIfAvailable("o")))
        assert.deepInclude(refused, { _tag: "BackendError", isRetryable: true })
        yield* TestClock.adjust("5 seconds")
        assert.isTrue(yield* lease.isHeld)
        assert.isUndefined(acquiring.pollUnsafe())
        yield* server.setErrorState(undefined)
        yield* TestClock.adjust("1200 millis")
        yield* Fiber.join(acquiring)
        yield* TestClock.adjust("1 hour")
        assert.isTrue(yield* lease.isHeld)
      }).pipe(Effect.provide(FakeLive)),
    { tags: ["B14"] }
  )

  it.effect("a contender backs off to one poll every ten seconds while the server loads its data, then leads soon", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const us = yield* openFake("a")
      const them = yield* Scope.make()
      yield* Scope.provide((yield* openFake("b")).acquire("m"), them)
      const contender = yield* Effect.provideService(Mutex.contend("m"), Mutex.Mutex, us)
      yield* TestClock.adjust("5 seconds")
      yield* server.setErrorState("LOADING")
      const asked = Effect.gen(function*() {
        yield* server.clearTrace
        yield* TestClock.adjust("1 minute")
        return (yield* server.trace).filter(({ client, role }) => client === "a" && role === "commands").length
      })
      // Like any acquire, the contender first polls every second for the length of a lease, then releases. After that,
      // both the contender and its watch back off.
      assert.isBelow(yield* asked, 60)
      assert.isBelow(yield* asked, 18)
      assert.isBelow(yield* asked, 18)
      yield* server.setErrorState(undefined)
      yield* Scope.close(them, Exit.void)
      yield* TestClock.adjust("13 seconds")
      assert.isTrue((yield* contender.state)._tag === "Leading")
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect(
    "a permanent refusal fails immediately, and an impossible reply causes a ProtocolError",
    () =>
      Effect.gen(function*() {
        let reply: Effect.Effect<never, RedisError> | undefined
        const context = yield* Layer.build(FakeRedis.layerClient({ name: "a" }))
        const redis = Context.get(context, Redis)
        const responsive: Redis["Service"]["send"] = (command, ...args) =>
          command === "EVALSHA" && reply !== undefined ? reply : redis.send(command, ...args)
        const faulty = Context.add(context, Redis, { ...redis, send: responsive })
        const store = Context.get(
          yield* Layer.build(Layer.fresh(RedisMutex.layerStore).pipe(Layer.provide(Layer.succeedContext(faulty)))),
          MutexStore
        )
        const asked = (text: string) => {
          reply = Effect.fail(new RedisError({ cause: new ReplyError(text) }))
          return Effect.map(Effect.flip(contender(store, freshName("refusals")).ask("try")), (error) => {
            assert.instanceOf(error, BackendError)
            return error.isRetryable
          })
        }
        for (
          const text of [
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "NOPERM this user has no permissions to run the 'evalsha' command",
            "ERR unknown command 'evalsha'"
          ]
        ) assert.isFalse(yield* asked(text), text)
        for (
          const text of [
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "ERR Error running script: @user_script: 13: -READONLY You can't write against a read only replica."
          ]
        ) assert.isTrue(yield* asked(text), text)
        reply = Effect.succeed(["nonsense"]) as Effect.Effect<never>
        assert.instanceOf(yield* Effect.flip(contender(store, freshName("nonsense")).ask("try")), ProtocolError)
      }).pipe(Effect.provide(FakeLive)),
    { tags: ["B14"] }
  )

  it.effect("if a lease is lost because its key has the wrong type, the error names the key and the remedy", () =>
    Effect.gen(function*() {
      const mutex = yield* openFake("a")
      const context = yield* Layer.build(FakeRedis.layerClient({ name: "other" }))
      const { send } = Context.get(context, Redis)
      const lease = yield* mutex.acquire("m")
      const lost = yield* start(lease.lost)
      yield* send("DEL", "simba:{m}")
      yield* send("LPUSH", "simba:{m}", "something")
      yield* TestClock.adjust("16 seconds")
      const { message, reason } = yield* Fiber.join(lost)
      assert.strictEqual(reason._tag, "BackendGone")
      assert.strictEqual(
        message,
        `Lease ${lease.token} of mutex "m" is over: no renewal succeeded before its deadline: Renewing the lease failed: ` +
          "the key \"simba:{m}\" holds a value of the wrong type (WRONGTYPE), from another program: delete it, or use " +
          "another name. Trying again will not help. Stop touching what it protects, and acquire it again."
      )
    }).pipe(Effect.scoped, Effect.provide(FakeLive)))

  it.effect(
    "after a failover loses a grant, every contender can acquire the mutex, with growing tokens",
    () =>
      Effect.gen(function*() {
        const server = yield* FakeRedis.FakeRedis
        const [a, b, c] = yield* Effect.all([openFake("a"), openFake("b"), openFake("c")])
        const lease = yield* a.acquire("m")
        const lost = yield* start(lease.lost)
        assert.isAbove(yield* server.failover({ loseLastWrites: 2 }), 0)
        yield* TestClock.adjust("2 seconds")
        const tokens: Array<number> = [lease.token]
        const turn = (mutex: Mutex.Mutex["Service"]) =>
          mutex.withLock("m")((lease) => Effect.sync(() => void tokens.push(lease.token)))
        for (const mutex of [b, c, b, c, b]) yield* turn(mutex)
        // A waiter behind a holder in the same layer must wait until the holder notices its loss
        const behind = yield* start(turn(a))
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual((yield* Fiber.join(lost)).reason._tag, "Vanished")
        yield* Fiber.join(behind)
        assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((x, y) => x - y))
        assert.strictEqual(tokens.length, 7)
      }).pipe(Effect.provide(FakeLive)),
    { tags: ["B44"] }
  )
})
