/** Mutexes on a primary behind Sentinels, before and after failovers. */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, type Duration, Effect, Exit, Fiber, Layer, Queue, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import { Socket } from "node:net"
import { capturingLogs, until } from "../../support/harness.ts"
import { RedisServer, type Server } from "../../support/redisServer.ts"
import { relayTo } from "../../support/relay.ts"
import { contract, mutexes } from "../../support/topologyContract.ts"

class Sentinel extends Context.Service<Sentinel, Effect.Success<ReturnType<typeof RedisServer.sentinel>>>()(
  "test/Sentinel"
) {
  static readonly layer = Layer.effect(Sentinel, RedisServer.sentinel())
  /** Long enough that a stall on a busy machine is not mistaken for an outage. */
  static readonly patient = Layer.effect(Sentinel, RedisServer.sentinel({ downAfter: 30_000 }))
}

const throughSentinel = (commandTimeout: Duration.Input) =>
  Layer.unwrap(Effect.map(Sentinel, ({ name, sentinels }) =>
    mutexes(IoRedis.layer({
      client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
      commandTimeout
    }))))

contract("sentinel", Layer.provideMerge(throughSentinel("5 seconds"), Sentinel.patient))

layer(Layer.provideMerge(throughSentinel("500 millis"), Sentinel.layer), {
  excludeTestServices: true,
  timeout: "60 seconds"
})("Sentinel, failover", (it) => {
  it.effect("rediss:// requires TLS behind Sentinels too, so a primary without TLS never receives the password", () =>
    Effect.gen(function*() {
      const { name, sentinels } = yield* Sentinel
      const error = yield* IoRedis.layer({
        url: "rediss://app:secret@sentinels",
        client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
        connectTimeout: "500 millis"
      }).pipe(Layer.build, Effect.scoped, Effect.flip)
      assert.match(
        error.message,
        /no connection to the primary ".*" of the Sentinels at .*: if it does not use TLS, use redis:/
      )
    }))

  it.effect("after a failover, waiters and new callers continue on the new primary, and lost leases are reported", () =>
    Effect.gen(function*() {
      const { primary } = yield* Sentinel
      const before = yield* Effect.scoped(Effect.map(Mutex.acquire("m"), (lease) => lease.token))
      const holder = yield* Effect.forkChild(Effect.exit(Mutex.withLock("held")(Effect.sleep("8 seconds"))))
      yield* Effect.sleep("200 millis")
      yield* primary.kill("SIGKILL")
      const after = yield* Effect.scoped(Effect.map(Mutex.acquire("m"), (lease) => lease.token)).pipe(
        Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 100 })
      )
      assert.isAbove(after, before)
      // Either the grant was replicated and the lease renewed in time, or the loss was reported
      const exit = yield* Fiber.join(holder)
      if (exit._tag === "Failure") assert.include(String(exit.cause), "LeaseLost")
    }))
})

