import { Subscriber } from "@effect-simba/core/Subscriber"
import { FakeNetwork, FakeRedis, TestRedis } from "@effect-simba/testkit"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Queue, type Scope } from "effect"
import * as Redis from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

/** Runs all fibers until each one is waiting for something. */
const settled = Effect.repeat(Effect.yieldNow, { times: 50 })

const servicesOf = (options?: FakeRedis.ClientOptions) =>
  Effect.map(Layer.build(FakeRedis.layerClient(options)), (context) => ({
    redis: Context.get(context, Redis.Redis),
    subscriber: Context.get(context, Subscriber)
  }))

const double = Redis.script((key: string, by: number) => [key, by], {
  numberOfKeys: 1,
  lua: `return redis.call('INCRBY', KEYS[1], ARGV[1] * 2)`
}).withReturnType<number>()

const test = (name: string, body: Effect.Effect<void, unknown, FakeRedis.FakeRedis | Redis.Redis | Subscriber>) =>
  it.effect(name, () => Effect.provide(body, TestRedis.layer()))

const serverTest = (name: string, body: Effect.Effect<void, unknown, FakeRedis.FakeRedis | Scope.Scope>) =>
  it.effect(name, () => Effect.provide(body, FakeRedis.layer()))

describe("time", () => {
  test(
    "a key expires on time, and its `expired` event follows shortly after",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      const subscriber = yield* Subscriber
      yield* redis.send("CONFIG", "SET", "notify-keyspace-events", "Ex")
      const events = yield* subscriber.subscribe("__keyevent@0__:expired")
      yield* redis.send("SET", "a", "1", "PX", "1000")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* redis.send("GET", "a"), "1")
      assert.strictEqual(yield* redis.send("PTTL", "a"), 0)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* server.keys, [])
      yield* TestClock.adjust("100 millis")
      assert.deepStrictEqual(yield* Queue.take(events), {
        _tag: "Message",
        channel: "__keyevent@0__:expired",
        text: "a"
      })
    }).pipe(Effect.scoped)
  )

  test(
    "TIME returns seconds since 1970, and no two commands share a timestamp",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      const [seconds] = yield* redis.send<[string, string]>("TIME")
      assert.strictEqual(seconds.length, 10)
      for (let i = 0; i < 5; i++) yield* redis.send("PING")
      const times = (yield* server.trace).map(({ micros }) => micros)
      assert.deepStrictEqual(times, [...new Set(times)].sort((a, b) => a - b))
    })
  )

  test(
    "the server's clock can be stepped forward and back",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      yield* redis.send("SET", "a", "1", "PX", "5000")
      yield* server.stepClock("-1 second")
      assert.isAbove(yield* redis.send<number>("PTTL", "a"), 5900)
      yield* server.stepClock("10 seconds")
      assert.isNull(yield* redis.send("GET", "a"))
      const before = yield* server.now
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual((yield* server.now) - before, 3000)
    })
  )
})

