/** What systems like this one suffered from, and this one must not: docs/known-problems.md says which is which. */
import * as Mutex from "@effect-simba/core/Mutex"
import type { ContenderId, MutexName } from "@effect-simba/core/MutexName"
import { MutexStore } from "@effect-simba/core/MutexStore"
import { BackendError, ProtocolError } from "@effect-simba/core/SimbaError"
import { RedisMutexStore } from "@effect-simba/redis"
import { FakeNetwork, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Logger, Scope, Stream } from "effect"
import { Redis, RedisError } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { connect, createServer, type Socket } from "node:net"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import {
  capturingLogs,
  commandStats,
  connections,
  contender,
  freshName,
  inboxChannelOf,
  keysOf,
  killConnections,
  openMutex,
  openStore,
  ownerOf,
  RedisServer,
  until
} from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const quiet = capturingLogs([])

/** A lease far longer than any test, so that only a message or a gap can wake a waiter in time. */
const patient = { ttl: "10 minutes", transition: "5 minutes", confirmTimeout: "1 minute" } as const

const start = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const queued = (server: Server, mutex: MutexName, count: number) =>
  until(`${count} in the queue`, Effect.map(server.send("ZCARD", keysOf(mutex).queue), (n) => n === count))

const held = (server: Server, mutex: MutexName) =>
  until("held", Effect.map(server.send("EXISTS", keysOf(mutex).owner), (n) => n === 1))

/** Another process on the same fake server, until the scope closes. */
const openFake = (name: string) =>
  Effect.map(
    Layer.build(Layer.fresh(TestMutex.layerClient(RedisMutexStore.layer, { name }))),
    (context) => Context.get(context, Mutex.Mutex)
  )

const FakeLive = Layer.merge(FakeRedis.layer(), Logger.layer([]))

/** As ioredis reports what the server answered. */
class ReplyError extends Error {
  override readonly name = "ReplyError"
}

