import { SimbaError } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { Fencing, IoRedis } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { inspect } from "node:util"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import { freshName, infoField, openMutex, RedisServer, until } from "../../support/harness.ts"

const token = (n: number) => FencingToken.make(n)

const TestLive = Layer.unwrap(Effect.map(RedisServer, (server) => IoRedis.layer({ url: server.url }))).pipe(
  Layer.provideMerge(RedisServer.layer)
)

const stale = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect as Effect.Effect<A, unknown, R>), (error) => {
    assert.instanceOf(error, SimbaError.StaleToken)
    return error as SimbaError.StaleToken
  })

const advance = Fencing.script((key: string, other: string, by: number) => [key, other, by], {
  numberOfKeys: 2,
  lua: `
redis.call('SET', KEYS[2], #KEYS .. ' ' .. #ARGV)
return redis.call('INCRBY', KEYS[1], ARGV[1]) -- a comment at the end`
})

const broken = Fencing.script((key: string) => [key], { numberOfKeys: 1, lua: "return redis.call('INCR', KEYS[1])" })
const refusing = Fencing.script(() => [], { numberOfKeys: 0, lua: "return redis.error_reply('MINE no')" })
const silent = Fencing.script(() => [], { numberOfKeys: 0, lua: "" })
const many = Fencing.script((...keys: ReadonlyArray<string>) => [...keys, "x"], {
  numberOfKeys: (...keys) => keys.length,
  lua: "return { #KEYS, KEYS[#KEYS], ARGV[1] }"
})