describe("clients", () => {
  serverTest(
    "share data within a database, and appear in the trace by name",
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      const a = yield* servicesOf({ name: "a" })
      const b = yield* servicesOf({ name: "b" })
      const other = yield* servicesOf({ name: "other", db: 3 })
      yield* a.redis.send("SET", "k", "1")
      assert.strictEqual(yield* b.redis.send("GET", "k"), "1")
      assert.isNull(yield* other.redis.send("GET", "k"))
      yield* other.redis.send("SET", "k", "3")
      assert.deepStrictEqual((yield* server.keys).map(({ db, key }) => [db, key]), [[0, "k"], [3, "k"]])
      assert.deepStrictEqual((yield* server.trace).map(({ client }) => client), ["a", "b", "other", "other"])
      assert.deepStrictEqual(yield* server.dump("k", 3), { type: "string", value: "3" })
      assert.isUndefined(yield* server.dump("nothing"))
    })
  )

  test(
    "run scripts with EVALSHA, and reload them if the server has lost them",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      const run = redis.eval(double)
      assert.strictEqual(yield* run("n", 2), 4)
      assert.strictEqual(yield* run("n", 3), 10)
      yield* server.flushScripts
      yield* server.clearTrace
      assert.strictEqual(yield* run("n", 1), 12)
      assert.deepStrictEqual((yield* server.trace).map(({ args }) => args[0]), ["EVALSHA", "SCRIPT", "EVALSHA"])
    })
  )

  test(
    "fail with the server's error",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const error = yield* Effect.flip(redis.send("NOSUCHCOMMAND", "x"))
      assert.strictEqual((error.cause as Error).name, "ReplyError")
      assert.match((error.cause as Error).message, /^ERR unknown command 'NOSUCHCOMMAND'/)
    })
  )

  test(
    "use reserved connections to block, and are served in order of arrival",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      const got: Array<string> = []
      const reader = (name: string) =>
        Effect.gen(function*() {
          const connection = yield* redis.reserve
          for (;;) {
            const [, item] = yield* connection.send<[string, string]>("BLPOP", "list", "0")
            got.push(name + item)
          }
        }).pipe(Effect.scoped, Effect.forkChild({ startImmediately: true }))
      const a = yield* reader("a")
      const b = yield* reader("b")
      yield* settled
      for (const item of ["1", "2", "3", "4"]) {
        yield* redis.send("RPUSH", "list", item)
        yield* settled
      }
      assert.deepStrictEqual(got, ["a1", "b2", "a3", "b4"])
      assert.strictEqual(yield* server.connections(), 3)
      yield* Fiber.interrupt(a)
      yield* Fiber.interrupt(b)
      yield* settled
      // Effect's pool keeps a spare connection open
      assert.isAtMost(yield* server.connections(), 2)
    })
  )

  test(
    "receive nil if a blocking read times out",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const read = yield* redis.reserve.pipe(
        Effect.flatMap((connection) => connection.send("BLPOP", "list", "2")),
        Effect.scoped,
        Effect.forkChild({ startImmediately: true })
      )
      yield* settled
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(read.pollUnsafe())
      yield* TestClock.adjust("2 millis")
      assert.isNull(yield* Fiber.join(read))
    })
  )

  serverTest(
    "leave no connections or subscriptions behind",
    Effect.gen(function*() {
      const server = yield* FakeRedis.FakeRedis
      yield* Effect.scoped(Effect.gen(function*() {
        const { redis, subscriber } = yield* servicesOf({ name: "a" })
        yield* subscriber.subscribe("x")
        yield* Effect.scoped(redis.reserve)
        assert.strictEqual(yield* server.subscriptions, 1)
        assert.strictEqual(yield* server.connections("a"), 3)
        assert.strictEqual(yield* server.connections("b"), 0)
      }))
      assert.strictEqual(yield* server.subscriptions, 0)
      assert.strictEqual(yield* server.connections(), 0)
    })
  )
})

describe("subscriptions", () => {
  test(
    "receive all messages that are published after the server has acknowledged their subscription",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const subscriber = yield* Subscriber
      const server = yield* FakeRedis.FakeRedis
      const notices = yield* subscriber.subscribe("news")
      const repeated = yield* subscriber.subscribe("news")
      assert.strictEqual(yield* server.subscriptions, 1)
      assert.strictEqual(yield* redis.send("PUBLISH", "news", "1"), 1)
      assert.deepStrictEqual(yield* Queue.take(notices), { _tag: "Message", channel: "news", text: "1" })
      assert.deepStrictEqual(yield* Queue.take(repeated), { _tag: "Message", channel: "news", text: "1" })
    }).pipe(Effect.scoped)
  )

  test(
    "deliver a Gap after a reconnect, and lose messages that are sent in the meantime",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const subscriber = yield* Subscriber
      const server = yield* FakeRedis.FakeRedis
      const notices = yield* subscriber.subscribe("news")
      yield* server.dropConnections()
      assert.strictEqual((yield* Effect.flip(redis.send("PUBLISH", "news", "1")))._tag, "RedisError")
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* redis.send("PUBLISH", "news", "2"), 1)
      assert.deepStrictEqual(yield* Queue.takeAll(notices), [
        { _tag: "Gap" },
        { _tag: "Message", channel: "news", text: "2" }
      ])
    }).pipe(Effect.scoped)
  )

  test(
    "deliver a Gap in place of messages that a slow reader missed",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const subscriber = yield* Subscriber
      const notices = yield* subscriber.subscribe("news")
      for (let i = 0; i < 300; i++) yield* redis.send("PUBLISH", "news", String(i))
      const message = (n: number) => ({ _tag: "Message", channel: "news", text: String(n) }) as const
      const newest = Array.from({ length: 300 - 256 }, (_, n) => message(256 + n))
      assert.deepStrictEqual<unknown>(yield* Queue.takeAll(notices), [{ _tag: "Gap" }, ...newest])
    }).pipe(Effect.scoped)
  )

  test(
    "deliver messages to subscribers of Effect's own Redis service",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const messages = yield* redis.subscribe("news")
      yield* redis.send("PUBLISH", "news", "1")
      assert.deepStrictEqual(yield* Queue.take(messages), { channel: "news", message: "1" })
    }).pipe(Effect.scoped)
  )
})

