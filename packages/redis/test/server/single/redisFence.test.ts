import { SimbaError } from "@effect-simba/core"
import { type Bearer, FencingToken } from "@effect-simba/core/FencingToken"
import { IoRedis, RedisFence } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { inspect } from "node:util"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import { freshName, infoField, openMutex, RedisServer, until } from "../../support/harness.ts"

const token = (n: number) => FencingToken.make(n)

const by = (resource: string, token: FencingToken): Bearer => ({ resource, token })

const TestLive = Layer.unwrap(Effect.map(RedisServer, (server) => IoRedis.layer({ url: server.url }))).pipe(
  Layer.provideMerge(RedisServer.layer)
)

const stale = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(effect as Effect.Effect<A, unknown, R>), (error) => {
    assert.instanceOf(error, SimbaError.StaleToken)
    return error as SimbaError.StaleToken
  })

const advance = RedisFence.script((key: string, other: string, by: number) => [key, other, by], {
  numberOfKeys: 2,
  lua: `
redis.call('SET', KEYS[2], #KEYS .. ' ' .. #ARGV)
return redis.call('INCRBY', KEYS[1], ARGV[1]) -- a comment at the end`
})

const broken = RedisFence.script((key: string) => [key], { numberOfKeys: 1, lua: "return redis.call('INCR', KEYS[1])" })
const refusing = RedisFence.script(() => [], { numberOfKeys: 0, lua: "return redis.error_reply('MINE no')" })
const silent = RedisFence.script(() => [], { numberOfKeys: 0, lua: "" })
const many = RedisFence.script((...keys: ReadonlyArray<string>) => [...keys, "x"], {
  numberOfKeys: (...keys) => keys.length,
  lua: "return { #KEYS, KEYS[#KEYS], ARGV[1] }"
})

