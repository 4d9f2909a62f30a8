/** Layers on an ioredis client created by the application. */
import { Mutex } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisFence, RedisMutex } from "@effect-simba/redis"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Queue, Result, Scope } from "effect"
import * as Redis from "effect/persistence/Redis"
import { type Cluster, Redis as Client, type RedisOptions } from "ioredis"
import { createRequire } from "node:module"
import { inspect } from "node:util"
import { connections, openMutex, RedisServer, until } from "../../support/harness.ts"

const made = (port: number, options: RedisOptions = {}, Class = Client) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const client = new Class(port, "127.0.0.1", { ...options, connectionName: "app" } as object)
      client.on("error", () => undefined)
      return client
    }),
    (client) => Effect.sync(() => client.disconnect())
  )

/** Loads a second copy of ioredis, as in a program whose packages have separate installations. */
const anotherCopy = Effect.sync((): typeof Client => {
  const require = createRequire(import.meta.url)
  const known = { ...require.cache }
  for (const path of Object.keys(known)) if (path.includes("ioredis")) delete require.cache[path]
  const copy = require("ioredis")
  Object.assign(require.cache, known)
  return copy.Redis
})

const open = (client: Client | Cluster, options?: Parameters<typeof IoRedis.layerClient>[1]) =>
  Effect.map(Layer.build(Layer.fresh(IoRedis.layerClient(client, options))), (context) => ({
    redis: Context.get(context, Redis.Redis),
    subscriber: Context.get(context, Subscriber)
  }))