describe("server faults", () => {
  test(
    "a restart keeps or drops the data, and briefly disconnects all clients",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      yield* redis.send("SET", "a", "1")
      yield* server.restart({ keepData: true })
      const error = yield* Effect.flip(redis.send("GET", "a"))
      assert.match((error.cause as Error).message, /enableOfflineQueue/)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* redis.send("GET", "a"), "1")
      yield* server.restart({ keepData: false })
      yield* TestClock.adjust("100 millis")
      assert.isNull(yield* redis.send("GET", "a"))
    })
  )

  test(
    "a failover loses the last writes and all scripts",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      for (const value of ["1", "2", "3", "4"]) yield* redis.send("SET", "a", value)
      yield* redis.eval(double)("n", 1)
      assert.strictEqual(yield* server.failover({ loseLastWrites: 3 }), 3)
      yield* TestClock.adjust("100 millis")
      assert.strictEqual(yield* redis.send("GET", "a"), "2")
      assert.isNull(yield* redis.send("GET", "n"))
      assert.deepStrictEqual(yield* redis.send("SCRIPT", "EXISTS", "0".repeat(40)), [0])
      const refused = yield* Effect.exit(server.failover({ loseLastWrites: 1000 }))
      assert.strictEqual(refused._tag, "Failure")
    })
  )

  test(
    "the server can refuse commands with an error, and keys can be made to expire or be evicted",
    Effect.gen(function*() {
      const redis = yield* Redis.Redis
      const server = yield* FakeRedis.FakeRedis
      yield* redis.send("MSET", "a", "1", "b", "2")
      yield* server.setErrorState("LOADING")
      assert.match(((yield* Effect.flip(redis.send("GET", "a"))).cause as Error).message, /^LOADING/)
      yield* server.setErrorState(undefined)
      assert.isTrue(yield* server.forceExpire("a"))
      assert.isTrue(yield* server.evict("b"))
      assert.isFalse(yield* server.evict("b"))
      assert.deepStrictEqual(yield* redis.send("MGET", "a", "b"), [null, null])
    })
  )
})

