import { BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import { type Notice, Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { RedisStreams } from "@effect-simba/redis/streams"
import { assert, describe, it, layer } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Exit, Fiber, Layer, Option, Queue, Redacted, Scope } from "effect"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as Redis from "effect/persistence/Redis"
import { createServer, type Server as Listener } from "node:net"
import { inspect } from "node:util"
import {
  channelsOpen,
  connections,
  freshName,
  killConnections,
  openStore,
  RedisServer,
  until
} from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

const open = (server: Server, options?: IoRedis.Options) =>
  Effect.map(Layer.build(Layer.fresh(IoRedis.layer({ url: server.url, ...options }))), (context) => ({
    redis: Context.get(context, Redis.Redis),
    subscriber: Context.get(context, Subscriber),
    client: Context.get(context, IoRedis.IoRedis).client
  }))

/** Builds a layer and closes it immediately. Fails if the layer cannot be built. */
const build = (options: IoRedis.Options) =>
  Effect.asVoid(Effect.scoped(Layer.build(Layer.fresh(IoRedis.layer(options)))))

const sum = Redis.script((key: string, a: number, b: number) => [key, a, b], {
  numberOfKeys: 1,
  lua: "return tostring(ARGV[1] + ARGV[2])"
}).withReturnType<string>()

/** Returns the next notice. Fails the test if there is none. */
const next = (queue: Queue.Dequeue<Notice>) =>
  Effect.timeoutOrElse(Queue.take(queue), {
    duration: "10 seconds",
    orElse: () => Effect.die(new Error("no notice within 10 seconds"))
  })

const channelsGone = (server: Server) =>
  until("no channels are subscribed any more", Effect.map(channelsOpen(server), (channels) => channels.length === 0))

/** A port with no listener. */
const closedPort = Effect.callback<number>((resume) => {
  const probe = createServer()
  probe.listen(0, "127.0.0.1", () => {
    const { port } = probe.address() as { readonly port: number }
    probe.close(() => resume(Effect.succeed(port)))
  })
})

/** Counts the connections to a port during this time. */
const arrivals = (port: number, millis: number) =>
  Effect.callback<number>((resume) => {
    let count = 0
    const listener = createServer((socket) => {
      count++
      socket.destroy()
    })
    listener.listen(port, "127.0.0.1", () =>
      setTimeout(() =>
        listener.close(() => resume(Effect.succeed(count))), millis))
  })

/** A server whose first reply says that it is loading its data, and estimates how many seconds that will take. */
const loading = (seconds: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Listener>((resume) => {
        let isLoading = true
        const listener = createServer((socket) => {
          socket.on("error", () => undefined).on("data", (data) => {
            for (const [name] of String(data).matchAll(/(?<=\*\d+\r\n\$\d+\r\n)\w+/g)) {
              const command = name.toUpperCase()
              const info = isLoading ? `loading:1\r\nloading_eta_seconds:${seconds}\r\n` : "loading:0\r\n"
              if (command === "INFO") isLoading = false
              socket.write(
                command === "HELLO"
                  ? "-ERR unknown command 'HELLO'\r\n"
                  : command === "INFO"
                  ? `$${info.length}\r\n${info}\r\n`
                  : "+OK\r\n"
              )
            }
          })
        })
        listener.listen(0, "127.0.0.1", () => resume(Effect.succeed(listener)))
      }),
      (listener) => Effect.sync(() => listener.close())
    ),
    (listener) => (listener.address() as { readonly port: number }).port
  )