describe("on a fake server, under virtual time", () => {
  it.effect.each(["BUSY", "LOADING", "READONLY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"] as const)(
    "B14: %s is sat out by renewals and acquires",
    (state) =>
      Effect.gen(function*() {
        const server = yield* FakeRedis.FakeRedis
        const mutex = yield* openFake("a")
        const lease = yield* mutex.acquire("m")
        yield* TestClock.adjust("9 seconds")
        yield* server.setErrorState(state)
        const acquiring = yield* start(mutex.acquire("n"))
        const refused = yield* Effect.flip(Effect.scoped(mutex.tryAcquire("o")))
        assert.deepInclude(refused, { _tag: "BackendError", retryable: true })
        yield* TestClock.adjust("5 seconds")
        assert.isTrue(yield* lease.isHeld)
        assert.isUndefined(acquiring.pollUnsafe())
        yield* server.setErrorState(undefined)
        yield* TestClock.adjust("1200 millis")
        yield* Fiber.join(acquiring)
        yield* TestClock.adjust("1 hour")
        assert.isTrue(yield* lease.isHeld)
      }).pipe(Effect.provide(FakeLive))
  )

  it.effect("B14: what the server refuses for good is told at once, and what it cannot have meant is told apart", () =>
    Effect.gen(function*() {
      let answer: Effect.Effect<never, RedisError> | undefined
      const context = yield* Layer.build(FakeRedis.layerClient({ name: "a" }))
      const redis = Context.get(context, Redis)
      const answering: Redis["Service"]["send"] = (command, ...args) =>
        command === "EVALSHA" && answer !== undefined ? answer : redis.send(command, ...args)
      const faulty = Context.add(context, Redis, { ...redis, send: answering })
      const store = Context.get(
        yield* Layer.build(Layer.fresh(RedisMutexStore.layer).pipe(Layer.provide(Layer.succeedContext(faulty)))),
        MutexStore
      )
      const asked = (text: string) => {
        answer = Effect.fail(new RedisError({ cause: new ReplyError(text) }))
        return Effect.map(Effect.flip(contender(store, freshName("refusals")).ask("try")), (error) => {
          assert.instanceOf(error, BackendError)
          return error.retryable
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
      answer = Effect.succeed(["nonsense"]) as Effect.Effect<never>
      assert.instanceOf(yield* Effect.flip(contender(store, freshName("nonsense")).ask("try")), ProtocolError)
    }).pipe(Effect.provide(FakeLive)))

  it.effect("B4: places in the queue do not drift while others come, give up and die", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const [holder, hasty] = yield* Effect.all([openFake("holder"), openFake("hasty")])
      const scope = yield* Scope.make()
      yield* Scope.provide(holder.acquire("m"), scope)
      const crash = yield* Scope.make()
      for (let i = 0; i < 10; i++) {
        const dead = yield* Scope.provide(openFake("dead"), crash)
        yield* Effect.forkIn(Scope.provide(dead.acquire("m"), crash), crash, { startImmediately: true })
      }
      const order: Array<string> = []
      const waiting = yield* start(hasty.withLock("m")(Effect.sync(() => order.push("patient"))))
      yield* Effect.repeat(TestClock.adjust(0), { times: 4 })
      // Cut off before they end, so that they give nothing back
      yield* server.dropConnections("dead")
      yield* (yield* FakeNetwork.link("dead")).partition()
      yield* start(Scope.close(crash, Exit.void))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* server.dump("simba:{m}:contender"))?.value.length, 11)
      for (let i = 0; i < 60; i++) {
        const error = yield* start(Effect.flip(Effect.scoped(hasty.acquire("m", { timeout: "30 seconds" }))))
        yield* TestClock.adjust("31 seconds")
        assert.strictEqual((yield* Fiber.join(error))._tag, "AcquireTimeout")
      }
      const late = yield* start(hasty.withLock("m")(Effect.sync(() => order.push("late"))))
      yield* TestClock.adjust("1 second")
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.join(waiting)
      yield* Fiber.join(late)
      assert.deepStrictEqual(order, ["patient", "late"])
      assert.deepStrictEqual((yield* server.keys).map(({ key }) => key), ["simba:{m}:fence"])
    }).pipe(Effect.provide(FakeLive)))

  it.effect("B10: a waiter that lost its own place notices, and takes it again where it was", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const [holder, first, second] = yield* Effect.all([openFake("holder"), openFake("first"), openFake("second")])
      const scope = yield* Scope.make()
      yield* Scope.provide(holder.acquire("m"), scope)
      const order: Array<string> = []
      const waiting = yield* start(first.withLock("m")(Effect.sync(() => order.push("first"))))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(yield* server.evict("simba:{m}:contender"))
      const later = yield* start(second.withLock("m")(Effect.sync(() => order.push("second"))))
      // At the latest when the lease that it knew of would have ended
      yield* TestClock.adjust("17 seconds")
      yield* Scope.close(scope, Exit.void)
      yield* Fiber.joinAll([waiting, later])
      assert.deepStrictEqual(order, ["first", "second"])
    }).pipe(Effect.provide(FakeLive)))

  it.effect("B44: after a fail-over that lost a grant every contender can have the mutex, under growing tokens", () =>
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const [a, b, c] = yield* Effect.all([openFake("a"), openFake("b"), openFake("c")])
      const lease = yield* a.acquire("m")
      const lost = yield* start(lease.lost)
      assert.isAbove(yield* server.failOver({ loseLastWrites: 2 }), 0)
      yield* TestClock.adjust("2 seconds")
      const tokens: Array<number> = [lease.token]
      const turn = (mutex: Mutex.Mutex["Service"]) =>
        mutex.withLock("m")((lease) => Effect.sync(() => void tokens.push(lease.token)))
      for (const mutex of [b, c, b, c, b]) yield* turn(mutex)
      // Who is behind a holder of its own layer has its turn once that one knows that it lost
      const behind = yield* start(turn(a))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(lost)).reason, "Vanished")
      yield* Fiber.join(behind)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((x, y) => x - y))
      assert.strictEqual(tokens.length, 7)
    }).pipe(Effect.provide(FakeLive)))
})