layer(TestLive, { excludeTestServices: true })("fencing", (it) => {
  it.effect("a smaller token than the largest seen is refused, and nothing is written", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("set")
      yield* Fencing.set(key, "first", token(5))
      yield* Fencing.set(key, "again", token(5))
      yield* Fencing.set(key, "second", token(7))
      const error = yield* stale(Fencing.set(key, "late", token(6)))
      assert.deepInclude(error, { _tag: "StaleToken", resource: key, token: token(6), seen: token(7) })
      assert.include(error.message, "acquire the mutex anew")
      assert.strictEqual(yield* server.send("GET", key), "second")
      yield* Fencing.set(key, "third", token(8))
      assert.strictEqual(yield* server.send("GET", key), "third")
    }), { tags: ["B32"] })

  it.effect("tokens are compared as numbers, all 16 digits of them", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const ascending = [9, 10, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 1_763_690_000_000_000, Number.MAX_SAFE_INTEGER - 1]
      const key = freshName("digits")
      let last = 0
      for (const n of [...ascending, Number.MAX_SAFE_INTEGER]) {
        yield* Fencing.set(key, String(n), token(n))
        if (last > 0) {
          const error = yield* stale(Fencing.set(key, "late", token(last)))
          assert.deepInclude(error, { token: token(last), seen: token(n) })
        }
        assert.strictEqual(yield* server.send("GET", RedisKeys.seenToken(key)), String(n))
        last = n
      }
      assert.strictEqual(yield* server.send("GET", key), "9007199254740991")
    }))

  it.effect("ttl is the value's; the token is remembered for days", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("ttl")
      yield* Fencing.set(key, "x", token(3), { ttl: "50 millis" })
      yield* until("expired", Effect.map(server.send("EXISTS", key), (n) => n === 0))
      yield* stale(Fencing.set(key, "late", token(2)))
      assert.isAbove(Number(yield* server.send("PTTL", RedisKeys.seenToken(key))), 6 * 24 * 3_600_000)
      yield* Fencing.set(key, "x", token(3))
      assert.strictEqual(yield* server.send("PTTL", key), -1)
      for (const ttl of [0, -5, Infinity]) {
        const error = yield* Effect.flip(Fencing.set(key, "y", token(4), { ttl }))
        assert.deepInclude(error, { _tag: "InvalidConfig", option: "ttl" })
      }
    }))

  it.effect("guard shuts former holders out before the first write", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("guard")
      yield* Fencing.set(key, "old", token(1))
      yield* Fencing.raise(key, token(2))
      yield* Fencing.raise(key, token(2))
      yield* stale(Fencing.set(key, "late", token(1)))
      yield* stale(Fencing.raise(key, token(1)))
      assert.strictEqual(yield* server.send("GET", key), "old")
    }))

  it.effect("a snippet runs with its own keys and arguments, and not at all for a stale token", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("snippet")
      const other = `${key} other`
      const by = (n: number) => Fencing.run(advance, "resource", token(n))(key, other, 5)
      assert.strictEqual(yield* by(10), 5)
      assert.strictEqual(yield* by(11), 10)
      yield* stale(by(10))
      assert.strictEqual(yield* server.send("GET", key), "10")
      assert.strictEqual(yield* server.send("GET", other), "2 1")
      assert.deepStrictEqual(yield* Fencing.run(many, "r", token(1))("a", "b", "c"), [3, "c", "x"])
      assert.notExists(yield* Fencing.run(silent, "r", token(1))())
    }))

  it.effect("a snippet has as many keys and arguments as Redis takes", () =>
    Effect.gen(function*() {
      const key = freshName("wide")
      const values = Array.from({ length: 20_000 }, (_, i) => String(i))
      const push = Fencing.script((key: string) => [key, ...values], {
        numberOfKeys: 1,
        lua: "return { #KEYS, #ARGV, ARGV[1], ARGV[#ARGV] }"
      })
      assert.deepStrictEqual(yield* Fencing.run(push, key, token(1))(key), [1, 20_000, "0", "19999"])
      assert.deepStrictEqual(yield* Fencing.run(many, key, token(1))(...values), [20_000, "19999", "x"])
    }))

  it.effect("a snippet that fails is a BackendError, and its token counts", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("failing")
      yield* server.send("SET", key, "text")
      const error = yield* Effect.flip(Fencing.run(broken, key, token(9))(key))
      assert.deepInclude(error, { _tag: "BackendError", retryable: false })
      assert.match(error.message, /not an integer/)
      yield* stale(Fencing.run(broken, key, token(8))(key))
      const refused = yield* Effect.flip(Fencing.run(refusing, key, token(9))())
      assert.match(refused.message, /MINE no/)
    }))

  it.effect("something else at the token's key is a typed error, and nothing is written", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("unreadable")
      yield* server.send("SET", RedisKeys.seenToken(key), "soon")
      const unreadable = yield* Effect.flip(Fencing.set(key, "x", token(1)))
      assert.deepInclude(unreadable, { _tag: "ProtocolError", read: "soon" })
      yield* server.send("DEL", RedisKeys.seenToken(key))
      yield* server.send("LPUSH", RedisKeys.seenToken(key), "x")
      const wrongType = yield* Effect.flip(Fencing.set(key, "x", token(1)))
      assert.deepInclude(wrongType, { _tag: "BackendError", retryable: false })
      assert.strictEqual(yield* server.send("EXISTS", key), 0)
    }))

  it.effect("an error does not keep the value that was to be written", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("secret")
      yield* server.send("LPUSH", RedisKeys.seenToken(key), "x")
      const error = yield* Effect.flip(Fencing.set(key, "hunter2", token(1)))
      assert.notInclude(inspect(error, { depth: null, showHidden: true }), "hunter2")
      assert.deepInclude(error.cause, { command: { name: "EVALSHA" } })
    }))

  it.effect("the texts are constant, whatever the keys and tokens", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const round = (n: number) => Fencing.set(freshName("constant"), "x", token(n))
      yield* round(1)
      const cached = yield* infoField(server, "memory", "number_of_cached_scripts")
      for (let n = 2; n < 40; n++) yield* round(n)
      assert.strictEqual(yield* infoField(server, "memory", "number_of_cached_scripts"), cached)
    }), { tags: ["B38"] })

  it.effect("the late write of a holder that was stalled past its lease is refused", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const periods = { ttl: "200 millis", transition: "500 millis", commandTimeout: "100 millis" } as const
      const [stalled, successor] = yield* Effect.all([openMutex(server, periods), openMutex(server, periods)])
      const m = freshName("stalled")
      const key = `${m} document`
      // Neither renewed nor interrupted: what a stopped process looks like to the others
      const held = yield* stalled.acquire(m, { isAlive: Effect.succeed(false), maxHold: "1 hour" })
      yield* Fencing.set(key, "written in time", held.token)
      yield* successor.withLock(m)((lease) => {
        assert.isAbove(lease.token, held.token)
        return Fencing.set(key, "written by the successor", lease.token)
      })
      const error = yield* stale(Fencing.set(key, "written too late", held.token))
      assert.strictEqual(error.token, held.token)
      assert.strictEqual(yield* server.send("GET", key), "written by the successor")
    }), { tags: ["B20", "B32"] })

  it.effect("many writers at once: the value is always that of the largest token", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("race")
      const tokens = Array.from({ length: 200 }, (_, n) => ((n * 73) % 200) + 1)
      const writers = yield* Effect.forEach(
        tokens,
        (n) => Effect.forkScoped(Effect.exit(Fencing.set(key, String(n), token(n))))
      )
      for (const writer of writers) yield* Fiber.join(writer)
      assert.strictEqual(yield* server.send("GET", key), "200")
    }))
})

describe("the key of the seen token", () => {
  it.each([
    ["plain", "{plain}:simba-token"],
    ["user:{42}:name", "user:{42}:name:simba-token"],
    ["open{only", "{open{only}:simba-token"],
    ["{a}{b}", "{a}{b}:simba-token"]
  ])("%s: %s, in the same slot", (key, expected) => {
    assert.strictEqual(RedisKeys.seenToken(key), expected)
  })
})