layer(RedisServer.layer, { excludeTestServices: true })("Effect's Redis service on ioredis", (it) => {
  it.effect("send, eval and subscribe work", () =>
    Effect.gen(function*() {
      const { client, redis } = yield* open(yield* RedisServer)
      assert.strictEqual(yield* redis.send("SET", "key", "välue ✓"), "OK")
      assert.strictEqual(yield* redis.send("GET", "key"), "välue ✓")
      assert.deepStrictEqual(yield* redis.send("CONFIG", "GET", "maxmemory-policy"), ["maxmemory-policy", "noeviction"])
      assert.strictEqual(yield* redis.eval(sum)("key", 1, 2), "3")
      const queue = yield* redis.subscribe("news")
      assert.strictEqual(yield* redis.send("PUBLISH", "news", "hello"), 1)
      assert.deepStrictEqual(yield* Queue.take(queue), { channel: "news", message: "hello" })
      assert.strictEqual(client.status, "ready")
    }))

  it.effect("texts of any length and alphabet arrive unchanged", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const texts = ["", "a", "x".repeat(255), "y".repeat(256), "z".repeat(70_000), "é", "välue ✓", "😀\r\n$3\r\n"]
      const { redis } = yield* open(server)
      const key = freshName("texts")
      for (const text of texts) yield* redis.send("RPUSH", key, text, "ascii")
      yield* redis.send("RPUSH", key, ...texts)
      const stored = yield* server.send("LRANGE", key, "0", "-1")
      assert.deepStrictEqual(stored, [...texts.flatMap((text) => [text, "ascii"]), ...texts])
    }).pipe(Effect.scoped))

  it.effect("a non-string value arrives in ioredis's encoding without affecting other commands", () =>
    Effect.gen(function*() {
      const { redis } = yield* open(yield* RedisServer)
      const key = freshName("untyped")
      const untyped = [5, true, Buffer.from([0xff, 0xfe])] as ReadonlyArray<unknown> as ReadonlyArray<string>
      const echo = (text: string) => redis.send<string>("ECHO", text)
      const replies = yield* Effect.all([
        echo("one"),
        ...untyped.map((value) => redis.send("RPUSH", key, value)),
        echo("two"),
        redis.send("LRANGE", key, "0", "1"),
        echo("three")
      ], { concurrency: "unbounded" })
      assert.deepStrictEqual<unknown>(replies, ["one", 1, 2, 3, "two", ["5", "true"], "three"])
    }).pipe(Effect.scoped))

  it.effect("an error reply from the server arrives as the client's own error", () =>
    Effect.gen(function*() {
      const { redis } = yield* open(yield* RedisServer)
      const error = yield* Effect.flip(redis.send("GET"))
      assert.instanceOf(error, Redis.RedisError)
      assert.match(String(error.cause), /wrong number of arguments/)
    }))

  it.effect("a blocking command on a reserved connection does not delay other commands", () =>
    Effect.gen(function*() {
      const { redis } = yield* open(yield* RedisServer)
      const list = freshName("list")
      const popped = yield* Effect.forkScoped(
        Effect.scoped(Effect.flatMap(redis.reserve, (reserved) => reserved.send("BLPOP", list, "0")))
      )
      // Longer than the command timeout, which does not apply to reserved connections
      yield* Effect.sleep("1200 millis")
      assert.strictEqual(yield* redis.send("PING"), "PONG")
      assert.isUndefined(popped.pollUnsafe())
      yield* redis.send("RPUSH", list, "x")
      assert.deepStrictEqual(yield* Fiber.join(popped), [list, "x"])
    }))

  it.effect("interrupting a blocking command closes its connection, so it cannot take an item later", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { redis } = yield* open(server, { client: { connectionName: "interrupted" } })
      const list = freshName("list")
      const before = yield* connections(server, "interrupted")
      const popped = yield* Effect.forkScoped(
        Effect.scoped(Effect.flatMap(redis.reserve, (reserved) => reserved.send("BLPOP", list, "0")))
      )
      const blocked = (count: number) =>
        until(
          `${count} blocked`,
          Effect.map(server.send("INFO", "clients"), (info) => String(info).includes(`blocked_clients:${count}\r`))
        )
      yield* blocked(1)
      const reserved = (yield* connections(server, "interrupted")).filter((id) => !before.includes(id))
      assert.strictEqual(reserved.length, 1)
      yield* Fiber.interrupt(popped)
      yield* blocked(0)
      assert.notIncludeMembers(yield* connections(server, "interrupted"), reserved)
      yield* redis.send("RPUSH", list, "x")
      assert.strictEqual(yield* redis.send("LLEN", list), 1)
    }))

  it.effect("a reserved connection is reused", () =>
    Effect.gen(function*() {
      const { redis } = yield* open(yield* RedisServer)
      const clientId = Effect.scoped(Effect.flatMap(redis.reserve, (reserved) => reserved.send("CLIENT", "ID")))
      assert.strictEqual(yield* clientId, yield* clientId)
      assert.notStrictEqual(yield* clientId, yield* redis.send("CLIENT", "ID"))
    }))

  it.effect("a hundred subscriptions share one connection and leave nothing behind", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      yield* channelsGone(server)
      const { redis, subscriber } = yield* open(server)
      assert.strictEqual((yield* connections(server, "simba:subscriber")).length, 0)
      const scope = yield* Scope.make()
      const queues = yield* Scope.provide(
        Effect.forEach(
          Array.from({ length: 100 }, (_, index) => `channel ${index % 80}`),
          (channel) => subscriber.subscribe(channel),
          { concurrency: "unbounded" }
        ),
        scope
      )
      assert.strictEqual((yield* connections(server, "simba:subscriber")).length, 1)
      assert.strictEqual((yield* channelsOpen(server)).length, 80)
      for (let i = 0; i < 80; i++) assert.strictEqual(yield* redis.send("PUBLISH", `channel ${i}`, `text ${i}`), 1)
      for (const [index, queue] of queues.entries()) {
        assert.deepStrictEqual(yield* next(queue), {
          _tag: "Message",
          channel: `channel ${index % 80}`,
          text: `text ${index % 80}`
        })
      }
      yield* Scope.close(scope, Exit.void)
      yield* channelsGone(server)
      assert.strictEqual((yield* connections(server, "simba:subscriber")).length, 1)
    }), { tags: ["B35"] })

  it.effect("a channel stays subscribed until its last listener leaves", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { redis, subscriber } = yield* open(server)
      const stays = yield* subscriber.subscribe("shared")
      yield* Effect.scoped(subscriber.subscribe("shared"))
      // The message arrives after everything sent when the other listener left
      yield* subscriber.subscribe("barrier")
      assert.strictEqual(yield* redis.send("PUBLISH", "shared", "still"), 1)
      assert.deepStrictEqual(yield* next(stays), { _tag: "Message", channel: "shared", text: "still" })
    }))

  it.effect("a channel receives messages after it was left and immediately rejoined", () =>
    Effect.gen(function*() {
      const { redis, subscriber } = yield* open(yield* RedisServer)
      for (let i = 0; i < 50; i++) {
        yield* Effect.scoped(subscriber.subscribe("again"))
        const text = yield* Effect.scoped(Effect.gen(function*() {
          const queue = yield* subscriber.subscribe("again")
          assert.strictEqual(yield* redis.send("PUBLISH", "again", String(i)), 1)
          return yield* next(queue)
        }))
        assert.deepStrictEqual(text, { _tag: "Message", channel: "again", text: String(i) })
      }
    }))

  it.effect(
    "losing the subscriber connection causes a gap in every subscription, and all are restored",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        yield* channelsGone(server)
        const { redis, subscriber } = yield* open(server)
        const queues = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => `channel ${index}`),
          (channel) => subscriber.subscribe(channel)
        )
        for (let round = 0; round < 3; round++) {
          assert.strictEqual(yield* killConnections(server, "simba:subscriber"), 1)
          for (const queue of queues) assert.deepStrictEqual(yield* next(queue), { _tag: "Gap" })
          for (const [index, queue] of queues.entries()) {
            assert.strictEqual(yield* redis.send("PUBLISH", `channel ${index}`, `round ${round}`), 1)
            const notice = yield* next(queue)
            assert.deepStrictEqual(notice, { _tag: "Message", channel: `channel ${index}`, text: `round ${round}` })
          }
        }
        assert.strictEqual((yield* connections(server, "simba:subscriber")).length, 1)
      }),
    { tags: ["B1", "B2"] }
  )

  it.effect("a channel is not restored if its listener leaves while it is being restored", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { subscriber } = yield* open(server, { client: { connectionName: "restoring" } })
      const leaving = yield* Scope.make()
      const listen = (channel: string, listener: (text: string | undefined) => void) =>
        subscriber.listen!(channel, listener)
      const run = Effect.runForkWith(yield* Effect.context<never>())
      yield* listen("restored first", (text) => {
        if (text === undefined) run(Scope.close(leaving, Exit.void))
      })
      // More channels than one batch restores
      for (let i = 0; i < 600; i++) yield* listen(`restored between ${i}`, () => undefined)
      yield* Scope.provide(listen("left", () => undefined), leaving)
      const last = yield* subscriber.subscribe("restored last")
      yield* killConnections(server, "restoring")
      assert.deepStrictEqual(yield* next(last), { _tag: "Gap" })
      const channels = yield* channelsOpen(server)
      assert.include(channels, "restored between 599")
      assert.notInclude(channels, "left")
    }).pipe(Effect.scoped))

  it.effect("a slow reader receives a gap in place of missed notices", () =>
    Effect.gen(function*() {
      const { redis, subscriber } = yield* open(yield* RedisServer)
      const queue = yield* subscriber.subscribe("flood")
      for (let i = 0; i < 1000; i++) yield* redis.send("PUBLISH", "flood", String(i))
      yield* subscriber.subscribe("after the flood")
      const notices = yield* Queue.takeAll(queue)
      assert.isBelow(notices.length, 1000)
      assert.isTrue(notices.some((notice) => notice._tag === "Gap"))
      const last = notices.at(-1)!
      assert.strictEqual(last._tag === "Message" ? last.text : undefined, "999")
    }))

  it.effect("killing the command connection fails in-flight commands, and the connection is restored", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server, { client: { connectionName: "killed" } })
      const m = freshName("killed")
      for (let round = 0; round < 3; round++) {
        assert.isAtLeast(yield* killConnections(server, "killed"), 1)
        yield* until(
          "the connection is back",
          Effect.map(Effect.exit(store.owner(m)), (exit) => {
            const error = Exit.findErrorOption(exit)
            if (Option.isNone(error)) return Exit.isSuccess(exit)
            assert.instanceOf(error.value, BackendError)
            assert.isTrue((error.value as BackendError).isRetryable, error.value.message)
            return false
          })
        )
      }
    }))

  it.effect("Effect's own RateLimiter runs on this layer", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const limiter = RateLimiter.layer.pipe(
        Layer.provide(RateLimiter.layerStoreRedis({ prefix: "limit:" })),
        Layer.provide(IoRedis.layer({ url: server.url }))
      )
      yield* Effect.gen(function*() {
        const { consume } = yield* RateLimiter.RateLimiter
        const options = { key: "k", limit: 3, window: "1 minute", onExceeded: "fail" } as const
        for (const remaining of [2, 1, 0]) assert.strictEqual((yield* consume(options)).remaining, remaining)
        const error = yield* Effect.flip(consume(options))
        assert.strictEqual(error.reason._tag, "RateLimitExceeded")
      }).pipe(Effect.provide(limiter))
    }))

  it.effect("closing the layer closes its connections, even while a blocking command is in flight", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const name = "closing"
      const scope = yield* Scope.make()
      const { redis, subscriber } = yield* Scope.provide(open(server, { client: { connectionName: name } }), scope)
      yield* Scope.provide(subscriber.subscribe("closing"), scope)
      const popped = yield* Effect.forkScoped(
        Effect.scoped(Effect.flatMap(redis.reserve, (reserved) => reserved.send("BLPOP", freshName("list"), "0")))
      )
      yield* until("three", Effect.map(connections(server, name), (ids) => ids.length === 3))
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(popped)))
      yield* until("none", Effect.map(connections(server, name), (ids) => ids.length === 0))
    }))
})

