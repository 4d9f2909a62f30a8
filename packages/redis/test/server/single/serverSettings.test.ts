/** What a server must permit, and which settings the library leaves alone. */
import * as Mutex from "@effect-simba/core/Mutex"
import { BackendError } from "@effect-simba/core/SimbaError"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import {
  commandStats,
  contender,
  freshName,
  held,
  keysOf,
  openMutex,
  openStore,
  patient,
  queued,
  quiet,
  RedisServer,
  until
} from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("server settings", (it) => {
  it.effect("CONFIG is never sent", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      yield* stats.reset
      const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("no config")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(other.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      yield* Effect.forkScoped(Stream.runDrain(Stream.provideService(Mutex.events(m), Mutex.Mutex, mutex)))
      const contention = yield* Effect.provideService(Mutex.contend(m), Mutex.Mutex, mutex)
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
    }).pipe(Effect.provide(quiet)), { tags: ["B47"] })

  it.effect("waiters detect an expiry without keyspace events", () =>
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
    }), { tags: ["B48"] })

  it.effect("building a layer for a user who may not run scripts fails, and the error names the missing permission", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* server.send("ACL", "SETUSER", "noscripts", "reset", "on", ">x", "~*", "&*", "+@all", "-@scripting")
      const error = yield* Effect.flip(openStore(server, { url: `redis://noscripts:x@127.0.0.1:${server.port}` }))
      assert.instanceOf(error, BackendError)
      assert.deepInclude(error, { isRetryable: false })
      assert.match(error.message, /NOPERM/)
    }))
})