layer(RedisServer.layer, { excludeTestServices: true })("on a server of its own", (it) => {
  it.effect("S8, S9: late messages on the wire change nothing for a holder, nor for one that lost", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("late")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(other.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      const contention = yield* mutex.contend(m)
      yield* queued(server, m, 1)
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      yield* until("it leads", Effect.map(contention.lease, (lease) => lease._tag === "Some"))
      const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
      const { owner } = keysOf(m)
      yield* server.send("PUBLISH", `${owner}:${lease.id}`, "released@@1-000000000000:old")
      yield* server.send("PUBLISH", owner, "acquired@@1-000000000000:old")
      yield* Effect.sleep("100 millis")
      yield* lease.ensure
      assert.strictEqual(yield* server.send("GET", owner), lease.id)
      yield* contention.stop
      const rival = yield* other.acquire(m)
      yield* contention.start
      yield* queued(server, m, 1)
      yield* server.send("PUBLISH", owner, `acquired@@${lease.id}`)
      yield* Effect.sleep("100 millis")
      assert.strictEqual((yield* contention.lease)._tag, "None")
      assert.strictEqual(yield* server.send("GET", owner), rival.id)
    }))

  it.effect("S22: a release that takes nothing away hands nothing over", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const m = freshName("nothing to release")
      const [a, b] = [contender(store, m), contender(store, m)]
      yield* a.own
      const wakeUps = yield* b.subscribe
      yield* b.wait
      yield* server.send("DEL", keysOf(m).owner)
      assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
      assert.deepStrictEqual(yield* Effect.timeoutOption(wakeUps.next, "100 millis"), yield* Effect.succeedNone)
      yield* server.send("SET", keysOf(m).owner, "somebody else", "PX", "60000")
      assert.strictEqual(ownerOf(yield* a.release), "somebody else")
      assert.deepStrictEqual(yield* Effect.timeoutOption(wakeUps.next, "100 millis"), yield* Effect.succeedNone)
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), "somebody else")
      assert.strictEqual(yield* server.send("ZCARD", keysOf(m).queue), 1)
    }))

  it.effect("B9: a wait is no SUBSCRIBE, however often its waiter looks", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("one subscription")
      const lease = yield* other.acquire(m)
      yield* stats.reset
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      yield* queued(server, m, 1)
      const [id] = (yield* server.send("ZRANGE", keysOf(m).queue, "0", "-1")) as [ContenderId]
      for (let i = 0; i < 20; i++) {
        // One by one: many at once are one reason to look
        assert.strictEqual(yield* server.send("PUBLISH", inboxChannelOf(id), `${id}@@released@@${lease.id}`), 1)
        yield* until("it looked", Effect.map(stats.calls, (calls) => (calls.get("evalsha") ?? 0) >= 3 + i))
      }
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.interrupt(waiting)
      yield* queued(server, m, 0)
      const calls = yield* stats.calls
      assert.deepStrictEqual(["subscribe", "unsubscribe"].map((command) => calls.has(command)), [false, false])
    }))

  it.effect("B36: a renewal publishes nothing", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const store = yield* openStore(server)
      const [a, b] = [contender(store, freshName("renewed")), contender(store, freshName("renewed"))]
      yield* a.own
      yield* a.guard
      yield* stats.reset
      for (let i = 0; i < 20; i++) {
        assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
        assert.strictEqual((yield* b.guard)._tag, "Lost")
      }
      const calls = yield* stats.calls
      assert.strictEqual(calls.get("evalsha"), 40)
      assert.isFalse(calls.has("publish"))
    }))

  it.effect("B40: a layer keeps two connections, whatever it holds and waits for", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ...patient, redis: { client: { connectionName: "budget" } } })
      const other = yield* openMutex(server, patient)
      const names = Array.from({ length: 40 }, () => freshName("budget"))
      for (const m of names) {
        yield* other.acquire(m)
        yield* mutex.acquire(freshName("held"))
        yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
        yield* Effect.forkScoped(Stream.runDrain(mutex.events(m)))
      }
      yield* Effect.forEach(names, (m) => queued(server, m, 1), { concurrency: 8 })
      assert.strictEqual((yield* connections(server, "budget")).length, 2)
    }))

  it.effect("B43: after lost subscriptions every waiter hears its hand-off again", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const holder = yield* openMutex(server, patient)
      const waiter = yield* openMutex(server, patient)
      const names = Array.from({ length: 30 }, () => freshName("resubscribed"))
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forEach(
        names,
        (m) => Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      )
      yield* Effect.forEach(names, (m) => held(server, m), { concurrency: 8 })
      const waiting = yield* Effect.forEach(names, (m) => Effect.forkScoped(Effect.scoped(waiter.acquire(m))))
      yield* Effect.forEach(names, (m) => queued(server, m, 1), { concurrency: 8 })
      const [id] = (yield* server.send("ZRANGE", keysOf(names[0]!).queue, "0", "-1")) as [ContenderId]
      const inbox = inboxChannelOf(id)
      const stats = commandStats(server)
      for (let i = 0; i < 2; i++) {
        yield* stats.reset
        assert.isAtLeast(yield* killConnections(server, "simba:subscriber"), 1)
        yield* until(
          "it is restored",
          Effect.map(server.send("PUBSUB", "NUMSUB", inbox), (counts) => (counts as Array<unknown>)[1] === 1)
        )
        // It is a gap for each of them: all look, under their tickets
        yield* until("all look", Effect.map(stats.calls, (calls) => (calls.get("zscore") ?? 0) >= names.length))
      }
      yield* Deferred.succeed(letGo, undefined)
      yield* Effect.timeout(Fiber.joinAll([...holding, ...waiting]), "10 seconds")
    }))

  it.effect("B47: CONFIG is never sent", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      yield* stats.reset
      const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("no config")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(other.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      yield* Effect.forkScoped(Stream.runDrain(mutex.events(m)))
      const contention = yield* mutex.contend(m)
      yield* queued(server, m, 1)
      yield* mutex.inspect(m)
      yield* Stream.runDrain(mutex.list)
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      yield* until("it leads", Effect.map(contention.lease, (lease) => lease._tag === "Some"))
      yield* mutex.forceRelease(m)
      yield* contention.stop
      const calls = yield* stats.calls
      assert.isAbove(calls.get("evalsha") ?? 0, 5)
      assert.deepStrictEqual([...calls.keys()].filter((command) => command.startsWith("config")), ["config|resetstat"])
    }).pipe(Effect.provide(quiet)))

  it.effect("B48: an expiry is found by the clock, without keyspace events", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      assert.deepStrictEqual(yield* server.send("CONFIG", "GET", "notify-keyspace-events"), [
        "notify-keyspace-events",
        ""
      ])
      yield* stats.reset
      const store = yield* openStore(server)
      const mutex = yield* openMutex(server, patient)
      const m = freshName("expiry")
      yield* contender(store, m, { lease: "700 millis" }).own
      const lease = yield* Effect.timeout(mutex.acquire(m), "10 seconds")
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
      assert.isFalse((yield* stats.calls).has("psubscribe"))
    }))

  it.effect("a user who may not run scripts is told so when the layer is built, and what is missing", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* server.send("ACL", "SETUSER", "noscripts", "reset", "on", ">x", "~*", "&*", "+@all", "-@scripting")
      const error = yield* Effect.flip(openStore(server, { url: `redis://noscripts:x@127.0.0.1:${server.port}` }))
      assert.instanceOf(error, BackendError)
      assert.deepInclude(error, { retryable: false })
      assert.match(error.message, /NOPERM/)
    }))
})