describe("IoRedis.layerClient", () => {
  it.live(
    "shares the application's connection and leaves it open when the layer closes",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const client = yield* made(server.port)
        yield* Effect.scoped(Effect.gen(function*() {
          const { redis, subscriber } = yield* open(client)
          assert.strictEqual(yield* redis.send("CLIENT", "ID"), yield* Effect.promise(() => client.client("ID")))
          const queue = yield* subscriber.subscribe("news")
          yield* redis.send("PUBLISH", "news", "hello")
          assert.deepStrictEqual(yield* Queue.take(queue), { _tag: "Message", channel: "news", text: "hello" })
          const reserved = yield* Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("CLIENT", "ID")))
          assert.notStrictEqual(reserved, yield* redis.send("CLIENT", "ID"))
        }))
        assert.strictEqual(yield* Effect.promise(() => client.ping()), "PONG")
        yield* until(
          "only the application's connection is left",
          Effect.map(connections(server, "app"), (ids) => ids.length === 1)
        )
        const none = Effect.map(connections(server, "simba:subscriber"), (ids) => ids.length === 0)
        yield* until("the subscriber has disconnected", none)
        assert.strictEqual(client.listenerCount("close") + client.listenerCount("ready"), 0)
      }),
    30_000
  )

  it.live.each(
    [
      ["of this copy of ioredis", Effect.succeed(Client)],
      ["of another copy", anotherCopy]
    ] as const
  )("mutexes on a client %s exclude other contenders and hand over", ([, copy]) =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const client = yield* made(server.port, { lazyConnect: true, enableOfflineQueue: false }, yield* copy)
      const layer = RedisMutex.layerRedis().pipe(Layer.provide(IoRedis.layerClient(client)))
      const own = Context.get(yield* Layer.build(layer), Mutex.Mutex)
      const others = yield* openMutex(server)
      const held = yield* Scope.make()
      yield* Scope.provide(others.acquire("m"), held)
      const waiting = yield* Effect.forkScoped(own.acquire("m"), { startImmediately: true })
      yield* Effect.sleep("100 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* Scope.close(held, Exit.void)
      yield* Fiber.join(waiting)
    }), 30_000)

  it.live(
    "a failed command is never sent later, even if the client resends its own commands",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const client = yield* made(server.port, { maxRetriesPerRequest: null, autoResendUnfulfilledCommands: true })
        const { redis } = yield* open(client, { commandTimeout: "300 millis" })
        yield* server.pause
        const late = yield* Effect.flip(redis.send("SET", "late", "1"))
        assert.match(String(late.cause), /no reply from .* within 300ms/)
        yield* server.restart
        const patient = yield* open(client, { commandTimeout: "20 seconds" })
        yield* server.pause
        const inFlight = yield* Effect.forkChild(Effect.flip(patient.redis.send("SET", "in flight", "1")), {
          startImmediately: true
        })
        yield* server.restart
        assert.match(String((yield* Fiber.join(inFlight)).cause), /lost before the reply/)
        yield* server.kill()
        yield* until("the client has noticed the lost connection", Effect.sync(() => client.status !== "ready"))
        const gone = yield* Effect.flip(redis.send("SET", "gone", "1"))
        yield* server.restart
        assert.match(String(gone.cause), /not connected/)
        yield* until("the connection is restored", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
        yield* Effect.promise(() => client.ping())
        assert.deepStrictEqual(yield* server.send("KEYS", "*"), [])
      }),
    30_000
  )

  it.live("a failed command without arguments is not sent later either", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const client = yield* made(server.port, { maxRetriesPerRequest: null, autoResendUnfulfilledCommands: true })
      const { redis } = yield* open(client, { commandTimeout: "300 millis" })
      yield* server.pause
      assert.match(String((yield* Effect.flip(redis.send("FLUSHALL"))).cause), /no reply from .* within 300ms/)
      const own = Effect.promise(() => client.set("kept", "1"))
      const setting = yield* Effect.forkChild(own, { startImmediately: true })
      yield* server.restart
      yield* Fiber.join(setting)
      yield* until("the layer's commands get replies", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      assert.strictEqual(yield* server.send("GET", "kept"), "1")
      assert.notInclude(String(yield* server.send("INFO", "commandstats")), "flushall")
    }), 30_000)

  it.live("ioredis's own timeouts do not end blocking commands or quiet subscriptions", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const timeouts = { commandTimeout: 300, socketTimeout: 300, blockingTimeout: 300, blockingTimeoutGrace: 0 }
      const client = yield* made(server.port, timeouts)
      for (const layer of [IoRedis.layerClient(client), IoRedis.layer({ url: server.url, client: timeouts })]) {
        const context = yield* Layer.build(Layer.fresh(layer))
        const queue = yield* Context.get(context, Subscriber).subscribe("news")
        const popped = yield* Effect.scoped(
          Effect.flatMap(Context.get(context, Redis.Redis).reserve, ({ send }) => send("BLPOP", "list", "0.9"))
        )
        assert.isNull(popped)
        assert.deepStrictEqual(Queue.sizeUnsafe(queue), 0)
      }
    }))

  it.live.each([
    ["keyPrefix", { keyPrefix: "app:" }],
    ["stringNumbers", { stringNumbers: true }],
    ["replyMapping", { replyMapping: "resp3" }]
  ] as ReadonlyArray<[string, RedisOptions]>)(
    "refuses a client with %s",
    ([option, options]) =>
      Effect.gen(function*() {
        const client = yield* made(1, { ...options, lazyConnect: true })
        const error = yield* Effect.flip(open(client))
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, option)
      })
  )

  it.live.each(
    [
      ["nothing", null],
      ["a URL", "redis://localhost"],
      ["a node-redis client", { duplicate: () => undefined, isReady: true }]
    ] as const
  )("refuses %s as a client", ([, client]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(open(client as unknown as Client))
      assert.strictEqual(error.message, "Configuration \"client\": it is not an ioredis client.")
    }))

  it.live("refuses a client that has subscribed or is closed", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const client = yield* made(server.port, { protocol: 2 })
      yield* Effect.promise(() => client.subscribe("news"))
      assert.match((yield* Effect.flip(open(client))).message, /it subscribes or monitors/)
      client.disconnect()
      yield* until("the client is closed", Effect.sync(() => client.status === "end"))
      assert.match((yield* Effect.flip(open(client))).message, /it is closed/)
    }))

  it.live("a client that cannot connect reports the reason", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(open(yield* made(1), { connectTimeout: "300 millis" }))
      assert.match(error.message, /nothing is listening at 127\.0\.0\.1:1 \(ECONNREFUSED\)/)
    }))

  it.live("refuses a client passed as connection options, and names the right option", () =>
    Effect.gen(function*() {
      const client = yield* made(1, { lazyConnect: true })
      for (
        const layer of [
          IoRedis.layer({ client: client as object }),
          IoRedis.layerFromEnv({ client: client as object }),
          IoRedis.layerCluster({ nodes: [{ port: 1 }], client: client as object })
        ]
      ) {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(Layer.fresh(layer))))
        assert.match((error as InvalidConfig).message, /pass it to IoRedis\.layerClient/)
      }
    }))
})