describe("an outage", () => {
  it.live("commands fail fast with a retryable error while the server is down, and work once it is back", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const store = yield* openStore(server)
      const m = freshName("gone")
      yield* store.owner(m)
      yield* server.kill()
      for (let i = 0; i < 5; i++) {
        const error = yield* Effect.flip(Effect.timeout(store.owner(m), "5 seconds"))
        assert.instanceOf(error, BackendError)
        assert.isTrue((error as BackendError).isRetryable)
      }
      yield* server.restart
      yield* until("the server replies again", Effect.map(Effect.exit(store.owner(m)), Exit.isSuccess))
    }))

  it.live("when the server hangs, commands fail after commandTimeout and the connection is replaced", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const { redis } = yield* open(server, { commandTimeout: "500 millis" })
      const before = yield* redis.send("CLIENT", "ID")
      yield* server.pause
      const begun = performance.now()
      const error = yield* Effect.flip(Effect.timeout(redis.send("PING"), "5 seconds"))
      assert.instanceOf(error, Redis.RedisError)
      assert.match(
        String((error as Redis.RedisError).cause),
        /no reply from 127\.0\.0\.1:\d+ within 500ms: whether the server ran the command is unknown/
      )
      assert.isAtLeast(performance.now() - begun, 490)
      // The connection has been replaced, so no caller waits for the missing reply
      for (let i = 0; i < 5; i++) {
        assert.instanceOf(yield* Effect.flip(Effect.timeout(redis.send("PING"), "5 seconds")), Redis.RedisError)
      }
      yield* Effect.sleep("1500 millis")
      yield* server.resume
      yield* until("the server replies again", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      assert.notStrictEqual(yield* redis.send("CLIENT", "ID"), before)
    }))

  it.live("after the server hangs, every subscription reports a gap", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const { redis, subscriber } = yield* open(server, { commandTimeout: "500 millis" })
      const queue = yield* subscriber.subscribe("hanging")
      yield* server.pause
      // Long enough for the subscriber's heartbeat to detect the hang
      yield* Effect.sleep("5 seconds")
      yield* server.resume
      assert.deepStrictEqual(yield* next(queue), { _tag: "Gap" })
      yield* until(
        "the subscription receives messages again",
        Effect.map(Effect.exit(redis.send("PUBLISH", "hanging", "x")), Exit.isSuccess)
      )
    }))
})