describe("network faults", () => {
  const linked = (
    name: string,
    body: (
      link: FakeNetwork.Link,
      redis: Redis.Redis["Service"],
      server: FakeRedis.FakeRedis["Service"],
      subscriber: Subscriber["Service"]
    ) => Effect.Effect<void, unknown, Scope.Scope>
  ) =>
    serverTest(
      name,
      Effect.gen(function*() {
        const { redis, subscriber } = yield* servicesOf({ name: "a" })
        yield* body(yield* FakeNetwork.link("a"), redis, yield* FakeRedis.FakeRedis, subscriber)
      })
    )

  const fork = <A, E>(effect: Effect.Effect<A, E>) => Effect.forkChild(effect, { startImmediately: true })

  linked("a delayed command runs once the request delay has passed", (link, redis, server) =>
    Effect.gen(function*() {
      yield* link.set({ requestDelay: [10, 10], replyDelay: [20, 20] })
      const get = yield* fork(redis.send("SET", "a", "1"))
      yield* TestClock.adjust("9 millis")
      assert.isUndefined(yield* server.dump("a"))
      yield* TestClock.adjust("1 millis")
      assert.isDefined(yield* server.dump("a"))
      assert.isUndefined(get.pollUnsafe())
      yield* TestClock.adjust("20 millis")
      assert.strictEqual(yield* Fiber.join(get), "OK")
    }))

  linked(
    "a command times out if its request or its reply is lost, but runs in the latter case",
    (link, redis, server) =>
      Effect.gen(function*() {
        yield* link.set({ loseRequest: 1 })
        const first = yield* fork(Effect.flip(redis.send("INCR", "a")))
        yield* TestClock.adjust("1 second")
        assert.match(((yield* Fiber.join(first)).cause as Error).message, /timed out/)
        assert.isUndefined(yield* server.dump("a"))
        yield* TestClock.adjust("5 seconds")
        yield* link.set({ loseReply: 1 })
        const second = yield* fork(Effect.flip(redis.send("INCR", "a")))
        yield* TestClock.adjust("1 second")
        assert.match(((yield* Fiber.join(second)).cause as Error).message, /timed out/)
        assert.deepStrictEqual(yield* server.dump("a"), { type: "string", value: "1" })
      })
  )

  linked(
    "held-back commands arrive in order when they are released",
    (link, redis, server) =>
      Effect.gen(function*() {
        yield* link.clog("requests")
        const all = yield* fork(Effect.all([redis.send("APPEND", "a", "1"), redis.send("APPEND", "a", "2")], {
          concurrency: "unbounded"
        }))
        yield* TestClock.adjust("500 millis")
        assert.isUndefined(yield* server.dump("a"))
        yield* link.release("requests")
        yield* Fiber.join(all)
        assert.deepStrictEqual(yield* server.dump("a"), { type: "string", value: "12" })
      })
  )

  linked(
    "a partition breaks the connection, which is restored when the partition heals",
    (link, redis, server, subscriber) =>
      Effect.gen(function*() {
        const notices = yield* subscriber.subscribe("news")
        yield* link.partition("replies")
        const lost = yield* fork(Effect.flip(redis.send("INCR", "a")))
        yield* TestClock.adjust("10 seconds")
        assert.match(((yield* Fiber.join(lost)).cause as Error).message, /timed out/)
        assert.match(((yield* Effect.flip(redis.send("GET", "a"))).cause as Error).message, /enableOfflineQueue/)
        assert.deepStrictEqual(yield* server.dump("a"), { type: "string", value: "1" })
        yield* link.heal("replies")
        yield* TestClock.adjust("5 seconds")
        assert.strictEqual(yield* redis.send("GET", "a"), "1")
        assert.deepStrictEqual(yield* Queue.take(notices), { _tag: "Gap" })
        assert.strictEqual(yield* server.connections("a"), 2)
      })
  )

  linked(
    "a subscription whose acknowledgement is lost fails and is removed",
    (link, _redis, server, subscriber) =>
      Effect.gen(function*() {
        yield* subscriber.subscribe("opens the connection")
        yield* link.set({ loseReply: 1 })
        const lost = yield* Effect.forkScoped(subscriber.subscribe("news"), { startImmediately: true })
        yield* TestClock.adjust("999 millis")
        assert.strictEqual(yield* server.subscriptions, 2)
        yield* TestClock.adjust("1 millis")
        assert.isTrue(Exit.isFailure(yield* Fiber.await(lost)))
        assert.strictEqual(yield* server.subscriptions, 1)
      })
  )

  linked("published messages have a separate delay", (link, redis, _server, subscriber) =>
    Effect.gen(function*() {
      const notices = yield* subscriber.subscribe("news")
      yield* link.set({ messageDelay: [50, 50] })
      yield* redis.send("PUBLISH", "news", "1")
      yield* redis.send("SET", "a", "1")
      assert.strictEqual(Queue.sizeUnsafe(notices), 0)
      yield* TestClock.adjust("50 millis")
      assert.strictEqual(Queue.sizeUnsafe(notices), 1)
    }))

  linked(
    "commands from a broken connection may arrive after commands from the next connection",
    (link, redis, server) =>
      Effect.gen(function*() {
        let late = 0
        for (let i = 0; i < 20; i++) {
          yield* link.set({ requestDelay: [5, 5], straggle: [3000, 3000] })
          const first = yield* fork(Effect.exit(redis.send("SET", "a", `old ${i}`)))
          yield* link.reset
          yield* Fiber.join(first)
          yield* TestClock.adjust("200 millis")
          const second = yield* fork(redis.send("SET", "a", `new ${i}`))
          yield* TestClock.adjust("5 seconds")
          yield* Fiber.join(second)
          const dump = yield* server.dump("a")
          if (dump?.type === "string" && dump.value === `old ${i}`) late++
        }
        assert.isAbove(late, 0)
        assert.isBelow(late, 20)
      })
  )

  const onTestClock = Effect.provide(TestClock.layer(), { local: true })

  it.effect("the same seed causes the same faults", () =>
    Effect.gen(function*() {
      const run = (seed: number) =>
        Effect.gen(function*() {
          const { redis } = yield* servicesOf({ name: "a" })
          yield* (yield* FakeNetwork.link("a")).set({ loseRequest: 0.3, requestDelay: [0, 20], replyDelay: [0, 20] })
          const all = yield* fork(
            Effect.forEach(Array.from({ length: 20 }), () => Effect.exit(redis.send("INCR", "n")))
          )
          yield* TestClock.adjust("1 minute")
          yield* Fiber.join(all)
          return (yield* (yield* FakeRedis.FakeRedis).trace).map(({ args, micros }) => `${micros} ${args.join(" ")}`)
        }).pipe(Effect.scoped, Effect.provide(FakeRedis.layer({ seed, epoch: 1_750_000_000_000 })), onTestClock)
      const one = yield* run(1)
      assert.isAbove(one.length, 5)
      assert.isBelow(one.length, 20)
      assert.deepStrictEqual(yield* run(1), one)
      assert.notDeepEqual(yield* run(2), one)
    }))
})