layer(TestLive, { excludeTestServices: true })("fencing", (it) => {
  it.effect(
    "refuses to write with a token smaller than the largest known one",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const key = freshName("set")
        yield* RedisFence.set(by(key, token(5)), key, "first")
        yield* RedisFence.set(by(key, token(5)), key, "again")
        yield* RedisFence.set(by(key, token(7)), key, "second")
        const error = yield* stale(RedisFence.set(by(key, token(6)), key, "late"))
        assert.deepInclude(error, { _tag: "StaleToken", resource: key, token: token(6), largest: token(7) })
        assert.include(error.message, "acquire the mutex again")
        assert.strictEqual(yield* server.send("GET", key), "second")
        yield* RedisFence.set(by(key, token(8)), key, "third")
        assert.strictEqual(yield* server.send("GET", key), "third")
      }),
    { tags: ["B32"] }
  )

  it.effect("compares tokens as numbers, with all 16 digits", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const ascending = [9, 10, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 1_763_690_000_000_000, Number.MAX_SAFE_INTEGER - 1]
      const key = freshName("digits")
      let last = 0
      for (const n of [...ascending, Number.MAX_SAFE_INTEGER]) {
        yield* RedisFence.set(by(key, token(n)), key, String(n))
        if (last > 0) {
          const error = yield* stale(RedisFence.set(by(key, token(last)), key, "late"))
          assert.deepInclude(error, { token: token(last), largest: token(n) })
        }
        assert.strictEqual(yield* server.send("GET", RedisKeys.largestToken(key)), String(n))
        last = n
      }
      assert.strictEqual(yield* server.send("GET", key), "9007199254740991")
    }))

  it.effect("applies ttl only to the value, and remembers the token for days", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("ttl")
      yield* RedisFence.set(by(key, token(3)), key, "x", { ttl: "50 millis" })
      yield* until("expired", Effect.map(server.send("EXISTS", key), (n) => n === 0))
      yield* stale(RedisFence.set(by(key, token(2)), key, "late"))
      assert.isAbove(Number(yield* server.send("PTTL", RedisKeys.largestToken(key))), 6 * 24 * 3_600_000)
      yield* RedisFence.set(by(key, token(3)), key, "x")
      assert.strictEqual(yield* server.send("PTTL", key), -1)
      for (const ttl of [0, -5, Infinity]) {
        const error = yield* Effect.flip(RedisFence.set(by(key, token(4)), key, "y", { ttl }))
        assert.deepInclude(error, { _tag: "InvalidConfig", option: "ttl" })
      }
    }))

  it.effect("`raise` locks earlier holders out before the first write", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("guard")
      yield* RedisFence.set(by(key, token(1)), key, "old")
      yield* RedisFence.raise(by(key, token(2)))
      yield* RedisFence.raise(by(key, token(2)))
      yield* stale(RedisFence.set(by(key, token(1)), key, "late"))
      yield* stale(RedisFence.raise(by(key, token(1))))
      assert.strictEqual(yield* server.send("GET", key), "old")
    }))

  it.effect("runs a snippet with its own keys and arguments, but not with a stale token", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("snippet")
      const other = `${key} other`
      const next = (n: number) => RedisFence.run(advance, by("resource", token(n)))(key, other, 5)
      assert.strictEqual(yield* next(10), 5)
      assert.strictEqual(yield* next(11), 10)
      yield* stale(next(10))
      assert.strictEqual(yield* server.send("GET", key), "10")
      assert.strictEqual(yield* server.send("GET", other), "2 1")
      assert.deepStrictEqual(yield* RedisFence.run(many, by("r", token(1)))("a", "b", "c"), [3, "c", "x"])
      assert.isNull(yield* RedisFence.run(silent, by("r", token(1)))())
    }))

  it.effect("a snippet may have as many keys and arguments as Redis accepts", () =>
    Effect.gen(function*() {
      const key = freshName("wide")
      const values = Array.from({ length: 20_000 }, (_, i) => String(i))
      const push = RedisFence.script((key: string) => [key, ...values], {
        numberOfKeys: 1,
        lua: "return { #KEYS, #ARGV, ARGV[1], ARGV[#ARGV] }"
      })
      assert.deepStrictEqual(yield* RedisFence.run(push, by(key, token(1)))(key), [1, 20_000, "0", "19999"])
      assert.deepStrictEqual(yield* RedisFence.run(many, by(key, token(1)))(...values), [20_000, "19999", "x"])
    }))

  it.effect("a failing snippet causes a BackendError, but its token still counts", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("failing")
      yield* server.send("SET", key, "text")
      const error = yield* Effect.flip(RedisFence.run(broken, by(key, token(9)))(key))
      assert.deepInclude(error, { _tag: "BackendError", isRetryable: false })
      assert.match(error.message, /not an integer/)
      yield* stale(RedisFence.run(broken, by(key, token(8)))(key))
      const refused = yield* Effect.flip(RedisFence.run(refusing, by(key, token(9)))())
      assert.match(refused.message, /MINE no/)
    }))

  it.effect("writes nothing and fails with a typed error if the token's key holds something else", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("unreadable")
      yield* server.send("SET", RedisKeys.largestToken(key), "soon")
      const unreadable = yield* Effect.flip(RedisFence.set(by(key, token(1)), key, "x"))
      assert.deepInclude(unreadable, { _tag: "ProtocolError", read: "soon" })
      yield* server.send("DEL", RedisKeys.largestToken(key))
      yield* server.send("LPUSH", RedisKeys.largestToken(key), "x")
      const wrongType = yield* Effect.flip(RedisFence.set(by(key, token(1)), key, "x"))
      assert.deepInclude(wrongType, { _tag: "BackendError", isRetryable: false })
      assert.strictEqual(yield* server.send("EXISTS", key), 0)
    }))

  it.effect("errors do not retain the value that would have been written", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("secret")
      yield* server.send("LPUSH", RedisKeys.largestToken(key), "x")
      const error = yield* Effect.flip(RedisFence.set(by(key, token(1)), key, "hunter2"))
      assert.notInclude(inspect(error, { depth: null, showHidden: true }), "hunter2")
      assert.match(error.message, /holds a value of the wrong type \(WRONGTYPE\)/)
    }))

  it.effect("script texts are the same for all keys and tokens", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const round = (n: number) => RedisFence.set(by(freshName("constant"), token(n)), freshName("constant"), "x")
      yield* round(1)
      const cached = yield* infoField(server, "memory", "number_of_cached_scripts")
      for (let n = 2; n < 40; n++) yield* round(n)
      assert.strictEqual(yield* infoField(server, "memory", "number_of_cached_scripts"), cached)
    }), { tags: ["B38"] })

  it.effect("refuses the late write of a holder that stalled until its lease had ended", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const periods = { ttl: "200 millis", transition: "500 millis", commandTimeout: "100 millis" } as const
      const [stalled, successor] = yield* Effect.all([openMutex(server, periods), openMutex(server, periods)])
      const m = freshName("stalled")
      const key = `${m} document`
      // The lease is neither renewed nor interrupted, as if its process were suspended
      const held = yield* stalled.acquire(m, { isAlive: Effect.succeed(false), maxHold: "1 hour" })
      yield* RedisFence.set(by(key, held.token), key, "written in time")
      yield* successor.withLock(m)((lease) => {
        assert.isAbove(lease.token, held.token)
        return RedisFence.set(by(key, lease.token), key, "written by the successor")
      })
      const error = yield* stale(RedisFence.set(by(key, held.token), key, "written too late"))
      assert.strictEqual(error.token, held.token)
      assert.strictEqual(yield* server.send("GET", key), "written by the successor")
    }), { tags: ["B20", "B32"] })

  it.effect("the write with the largest token wins among concurrent writers", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const key = freshName("race")
      const tokens = Array.from({ length: 200 }, (_, n) => ((n * 73) % 200) + 1)
      const writers = yield* Effect.forEach(
        tokens,
        (n) => Effect.forkScoped(Effect.exit(RedisFence.set(by(key, token(n)), key, String(n))))
      )
      for (const writer of writers) yield* Fiber.join(writer)
      assert.strictEqual(yield* server.send("GET", key), "200")
    }))
})

describe("the key of the largest token", () => {
  it.each([
    ["plain", "{plain}:simba-token"],
    ["user:{42}:name", "user:{42}:name:simba-token"],
    ["open{only", "{open{only}:simba-token"],
    ["{a}{b}", "{a}{b}:simba-token"]
  ])("%s: %s, in the same slot", (key, expected) => {
    assert.strictEqual(RedisKeys.largestToken(key), expected)
  })
})
