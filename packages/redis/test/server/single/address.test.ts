/** Mutexes at one address whose server may be replaced by another one, as in a failover behind a fixed address. */
import { Mutex } from "@effect-simba/core"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Queue } from "effect"
import { Redis } from "effect/persistence/Redis"
import { Redis as Client, type RedisOptions } from "ioredis"
import { capturingLogs, infoField, killConnections, until } from "../../support/harness.ts"
import { RedisServer } from "../../support/redisServer.ts"
import { relayTo } from "../../support/relay.ts"
import { contract, mutexes } from "../../support/topologyContract.ts"

const onOne = Layer.unwrap(Effect.map(RedisServer, ({ url }) => mutexes(IoRedis.layer({ url })))).pipe(
  Layer.provide(RedisServer.layer)
)

contract("single", onOne)

/** A layer on the application's client, which is named as a layer names its own connection. */
const onClient = (port: number, options: Pick<RedisOptions, "reconnectOnError" | "retryStrategy"> = {}) =>
  Layer.unwrap(Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const client = new Client(port, "127.0.0.1", { ...options, connectionName: "simba:commands" })
        return client.on("error", () => undefined)
      }),
      (client) => Effect.sync(() => client.disconnect())
    ),
    (client) => IoRedis.layerClient(client, { commandTimeout: "500 millis" })
  ))

const providers = {
  "of the layer": (port: number) => IoRedis.layer({ url: `redis://127.0.0.1:${port}`, commandTimeout: "500 millis" }),
  "of the application": onClient,
  "of the application, which reconnects by itself": (port: number) => {
    // Only once, because ioredis adds a listener each time that it gets such a reply
    let isLeaving = false
    return onClient(port, {
      reconnectOnError: ({ message }) => message.includes("READONLY") && !isLeaving && (isLeaving = true)
    })
  }
}

describe("one address", () => {
  it.live.each(Object.entries(providers))(
    "after a failover, subscriptions move to the new primary together with the commands, without logging errors (client %s)",
    ([, provider]) =>
      Effect.scoped(Effect.gen(function*() {
        const old = yield* RedisServer.start()
        const next = yield* RedisServer.start()
        const relay = yield* relayTo(old.port)
        const context = yield* Layer.build(
          mutexes(provider(relay.port))
        )
        const subscriber = Context.get(context, Subscriber)
        const notices = yield* subscriber.subscribe("channel")
        relay.target = next.port
        // The connections to the old server stay open. Messages published on the new primary are counted there.
        yield* old.send("REPLICAOF", "127.0.0.1", String(next.port))
        const warnings: Array<Error> = []
        const onWarning = (warning: Error) => warnings.push(warning)
        yield* Effect.acquireRelease(
          Effect.sync(() => process.on("warning", onWarning)),
          () => Effect.sync(() => process.off("warning", onWarning))
        )
        const set = Effect.exit(Context.get(context, Redis).send("SET", "key", "value"))
        yield* Effect.all(Array.from({ length: 30 }, () => set), { concurrency: "unbounded" })
        yield* until(
          "the mutexes are on the new primary",
          Effect.map(Effect.exit(Mutex.withLock("m")(Effect.void).pipe(Effect.provide(context))), Exit.isSuccess)
        )
        yield* until(
          "the layer has subscribed on the new primary",
          Effect.map(next.send("PUBSUB", "NUMSUB", "channel"), (counts) => Array.isArray(counts) && counts[1] === 1)
        )
        assert.deepInclude(yield* Queue.take(notices), { _tag: "Gap" })
        const list = String(yield* old.send("CLIENT", "LIST"))
        assert.notMatch(list, /\bname=simba:(commands|subscriber)/)
        assert.deepStrictEqual(warnings, [])
      })).pipe(Effect.provide(capturingLogs([])))
  )

  it.live(
    "subscriptions move when the client reaches another server, but not when it merely reconnects",
    () =>
      Effect.gen(function*() {
        const old = yield* RedisServer.start()
        const next = yield* RedisServer.start()
        const relay = yield* relayTo(old.port)
        const client = yield* Effect.acquireRelease(
          Effect.sync(() => {
            const reconnectOnError = ({ message }: Error) => message.includes("READONLY") ? 2 : false
            const client = new Client(relay.port, "127.0.0.1", { connectionName: "app", reconnectOnError })
            return client.on("error", () => undefined)
          }),
          (client) => Effect.sync(() => client.disconnect())
        )
        const context = yield* Layer.build(IoRedis.layerClient(client))
        const notices = yield* Context.get(context, Subscriber).subscribe("channel")
        assert.strictEqual(yield* killConnections(old, "app"), 1)
        yield* Effect.promise(() => client.set("key", "value"))
        yield* Effect.promise(() => client.ping())
        yield* Effect.sleep("200 millis")
        assert.strictEqual(Queue.sizeUnsafe(notices), 0)
        relay.target = next.port
        yield* old.send("REPLICAOF", "127.0.0.1", String(next.port))
        assert.strictEqual(yield* Effect.promise(() => client.set("key", "value")), "OK")
        assert.deepStrictEqual(yield* Queue.take(notices), { _tag: "Gap" })
        assert.deepStrictEqual(yield* next.send("PUBSUB", "NUMSUB", "channel"), ["channel", 1])
      }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))),
    60_000
  )

  it.live.each(Object.entries(providers).slice(0, 2))(
    "reconnects are rare while the server stays a replica (client %s)",
    ([, provider]) =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const redis = Context.get(yield* Layer.build(Layer.fresh(provider(server.port))), Redis)
        yield* server.send("REPLICAOF", "127.0.0.1", "1")
        yield* server.send("CONFIG", "RESETSTAT")
        const set = Effect.andThen(Effect.exit(redis.send("SET", "key", "value")), Effect.sleep("1 millis"))
        yield* Effect.timeoutOption(Effect.forever(set), "3 seconds")
        // One when the error reply arrives, and more after 0.1, 0.3, 0.7, 1.5 and 3.1 seconds
        assert.isAtMost(Number(yield* infoField(server, "stats", "total_connections_received")), 8)
      }).pipe(Effect.scoped, Effect.provide(capturingLogs([])))
  )

  it.live("a client that never reconnects stays connected when its server becomes a replica", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const context = yield* Layer.build(onClient(server.port, { retryStrategy: () => null }))
      yield* server.send("REPLICAOF", "127.0.0.1", "1")
      const { send } = Context.get(context, Redis)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(send("SET", "key", "value"))))
      assert.isNull(yield* send("GET", "key"))
    }).pipe(Effect.scoped, Effect.provide(capturingLogs([]))))
})