describe("Sentinel, intentional failover", () => {
  it.live(
    "all connections to the old primary close before it becomes a replica",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, replica, sentinels } = yield* RedisServer.sentinel()
        const context = yield* Layer.build(IoRedis.layer({
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
          commandTimeout: "500 millis"
        }))
        const redis = Context.get(context, Redis)
        const subscriber = Context.get(context, Subscriber)
        const notices = yield* subscriber.subscribe("channel")
        yield* Effect.forkChild(Effect.forever(
          Effect.scoped(Effect.flatMap(
            redis.reserve,
            (connection) => connection.send("BLPOP", "list", "30")
          )).pipe(Effect.catch(() => Effect.sleep("50 millis")))
        ))
        const named = (server: Server) =>
          Effect.map(
            server.send("CLIENT", "LIST"),
            (list) => [...new Set(String(list).match(/(?<=\bname=simba:)\w+/g))].sort().join()
          )
        yield* until(
          "all connections are open on the old primary",
          Effect.map(named(primary), (all) => all === "commands,reserved,subscriber")
        )
        yield* sentinels[0]!.send("SENTINEL", "FAILOVER", name)
        yield* until(
          "the replica has been promoted",
          Effect.map(replica.send("ROLE"), (role) => String(role).startsWith("master"))
        )
        yield* until("the old primary has no connections left", Effect.map(named(primary), (all) => all === ""))
        assert.include(String(yield* primary.send("ROLE")), "master")

        yield* until(
          "commands go to the new primary",
          Effect.map(named(replica), (all) => all.includes("commands,reserved"))
        )
        // Each Sentinel announces the failover, and the subscriber may have to reconnect again on a later announcement
        let notice = yield* Queue.take(notices)
        while (notice._tag === "Gap") {
          yield* replica.send("PUBLISH", "channel", "hello")
          notice = yield* Queue.take(notices)
        }
        assert.deepInclude(notice, { text: "hello" })
      })).pipe(Effect.provide(capturingLogs([])))
  )

  it.live(
    "failovers are reported by the remaining Sentinels, and by Sentinels that come back",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, sentinels } = yield* RedisServer.sentinel()
        const [first, ...others] = sentinels
        for (const other of others) yield* other.kill()
        const context = yield* Layer.build(IoRedis.layer({
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) }
        }))
        assert.strictEqual(yield* Context.get(context, Redis).send("PING"), "PONG")
        const watching = (server: Server) =>
          Effect.map(server.send("CLIENT", "LIST"), (list) => /\bname=simba:sentinel .*\bsub=1 /.test(String(list)))
        yield* until("the layer listens to the live Sentinel", watching(first!))
        yield* others[0]!.restart
        yield* until("the layer listens to the Sentinel that came back", watching(others[0]!))
        assert.include(String(yield* primary.send("ROLE")), "master")
      })).pipe(Effect.provide(capturingLogs([])))
  )

  it.live(
    "a layer reconnects after all Sentinels were down, even if sentinelRetryStrategy gives up",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, sentinels } = yield* RedisServer.sentinel()
        const relay = yield* relayTo(sentinels[0]!.port)
        const context = yield* Layer.build(IoRedis.layer({
          client: {
            name,
            sentinels: [{ host: "127.0.0.1", port: relay.port }],
            updateSentinels: false,
            sentinelRetryStrategy: () => null
          }
        }))
        const ping = Effect.exit(Context.get(context, Redis).send("PING"))
        relay.isDown = true
        yield* primary.send("CLIENT", "KILL", "TYPE", "normal")
        // Long enough for several attempts to find the primary
        yield* Effect.sleep("500 millis")
        assert.isTrue(Exit.isFailure(yield* ping))
        relay.isDown = false
        yield* until("the primary replies again", Effect.map(ping, Exit.isSuccess))
      })).pipe(Effect.provide(capturingLogs([])))
  )

  it.live(
    "a hanging Sentinel does not hold up the others",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, sentinels } = yield* RedisServer.sentinel()
        const options = {
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
          // Longer than connectTimeout, so connecting would fail if it waited for the hanging Sentinel
          commandTimeout: "5 seconds"
        } satisfies IoRedis.Options
        const redis = Context.get(yield* Layer.build(IoRedis.layer(options)), Redis)
        for (const hanging of sentinels) {
          yield* hanging.pause
          const connections = String(yield* primary.send("CLIENT", "LIST")).split("\n")
          const [id] = connections.flatMap((line) => /^id=(\d+) .*\bname=simba:commands /.exec(line)?.[1] ?? [])
          yield* primary.send("CLIENT", "KILL", "ID", id!)
          yield* until("the primary replies again", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
          yield* Effect.scoped(Layer.build(Layer.fresh(IoRedis.layer(options))))
          yield* hanging.resume
        }
      })).pipe(Effect.provide(capturingLogs([])))
  )

  it.live(
    "the connections that watch the Sentinels use the configured keepAlive",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, sentinels } = yield* RedisServer.sentinel()
        const kept = new Set<number | undefined>()
        const { setKeepAlive } = Socket.prototype
        yield* Effect.acquireRelease(
          Effect.sync(() => {
            Socket.prototype.setKeepAlive = function(enable, delay) {
              if (delay === 4321) kept.add(this.remotePort)
              return setKeepAlive.call(this, enable, delay)
            }
          }),
          () => Effect.sync(() => Socket.prototype.setKeepAlive = setKeepAlive)
        )
        yield* Layer.build(Layer.fresh(IoRedis.layer({
          client: { name, keepAlive: 4321, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) }
        })))
        yield* until("all are connected", Effect.sync(() => sentinels.every(({ port }) => kept.has(port))))
      })),
    60_000
  )

  it.live(
    "when the primary is down or demoted, errors do not blame the Sentinels",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, replica, sentinels } = yield* RedisServer.sentinel({ downAfter: 30_000 })
        const failure = IoRedis.layer({
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) }
        }).pipe(Layer.fresh, Layer.build, Effect.scoped, Effect.flip)
        yield* primary.send("REPLICAOF", "127.0.0.1", String(replica.port))
        assert.match((yield* failure).message, /the primary "mymaster" of the Sentinels at .* is a replica or closed/)
        yield* primary.send("REPLICAOF", "NO", "ONE")
        yield* primary.send("CONFIG", "SET", "requirepass", "secret")
        assert.match((yield* failure).message, /the primary "mymaster" of the Sentinels at .* requires a password/)
        yield* primary.kill()
        assert.match((yield* failure).message, /nothing is listening at the address of the primary "mymaster"/)
      })),
    60_000
  )
})