describe("Redis.send", () => {
  it.live.each([
    "QUIT",
    "monitor",
    "RESET",
    "HELLO 3",
    "SELECT 1",
    "SUBSCRIBE c",
    "CLIENT REPLY OFF",
    "MULTI",
    "BLPOP l 0"
  ])(
    "refuses %s, which would break the connection for all callers",
    (text) =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const { redis } = yield* open(yield* made(server.port))
        const [command, ...args] = text.split(" ")
        const error = yield* Effect.flip(redis.send(command!, ...args))
        assert.match(String(error.cause), /Redis\.send refuses [A-Z]+: .*(Redis\.reserve|Redis\.subscribe|the layer)/)
        assert.strictEqual(yield* redis.send("PING"), "PONG")
      })
  )

  it.live("SUBSCRIBE in a transaction on a reserved connection fails without crashing the process", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const { redis } = yield* open(yield* made(server.port))
      const error = yield* Effect.scoped(Effect.gen(function*() {
        const { send } = yield* redis.reserve
        yield* send("MULTI")
        return yield* Effect.flip(send("SUBSCRIBE", "c"))
      }))
      assert.match(String(error.cause), /use Redis\.subscribe/)
    }))
})

describe("a command that fails", () => {
  it.live("does not block other commands if it cannot be encoded", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const { redis } = yield* open(yield* made(server.port), { commandTimeout: "5 seconds" })
      const half = "x".repeat(2 ** 28)
      const replies = yield* Effect.forEach(
        [["ECHO", "a"], ["SET", "k", half, half], ["ECHO", "b"]] as const,
        ([command, ...args]) => Effect.result(redis.send(command, ...args)),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(replies.map((reply) => Result.isSuccess(reply) && reply.success), ["a", false, "b"])
      assert.match(
        String(Result.isFailure(replies[1]!) && replies[1].failure.cause),
        /cannot be written: Invalid string length/
      )
    }), 30_000)

  it.live("does not retain the value that it would have written", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const client = yield* made(server.port)
      yield* Effect.gen(function*() {
        const redis = yield* Redis.Redis
        yield* redis.send("SET", "{k}:simba-token", "unreadable")
        yield* redis.send("LPUSH", "list", "x")
        const secret = "the secret value"
        const refused = yield* Effect.flip(redis.send("SET", "list", secret, "PX", "no number"))
        yield* server.send("ACL", "SETUSER", "default", "-set", "-evalsha", "-eval")
        const denied = yield* Effect.flip(redis.send("SET", "k", secret))
        const fenced = yield* Effect.flip(RedisFence.set({ resource: "k", token: FencingToken.make(1) }, "k", secret))
        yield* server.kill()
        const gone = yield* Effect.flip(RedisFence.set({ resource: "k", token: FencingToken.make(1) }, "k", secret))
        for (const error of [refused, denied, fenced, gone]) assert.notInclude(inspect(error, { depth: 20 }), secret)
        assert.include(inspect(fenced, { depth: 20 }), "NOPERM")
      }).pipe(Effect.provide(Layer.fresh(IoRedis.layerClient(client))))
    }), 30_000)
})
