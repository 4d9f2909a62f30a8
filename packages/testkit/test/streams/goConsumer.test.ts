/**
 * Tests that the model of a Go consumer behaves like the original, including its mistakes, because interop tests rely
 * on it.
 */
import { FakeRedis } from "@effect-simba/testkit"
import * as GoConsumer from "@effect-simba/testkit/streams/GoConsumer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { Redis } from "effect/persistence/Redis"
import { TestClock } from "effect/testing"

const input = "svc-input"
const group = "svc-group"

const admin = Effect.map(Layer.build(FakeRedis.layerClient({ name: "admin" })), Context.get(Redis))

/** Lets ten milliseconds pass, in which work without delays finishes. */
const settled = Effect.repeat(TestClock.adjust("1 millis"), { times: 9 })

/** Starts a consumer on a separate connection. `kill` ends it without a release. */
const consumer = Effect.fnUntraced(function*(
  id: string,
  work: (stream: string) => Effect.Effect<unknown, unknown> = () => Effect.never,
  options: { readonly force?: boolean; readonly unrenewed?: number } = {}
) {
  const scope = yield* Scope.make()
  yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
  const client = yield* Layer.buildWithScope(FakeRedis.layerClient({ name: id }), scope)
  const joined = yield* GoConsumer.join({ service: "svc", id, work, ...options }).pipe(
    Effect.provideContext(client),
    Scope.provide(scope)
  )
  const tags = () => joined.events.map((event) => event._tag)
  return { ...joined, tags, kill: Scope.close(scope, Exit.void) }
})

const announcing = (redis: Redis["Service"]) => (stream: string) =>
  redis.send<string>("XADD", input, "*", "lbs-input", JSON.stringify({ DataStreamName: stream, Info: { a: 1 } }))

const setting = "notify-keyspace-events"

const noEvents = (redis: Redis["Service"]) => redis.send("CONFIG", "SET", setting, "")

const pending = (redis: Redis["Service"]) =>
  Effect.map(
    redis.send<ReadonlyArray<readonly [string, string, number, number]>>("XPENDING", input, group, "-", "+", "100"),
    (rows) => rows.map(([entry, owner]) => [entry, owner])
  )

const test = <E>(body: (redis: Redis["Service"]) => Effect.Effect<void, E, Scope.Scope | FakeRedis.FakeRedis>) => () =>
  Effect.flatMap(admin, body).pipe(Effect.provide(FakeRedis.layer({ expiryDelay: [0, 0] })))

