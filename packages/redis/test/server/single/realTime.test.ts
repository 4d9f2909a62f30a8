/** Connection timers use real time, even under TestClock. */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Metric, Queue } from "effect"
import * as Redis from "effect/persistence/Redis"
import { TestClock } from "effect/testing"
import { capturingLogs, connections, killConnections, RedisServer, until } from "../../support/harness.ts"
import { relayTo } from "../../support/relay.ts"

it.effect(
  "advancing the clock does not fail in-flight commands, and a frozen clock does not prevent reconnecting",
  () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const context = yield* Layer.build(Layer.fresh(IoRedis.layer({ url: server.url })))
      const redis = Context.get(context, Redis.Redis)
      for (let i = 0; i < 20; i++) {
        const pings = yield* Effect.forkChild(
          Effect.forEach([1, 2, 3], () => redis.send("PING"), { concurrency: "unbounded" }),
          { startImmediately: true }
        )
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* Fiber.join(pings), ["PONG", "PONG", "PONG"])
      }
      const changes = yield* Context.get(context, Subscriber).subscribe("news")
      yield* killConnections(server, "simba:subscriber")
      yield* killConnections(server, "simba:commands")
      assert.deepStrictEqual(yield* Queue.take(changes), { _tag: "Gap" })
      yield* TestClock.withLive(
        until("commands work again", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      )
    }),
  30_000
)

it.effect("hanging commands and reservations time out even if the clock is frozen", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const layer = IoRedis.layer({ url: server.url, commandTimeout: "300 millis", connectTimeout: "300 millis" })
    const redis = Context.get(yield* Layer.build(Layer.fresh(layer)), Redis.Redis)
    yield* server.pause
    assert.match(String((yield* Effect.flip(redis.send("PING"))).cause), /no reply/)
    const error = yield* Effect.flip(Effect.scoped(redis.reserve))
    assert.match(String(error.cause), /no connection to .* within 300ms/)
  }), 30_000)

it.live(
  "the first connection may take longer than commandTimeout, up to connectTimeout",
  () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const relay = yield* relayTo(server.port)
      relay.greeting = 700
      const layer = RedisMutex.layer({
        commandTimeout: "300 millis",
        redis: { url: `redis://127.0.0.1:${relay.port}`, connectTimeout: "3 seconds" }
      })
      yield* Effect.provide(Mutex.withLock("m")(Effect.void), Layer.fresh(layer))
    }),
  30_000
)

it.live("logs one warning when a connection is lost, and one line when it is restored", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const layer = IoRedis.layer({ url: server.url, serverChecks: false })
      const context = yield* Layer.build(Layer.fresh(layer))
      const redis = Context.get(context, Redis.Redis)
      const { health } = Context.get(context, IoRedis.IoRedis)
      yield* health
      yield* server.kill()
      yield* Effect.sleep("700 millis")
      assert.match((yield* Effect.flip(health)).message, /not connected/)
      yield* server.restart
      yield* until("the connection is back", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      yield* health
    }).pipe(Effect.scoped, Effect.provide(capturingLogs(lines)))
    assert.strictEqual(lines.length, 2, lines.join("\n"))
    assert.match(lines[0]!, /^The commands connection to Redis at 127\.0\.0\.1:\d+ is lost/)
    assert.match(lines[1]!, /^The commands connection to Redis at 127\.0\.0\.1:\d+ is back after/)
  }), 30_000)

it.live("logs why reconnecting fails after a password change", () =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    yield* Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.send("ACL", "SETUSER", "app", "on", ">x", "~*", "&*", "+@all")
      const layer = IoRedis.layer({ url: `redis://app:x@127.0.0.1:${server.port}`, serverChecks: false })
      const redis = Context.get(yield* Layer.build(Layer.fresh(layer)), Redis.Redis)
      yield* server.send("ACL", "SETUSER", "app", "resetpass", ">y")
      yield* server.send("CLIENT", "KILL", "USER", "app")
      yield* until("two warnings are logged", Effect.sync(() => lines.length >= 2))
      yield* server.send("ACL", "SETUSER", "app", ">x")
      yield* until("the connection is back", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      yield* until("the restored connection is logged", Effect.sync(() => lines.length >= 3))
      // A restart does not look like a misconfiguration
      yield* server.restart
      yield* until("the second outage is logged", Effect.sync(() => lines.length >= 4))
    }).pipe(Effect.scoped, Effect.provide(capturingLogs(lines)))
    assert.match(lines[1]!, /commands connection to Redis cannot be restored yet: .*rejects the user or the password/)
    assert.match(lines[2]!, /is back after/)
    assert.match(lines[3]!, /is lost/)
  }), 30_000)

it.live(
  "a subscriber that cannot reconnect logs the reason, is counted, and counts as unhealthy",
  () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      yield* Effect.gen(function*() {
        const server = yield* RedisServer.start()
        yield* server.send("ACL", "SETUSER", "app", "on", ">x", "~*", "&*", "+@all")
        const layer = IoRedis.layer({ url: `redis://app:x@127.0.0.1:${server.port}` })
        const context = yield* Layer.build(Layer.fresh(layer))
        const { health } = Context.get(context, IoRedis.IoRedis)
        yield* Context.get(context, Subscriber).subscribe("news")
        yield* health
        const before = (yield* Metric.value(IoRedis.connectionsDown.subscriber)).value
        yield* server.send("ACL", "SETUSER", "app", "resetchannels")
        yield* until("the loss is counted", Effect.map(Effect.exit(health), Exit.isFailure))
        yield* until(
          "the failed attempt is logged",
          Effect.sync(() => lines.some((line) => line.includes("cannot be restored")))
        )
        assert.match((yield* Effect.flip(health)).message, /NOPERM/)
        assert.strictEqual((yield* Metric.value(IoRedis.connectionsDown.subscriber)).value - before, 1)
        yield* Effect.sleep("1 second")
        assert.lengthOf(lines.filter((line) => line.includes("subscriber")), 2, lines.join("\n"))
        assert.match(lines.join("\n"), /cannot be restored yet: .*NOPERM/)
        yield* server.send("ACL", "SETUSER", "app", "allchannels")
        yield* until("the subscriber has become healthy", Effect.map(Effect.exit(health), Exit.isSuccess))
        yield* until("one", Effect.map(connections(server, "simba:subscriber"), (ids) => ids.length === 1))
      }).pipe(Effect.scoped, Effect.provide(capturingLogs(lines)))
    }),
  30_000
)