/** Passes everything on, until the connections that there are are told to swallow it all and stay open. */
const proxyTo = (server: Server) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly deafen: () => void; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const deaf = new WeakSet<Socket>()
      const listener = createServer((near) => {
        const far = connect(server.port, "127.0.0.1")
        for (const [from, to] of [[near, far], [far, near]] as const) {
          sockets.add(from)
          from.on("data", (chunk) => deaf.has(from) || to.write(chunk))
          from.on("close", () => deaf.has(from) || to.destroy())
          from.on("error", () => undefined)
        }
      })
      listener.listen(0, "127.0.0.1", () => {
        const { port } = listener.address() as { readonly port: number }
        resume(Effect.succeed({
          url: `redis://127.0.0.1:${port}`,
          deafen: () => sockets.forEach((socket) => deaf.add(socket)),
          close: () => {
            listener.close()
            sockets.forEach((socket) => socket.destroy())
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

describe("on servers that fail", () => {
  it.live("B42: a subscriber whose connection is dead without having closed is replaced, and its waiter goes on", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const proxy = yield* proxyTo(server)
      const holder = yield* openMutex(server, patient)
      const waiter = yield* openMutex(server, { ...patient, redis: { url: proxy.url, commandTimeout: "500 millis" } })
      const m = freshName("half open")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      const waiting = yield* Effect.forkScoped(waiter.acquire(m))
      yield* queued(server, m, 1)
      proxy.deafen()
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      const lease = yield* Effect.timeout(Fiber.join(waiting), "15 seconds")
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
    }).pipe(Effect.provide(quiet)))

  it.live("B22: no outage ends in an unhandled rejection", () =>
    Effect.gen(function*() {
      const unhandled: Array<unknown> = []
      const note = (error: unknown) => unhandled.push(error)
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("unhandledRejection", note).on("uncaughtException", note)),
        () => Effect.sync(() => process.off("unhandledRejection", note).off("uncaughtException", note))
      )
      const server = yield* RedisServer.start()
      const options = {
        ttl: "200 millis",
        transition: "800 millis",
        commandTimeout: "200 millis",
        releaseTimeout: "300 millis",
        redis: { commandTimeout: "200 millis" }
      } as const
      yield* Effect.scoped(Effect.gen(function*() {
        const mutex = yield* openMutex(server, options)
        const m = freshName("outage")
        const holding = yield* Effect.forkScoped(Effect.exit(mutex.withLock(m)(Effect.never)))
        yield* held(server, m)
        const [second, third] = yield* Effect.all([openMutex(server, options), openMutex(server, options)])
        const waiting = yield* Effect.forkScoped(Effect.exit(Effect.scoped(second.acquire(m))))
        const gone = yield* Effect.forkScoped(Effect.scoped(third.acquire(m)))
        yield* Effect.forkScoped(Effect.exit(Stream.runDrain(mutex.events(m))))
        const contention = yield* mutex.contend(freshName("outage"))
        yield* Effect.forkScoped(Effect.exit(contention.whileLeader(Effect.never)))
        yield* queued(server, m, 2)
        yield* server.pause
        yield* Effect.sleep("300 millis")
        yield* Fiber.interrupt(gone)
        yield* server.kill()
        yield* Fiber.join(holding)
        yield* Fiber.join(waiting)
        yield* Effect.exit(Effect.scoped(mutex.acquire(m)))
        yield* Effect.exit(mutex.forceRelease(m))
        yield* server.restart
        yield* killConnections(server, "simba:subscriber")
        yield* Effect.retry(mutex.withLock(m)(Effect.void), { times: 20 })
        yield* server.kill()
      }))
      yield* Effect.sleep("300 millis")
      assert.deepStrictEqual(unhandled, [])
    }).pipe(Effect.provide(quiet)))

  it.live("B46: all keys of a mutex, and those of its jobs, are in one slot, whatever its name", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--cluster-enabled", "yes"] })
      for (
        const name of ["m", "with spaces", "a}b{c", "{braces}", "{", "{}x", "a{b}c}", "ünïcödé ✓", "x".repeat(300)]
      ) {
        const m = `${name}` as MutexName
        const keys = [...Object.values(keysOf(m)), RedisKeys.tick(m, "job {other}"), RedisKeys.tick(m, "}")]
        const slots = yield* Effect.forEach(keys, (key) => server.send("CLUSTER", "KEYSLOT", key))
        assert.strictEqual(new Set(slots).size, 1, name)
      }
      const different = yield* Effect.forEach(
        ["a", "b"],
        (m) => server.send("CLUSTER", "KEYSLOT", RedisKeys.owner(m as MutexName))
      )
      assert.notStrictEqual(different[0], different[1])
    }))
})