describe("a Go consumer", () => {
  it.effect(
    "locks an announced entry under its own name, renews the lock, and removes both when the work is done",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a", () => Effect.sleep("10500 millis"))
        yield* settled
        const entry = yield* announcing(redis)("orders")
        yield* TestClock.adjust("10 seconds")
        const key = `orders<MUTEX_KEY_SEP>${entry}`
        assert.strictEqual(yield* redis.send("GET", key), "redis-consumer-a")
        assert.isAbove(yield* redis.send<number>("PTTL", key), 900)
        assert.deepStrictEqual(yield* pending(redis), [[entry, "redis-consumer-a"]])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(a.tags(), ["Added", "Done"])
        assert.isNull(yield* redis.send("GET", key))
        assert.deepStrictEqual(yield* pending(redis), [])
        assert.strictEqual(yield* redis.send("XLEN", input), 0)
      })
    )
  )

  it.effect(
    "receives no announcements that are older than the group, and reads all new ones at once",
    test((redis) =>
      Effect.gen(function*() {
        yield* announcing(redis)("early")
        const a = yield* consumer("a")
        yield* settled
        yield* Effect.scoped(Effect.gen(function*() {
          const { send } = yield* redis.reserve
          yield* send("MULTI")
          for (let i = 0; i < 300; i++) yield* announcing({ ...redis, send })(`s${i}`)
          yield* send("EXEC")
        }))
        const b = yield* consumer("b")
        while ((yield* b.owned).length + (yield* a.owned).length < 300) yield* settled
        assert.lengthOf(yield* a.owned, 300)
        assert.lengthOf(yield* b.owned, 0)
      })
    ),
    { tags: ["G6"] }
  )

  it.effect(
    "takes over another consumer's entry when notified that the entry's lock has expired",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        const entry = yield* announcing(redis)("orders")
        yield* TestClock.adjust("10 seconds")
        const b = yield* consumer("b")
        yield* a.kill
        yield* TestClock.adjust("2100 millis")
        assert.deepStrictEqual(b.tags(), ["Expired", "Claimed", "Added"])
        assert.deepStrictEqual(yield* pending(redis), [[entry, "redis-consumer-b"]])
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(yield* b.owned, ["orders"])
      })
    )
  )

  it.effect(
    "without a notification, takes over only on startup and only entries idle for 40 seconds",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        yield* announcing(redis)("orders")
        yield* TestClock.adjust("1 second")
        const b = yield* consumer("b")
        yield* noEvents(redis)
        yield* a.kill
        yield* TestClock.adjust("38 seconds")
        const c = yield* consumer("c")
        yield* TestClock.adjust("2 seconds")
        assert.deepStrictEqual([...b.events, ...c.events], [])
        const d = yield* consumer("d")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* d.owned, ["orders"])
      })
    ),
    { tags: ["G15"] }
  )

  it.effect(
    "claims another consumer's locked entry when it starts, and stops its recovery there",
    test((redis) =>
      Effect.gen(function*() {
        yield* consumer("a")
        yield* settled
        const held = yield* announcing(redis)("held")
        yield* TestClock.adjust("41 seconds")
        const b = yield* consumer("b")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* b.owned, [])
        assert.deepStrictEqual(yield* pending(redis), [[held, "redis-consumer-b"]])
        assert.strictEqual(yield* redis.send("GET", `held<MUTEX_KEY_SEP>${held}`), "redis-consumer-a")
      })
    ),
    { tags: ["G3"] }
  )

  it.effect(
    "waits briefly for another consumer's lock",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        const entry = "99999999999999-0"
        yield* redis.send("SET", `one<MUTEX_KEY_SEP>${entry}`, "somebody", "PX", "250")
        yield* redis.send("XADD", input, entry, "lbs-input", "{\"DataStreamName\":\"one\"}")
        yield* TestClock.adjust("240 millis")
        assert.deepStrictEqual(yield* a.owned, [])
        yield* TestClock.adjust("100 millis")
        assert.deepStrictEqual(yield* a.owned, ["one"])
        assert.notInclude(a.tags(), "Terminated")
      })
    ),
    { tags: ["G1"] }
  )

  it.effect(
    "permanently stops reading at the first lock that it does not get, but continues to renew",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        yield* announcing(redis)("one")
        yield* redis.send("SET", "two<MUTEX_KEY_SEP>99999999999999-0", "somebody")
        yield* redis.send("XADD", input, "99999999999999-0", "lbs-input", "{\"DataStreamName\":\"two\",\"Info\":null}")
        yield* settled
        yield* redis.send("XADD", input, "99999999999999-1", "lbs-input", "{\"DataStreamName\":\"three\"}")
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(a.tags(), ["Added", "Terminated"])
        assert.deepStrictEqual(yield* a.owned, ["one"])
        assert.strictEqual(yield* redis.send("GET", "two<MUTEX_KEY_SEP>99999999999999-0"), "somebody")
      })
    ),
    { tags: ["G1"] }
  )

  it.effect(
    "permanently stops reading at an entry that it cannot parse",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        yield* redis.send("XADD", input, "*", "lbs-input", "{")
        yield* settled
        assert.deepStrictEqual(a.tags(), ["Terminated"])
      })
    ),
    { tags: ["G2"] }
  )

  it.effect(
    "configures the server's keyspace events, and refuses to overwrite other settings unless forced to",
    test((redis) =>
      Effect.gen(function*() {
        const flags = Effect.map(
          redis.send<ReadonlyArray<string>>("CONFIG", "GET", setting),
          (reply) => [...reply[1]!].sort().join("")
        )
        yield* consumer("a", undefined, { force: false })
        assert.strictEqual(yield* flags, "EKx")
        const refused = yield* Effect.exit(consumer("b", undefined, { force: false }))
        assert.isTrue(Exit.isFailure(refused))
        yield* redis.send("CONFIG", "SET", setting, "Ex")
        yield* consumer("c")
        assert.strictEqual(yield* flags, "EKx")
      })
    ),
    { tags: ["G21"] }
  )

  it.effect(
    "may claim an entry without ever renewing the lock, so that another consumer takes over while it is working",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        yield* announcing(redis)("orders")
        yield* TestClock.adjust("10 seconds")
        const b = yield* consumer("b", undefined, { unrenewed: 1 })
        yield* a.kill
        yield* TestClock.adjust("2100 millis")
        assert.deepStrictEqual(yield* b.owned, ["orders"])
        const c = yield* consumer("c")
        yield* TestClock.adjust("2100 millis")
        assert.include(c.tags(), "Expired")
        assert.include([...b.tags().slice(3), ...c.tags()], "Added")
        assert.deepStrictEqual(yield* b.owned, ["orders"])
      })
    )
  )

  it.effect(
    "shares a stream with another consumer if the stream is announced twice",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        const b = yield* consumer("b")
        yield* settled
        yield* announcing(redis)("orders")
        yield* settled
        yield* announcing(redis)("orders")
        yield* settled
        assert.deepStrictEqual([yield* a.owned, yield* b.owned], [["orders"], ["orders"]])
      })
    ),
    { tags: ["G8"] }
  )

  it.effect(
    "recreates a vanished lock, but gives up an entry that another consumer has locked",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        const key = `orders<MUTEX_KEY_SEP>${yield* announcing(redis)("orders")}`
        yield* settled
        yield* redis.send("DEL", key)
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* redis.send("GET", key), "redis-consumer-a")
        yield* redis.send("SET", key, "somebody")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(a.tags(), ["Added", "Disowned"])
        assert.strictEqual(yield* redis.send("GET", key), "somebody")
      })
    ),
    { tags: ["G10"] }
  )

  it.effect(
    "deletes and takes the lock of another consumer with the same name",
    test((redis) =>
      Effect.gen(function*() {
        const first = yield* consumer("a")
        yield* settled
        const key = `orders<MUTEX_KEY_SEP>${yield* announcing(redis)("orders")}`
        yield* TestClock.adjust("41 seconds")
        assert.deepStrictEqual(yield* first.owned, ["orders"])
        const second = yield* consumer("a")
        yield* TestClock.adjust("100 millis")
        assert.strictEqual(yield* redis.send("GET", key), "redis-consumer-a")
        assert.deepStrictEqual([yield* first.owned, yield* second.owned], [["orders"], ["orders"]])
      })
    ),
    { tags: ["G9"] }
  )

  it.effect(
    "acknowledges and deletes unfinished streams on shutdown",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        yield* announcing(redis)("one")
        yield* announcing(redis)("two")
        yield* settled
        yield* a.done
        assert.strictEqual(yield* redis.send("XLEN", input), 0)
        assert.deepStrictEqual(yield* a.owned, [])
      })
    ),
    { tags: ["G20"] }
  )

  it.effect(
    "takes a yielded entry as soon as its lock expires, but only if the entry is old enough",
    test((redis) =>
      Effect.gen(function*() {
        const a = yield* consumer("a")
        yield* settled
        const returnEntry = Effect.fnUntraced(function*(stream: string, ...aged: ReadonlyArray<string>) {
          const entry = `${99_999_999_999_000 + stream.length}-0`
          const key = `${stream}<MUTEX_KEY_SEP>${entry}`
          yield* redis.send("SET", key, "simba-consumer-ours@@0123456789ab.1", "PX", "60000")
          yield* redis.send("XADD", input, entry, "lbs-input", JSON.stringify({ DataStreamName: stream }))
          yield* redis.send("XREADGROUP", "GROUP", group, "simba-consumer-ours", "STREAMS", input, ">")
          yield* redis.send("XCLAIM", input, group, "simba-consumer-ours", "0", entry, ...aged, "JUSTID")
          yield* redis.send("PEXPIRE", key, "1")
        })
        // The reader stops at this entry because it cannot lock it. From here on, the consumer only receives
        // notifications.
        yield* redis.send("SET", "locked<MUTEX_KEY_SEP>99999999998000-0", "somebody")
        yield* redis.send("XADD", input, "99999999998000-0", "lbs-input", "{\"DataStreamName\":\"locked\"}")
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(a.tags(), ["Terminated"])
        yield* returnEntry("aged", "IDLE", "60000")
        yield* settled
        assert.include(yield* a.owned, "aged")
        yield* returnEntry("young!")
        yield* TestClock.adjust("1 minute")
        assert.notInclude(yield* a.owned, "young!")
      })
    )
  )
})