describe("building the layer", () => {
  /** Builds a layer with options that the types forbid. */
  const prefixed: object = { keyPrefix: "app:" }

  it.live("a wrong password fails the build and leaves no connections open", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--requirepass", "right"] })
      const error = yield* Effect.flip(build({ url: `redis://:wrong@127.0.0.1:${server.port}` }))
      assert.instanceOf(error, BackendError)
      assert.match(error.message, /WRONGPASS|NOAUTH/)
      assert.notInclude(error.message, "wrong@")
      yield* Effect.sleep("500 millis")
      const url = `redis://:right@127.0.0.1:${server.port}`
      yield* Effect.scoped(Effect.gen(function*() {
        const { redis } = yield* open(server, { url })
        const list = yield* redis.send<string>("CLIENT", "LIST")
        assert.strictEqual(list.trim().split("\n").length, 1, list)
      }))
    }))

  it.live("a server that loads its data sooner than expected is used immediately", () =>
    Effect.gen(function*() {
      const port = yield* loading(9)
      yield* build({ url: `redis://127.0.0.1:${port}` })
    }).pipe(Effect.scoped))

  it.live("a refused database causes an error instead of commands in database 0", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.send("ACL", "SETUSER", "app", "on", ">pass", "~*", "&*", "+@all", "-select")
      const user = { username: "app", password: "pass" }
      for (const client of [{ db: 99 }, { db: 2, ...user }]) {
        const error = yield* Effect.flip(build({ url: server.url, client }))
        assert.instanceOf(error, BackendError)
        assert.isFalse((error as BackendError).isRetryable)
        assert.match(error.message, /DB index is out of range|NOPERM/)
      }
      yield* server.send("ACL", "SETUSER", "app", "+select")
      yield* Effect.scoped(Effect.gen(function*() {
        const { redis } = yield* open(server, { client: { db: 2, connectionName: "later", ...user } })
        yield* redis.send("SET", "key", "2")
        yield* server.send("ACL", "SETUSER", "app", "-select")
        yield* killConnections(server, "later")
        for (let i = 0; i < 30; i++) {
          yield* Effect.exit(redis.send("SET", "key", "0"))
          yield* Effect.sleep("10 millis")
        }
        assert.isNull(yield* server.send("GET", "key"), "nothing was written to database 0")
        yield* server.send("ACL", "SETUSER", "app", "+select")
        yield* until("the connection is back", Effect.map(Effect.exit(redis.send("GET", "key")), Exit.isSuccess))
        assert.strictEqual(yield* redis.send("GET", "key"), "2")
      }))
    }))

  it.live("errors never contain a refused password", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--requirepass", "right"] })
      const error = yield* Effect.flip(build({ url: server.url, client: { password: "mistyped" } }))
      assert.match(error.message, /WRONGPASS/)
      assert.notInclude(inspect(error, { depth: 10 }), "mistyped")
    }))

  it.live("an error says that a Cluster refused the password", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--cluster-enabled yes", "--requirepass", "right"] })
      for (const client of [{ password: "mistyped" }, {}]) {
        const cluster = IoRedis.layerCluster({ nodes: [{ host: "127.0.0.1", port: server.port }], client })
        const error = yield* Effect.flip(Effect.scoped(Layer.build(cluster)))
        assert.instanceOf(error, BackendError)
        assert.isFalse((error as BackendError).isRetryable)
        assert.match(error.message, /WRONGPASS|NOAUTH/)
        assert.notInclude(inspect(error, { depth: 10 }), "mistyped")
      }
    }))

  it.live.each(
    [
      ["a URL", (port: number) => `redis://app:secret@127.0.0.1:${port}`],
      ["a text", (port: number) => ` app:secret@127.0.0.1:${port}`],
      ["a URL with TLS", (port: number) => `rediss://app:secret@127.0.0.1:${port}`]
    ] as const
  )("errors never contain the password of a Cluster node given in %s", ([, nodeAt]) =>
    Effect.gen(function*() {
      const cluster = IoRedis.layerCluster({ nodes: [nodeAt(yield* closedPort)] })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(cluster)))
      assert.match(
        error.message,
        /no node of the Cluster can be reached at 127\.0\.0\.1:\d+: nothing is listening there/
      )
      assert.notInclude(inspect(error, { depth: 10 }), "secret")
    }))

  it.live("TLS given with one Cluster node and the password given with another apply to all nodes", () =>
    Effect.gen(function*() {
      const port = yield* closedPort
      const cluster = IoRedis.layerCluster({ nodes: [`app:secret@127.0.0.1:${port}`, `rediss://127.0.0.1:${port}`] })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(cluster)))
      assert.include(error.message, "it does not use TLS")
    }))

  it.live.each([
    "",
    "http://secret@localhost",
    "localhost:port",
    "redis://:100%secret@localhost",
    "redis://:secret@localhost/3"
  ])(
    "refuses %j as a Cluster node",
    (node) =>
      Effect.gen(function*() {
        const cluster = IoRedis.layerCluster({ nodes: [node] })
        const error = yield* Effect.flip(Effect.scoped(Layer.build(cluster)))
        assert.strictEqual((error as InvalidConfig).option, "nodes")
        assert.notInclude(error.message, "secret")
      })
  )

  it.live("replies keep their types and shapes despite stringNumbers and replyMapping", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const untyped: object = { stringNumbers: true, replyMapping: "resp3" }
      const { redis } = yield* open(server, { client: { ...untyped } })
      assert.strictEqual(yield* redis.send("INCR", "count"), 1)
      assert.deepStrictEqual(yield* redis.send("CONFIG", "GET", "port"), ["port", String(server.port)])
    }).pipe(Effect.scoped))

  it.live("a refused connection is reported as an outage without a retry", () =>
    Effect.gen(function*() {
      const port = yield* closedPort
      const error = yield* Effect.flip(build({ url: `redis://127.0.0.1:${port}` }))
      assert.instanceOf(error, BackendError)
      assert.isTrue((error as BackendError).isRetryable)
      assert.match(error.message, /ECONNREFUSED/)
      assert.strictEqual(yield* arrivals(port, 700), 0)
    }))

  it.live("connecting to an unresponsive host fails after connectTimeout", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.pause
      const error = yield* Effect.flip(
        Effect.timeout(
          build({ url: server.url, connectTimeout: "300 millis", commandTimeout: "300 millis" }),
          "10 seconds"
        )
      )
      assert.instanceOf(error, BackendError)
    }))

  it.live.each(["", "not a url", "http://localhost:6379", "localhost:6379", "redis//x", "unix:/tmp/x"])(
    "refuses %j as a URL",
    (url) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(build({ url }))
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, "url")
      })
  )

  it.live("refuses a connection option among the mutex options, where it would have no effect", () =>
    Effect.gen(function*() {
      const options = { service: "s", ttl: "10 seconds", url: "redis://nowhere.invalid:1" } as const
      for (
        const refused of [
          RedisMutex.layer(options),
          RedisMutex.layerFromEnv(options),
          RedisStreams.layer(options),
          RedisStreams.layerFromEnv(options)
        ]
      ) {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(refused as Layer.Layer<unknown, unknown>)))
        assert.strictEqual(
          (error as Error).message,
          "Configuration \"url\": it is a connection option: set it inside redis."
        )
      }
    }))

  it.live("refuses a nonexistent connection option instead of connecting to the default server", () =>
    Effect.gen(function*() {
      const misplaced = { host: "nowhere.invalid" } as IoRedis.Options
      const text = "redis://nowhere.invalid:1" as IoRedis.Options
      for (
        const [option, refused] of [
          ["host", IoRedis.layer(misplaced)],
          ["host", IoRedis.layerFromEnv(misplaced)],
          ["host", RedisMutex.layer({ redis: misplaced })],
          ["host", RedisStreams.layer({ service: "s", redis: misplaced })],
          ["0", RedisMutex.layer({ redis: text })]
        ] as const
      ) {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(refused as Layer.Layer<unknown, unknown>)))
        assert.strictEqual(
          (error as Error).message,
          `Configuration "${option}": it does not exist: set url, or this inside client.`
        )
      }
    }))

  it.live.each([
    "redis://:100%sure@localhost",
    "redis://u%er@localhost",
    "redis://localhost/abc",
    "redis://localhost?db=x",
    "redis://localhost?family=6",
    "redis://user:1?sure@localhost",
    "redis://user:1#sure@localhost"
  ])(
    "refuses the malformed URL %j",
    (url) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(build({ url }))
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, "url")
        assert.notInclude(error.message, "sure")
      })
  )

  it.live("decodes the escaped parts of a URL", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      yield* server.send("ACL", "SETUSER", "a@b", "on", ">100%: /?#", "~*", "&*", "+@all")
      const user = `${encodeURIComponent("a@b")}:${encodeURIComponent("100%: /?#")}`
      for (
        const url of [`redis://${user}@127.0.0.1:${server.port}/3`, `redis://${user}@127.0.0.1:${server.port}?db=3`]
      ) {
        const { redis } = yield* open(server, { url })
        assert.match(yield* redis.send<string>("CLIENT", "INFO"), /\bdb=3 .*\buser=a@b /)
      }
    }).pipe(Effect.scoped))

  it.live.each([-1, 1.5, NaN])("refuses the database %d", (db) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(build({ client: { db } }))
      assert.instanceOf(error, InvalidConfig)
      assert.strictEqual((error as InvalidConfig).option, "db")
    }))

  it.live("errors do not contain a refused URL, because it may contain a password", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(build({ url: Redacted.make("http://:secret@localhost") }))
      assert.notInclude(error.message, "secret")
    }))

  it.live.each([0, -1, Infinity, NaN].map((millis) => ({ millis })))(
    "refuses a timeout of $millis ms",
    ({ millis }) =>
      Effect.gen(function*() {
        for (const option of ["commandTimeout", "connectTimeout"] as const) {
          const error = yield* Effect.flip(build({ [option]: millis }))
          assert.instanceOf(error, InvalidConfig)
          assert.strictEqual((error as InvalidConfig).option, option)
        }
      })
  )

  it.live.each([IoRedis.layer({ client: { ...prefixed } }), IoRedis.layerFromEnv({ client: { ...prefixed } })])(
    "refuses keyPrefix, because channels would lack it (%#)",
    (layer) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(Layer.fresh(layer))))
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, "keyPrefix")
      })
  )

  it.live("refuses keyPrefix for a Cluster", () =>
    Effect.gen(function*() {
      const nodes = [{ host: "127.0.0.1", port: 1 }]
      for (const options of [{ nodes, client: { ...prefixed } }, { nodes, cluster: { ...prefixed } }]) {
        const error = yield* Effect.flip(Effect.scoped(Layer.build(IoRedis.layerCluster(options))))
        assert.strictEqual((error as InvalidConfig).option, "keyPrefix")
      }
    }))

  it.live("refuses reads from Cluster replicas", () =>
    Effect.gen(function*() {
      const nodes = [{ host: "127.0.0.1", port: 1 }]
      const error = yield* Effect.flip(
        Effect.scoped(Layer.build(IoRedis.layerCluster({ nodes, cluster: { scaleReads: "slave" } })))
      )
      assert.strictEqual((error as InvalidConfig).option, "scaleReads")
    }))

  it.live("from the environment", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start({ args: ["--requirepass", "from env"] })
      const env = {
        REDIS_URL: server.url,
        REDIS_PASSWORD: "from env",
        REDIS_DB: "3",
        REDIS_COMMAND_TIMEOUT: "5 seconds"
      }
      const database = Effect.gen(function*() {
        const redis = yield* Redis.Redis
        return /\bdb=(\d+)/.exec(yield* redis.send<string>("CLIENT", "INFO"))?.[1]
      })
      const provider = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
      const withEnv = (options?: IoRedis.Options) =>
        Layer.fresh(IoRedis.layerFromEnv(options)).pipe(Layer.provide(provider))
      assert.strictEqual(yield* Effect.provide(database, withEnv()), "3")
      // Variables that the code overrides are not read
      const unreadable = { ...env, REDIS_DB: "three", REDIS_COMMAND_TIMEOUT: "soon", REDIS_CONNECT_TIMEOUT: "soon" }
      const overridden = Layer.fresh(
        IoRedis.layerFromEnv({ commandTimeout: "1 second", connectTimeout: "1 second", client: { db: 4 } })
      ).pipe(Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: unreadable }))))
      assert.strictEqual(yield* Effect.provide(database, overridden), "4")
      assert.strictEqual(
        yield* Effect.provide(database, withEnv({ client: { db: 5 } })),
        "5",
        "options set in code take precedence"
      )
      const absent: IoRedis.Options = {
        url: undefined,
        commandTimeout: undefined,
        client: { password: undefined, db: undefined, host: undefined }
      }
      assert.strictEqual(yield* Effect.provide(database, withEnv(absent)), "3", "undefined counts as unset")
      const passed = Redacted.make(`redis://:from%20env@127.0.0.1:${server.port}/5`)
      const others = ConfigProvider.layer(
        ConfigProvider.fromEnv({ env: { ...env, REDIS_USERNAME: "other", REDIS_PASSWORD: "other" } })
      )
      assert.strictEqual(
        yield* Effect.provide(
          database,
          Layer.fresh(IoRedis.layerFromEnv({ url: passed })).pipe(Layer.provide(others))
        ),
        "5",
        "the parts of a URL given in code take precedence"
      )
      assert.strictEqual(
        yield* Effect.provide(database, withEnv({ url: server.url })),
        "3",
        "the parts that a URL lacks come from the environment"
      )
      assert.strictEqual(
        yield* Effect.provide(
          database,
          Layer.fresh(IoRedis.layerFromEnv({ url: passed })).pipe(
            Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { REDIS_DB: "three" } })))
          )
        ),
        "5",
        "variables that the URL overrides are not read"
      )
      const invalid = ConfigProvider.layer(ConfigProvider.fromEnv({ env: { ...env, REDIS_DB: "three" } }))
      const error = yield* Effect.flip(
        Effect.provide(database, Layer.fresh(IoRedis.layerFromEnv()).pipe(Layer.provide(invalid)))
      )
      assert.strictEqual(error._tag, "ConfigError")
      assert.include((error as { readonly message: string }).message, "REDIS_DB")
    }))
})
