import { acquire, guard, MutexStore } from "@effect-simba/core/MutexStore"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis, RedisMutex } from "@effect-simba/redis"
import { assert, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer } from "effect"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import {
  commandStats,
  contender,
  failsWithWrongType,
  freshId,
  freshMutex,
  freshName,
  granted,
  infoField,
  keysOf,
  messagesOn,
  openMutex,
  openStore,
  ownerOf,
  RedisServer,
  refused,
  until
} from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

/** Commands from the test itself, and commands that connections send automatically. */
const own = new Set(["info", "config|resetstat", "ping", "client|setinfo", "client|setname", "hello"])

const serverStats = Effect.gen(function*() {
  const server = yield* RedisServer
  const stats = commandStats(server)
  return {
    reset: stats.reset,
    calls: Effect.map(stats.calls, (calls) => new Map([...calls].filter(([command]) => !own.has(command))))
  }
})

const openStoreThatCannotCount = (server: Server) =>
  Effect.map(
    Layer.build(
      Layer.fresh(RedisMutex.layerStore).pipe(
        Layer.provide(
          Layer.effect(Subscriber, Effect.map(Subscriber, (subscriber) => ({ ...subscriber, countable: false })))
        ),
        Layer.provide(Layer.fresh(IoRedis.layer({ url: server.url })))
      )
    ),
    (context) => Context.get(context, MutexStore)
  )

layer(RedisServer.layer, { excludeTestServices: true })("the mutex scripts", (it) => {
  it.effect(
    "use only declared `simba:` keys and channels, so an ACL can restrict them",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        yield* server.send(
          "ACL",
          "SETUSER",
          "app",
          "reset",
          "on",
          ">secret",
          "~simba:*",
          "&simba:*",
          "+@all",
          "-@dangerous",
          "+info"
        )
        const store = yield* openStore(server, { url: `redis://app:secret@127.0.0.1:${server.port}` })
        const m = freshName("acl")
        const [a, b, c] = [contender(store, m), contender(store, m), contender(store, m)]
        yield* a.own
        yield* b.subscribe
        yield* b.wait
        yield* c.subscribe
        yield* c.wait
        assert.strictEqual(ownerOf(yield* a.release), b.id)
        yield* b.confirm
        assert.deepStrictEqual(yield* b.guard, { _tag: "Renewed" })
        assert.strictEqual(ownerOf(yield* c.release), b.id)
        assert.deepStrictEqual(yield* b.release, { _tag: "Free" })
        assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
        // Repeat with a Simba waiter, for which the mutex is reserved
        yield* a.own
        const simba = "1:1@stock"
        const notified = yield* messagesOn(server, RedisKeys.contenderChannel(m, simba))
        yield* server.send("ZADD", keysOf(m).queue, "1700000000", simba)
        // An effect-simba waiter that detects the Simba waiter listens on its own channel
        const d = contender(store, m)
        const wakeUps = yield* d.subscribe
        assert.isTrue((yield* d.wait).foreign)
        assert.deepStrictEqual(yield* wakeUps.next, { _tag: "Gap" })
        const heard = yield* server.send("PUBSUB", "NUMSUB", RedisKeys.contenderChannel(m, d.id))
        assert.deepStrictEqual(heard, [RedisKeys.contenderChannel(m, d.id), 1])
        assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
        assert.strictEqual(yield* server.send("GET", keysOf(m).reserved), simba)
        yield* until("the Simba waiter is notified", Effect.sync(() => notified.length > 0))
        assert.deepStrictEqual(notified, [[`simba:{${m}}:${simba}`, `released@@${a.id}`]])
        yield* server.send("ACL", "DELUSER", "app")
      }),
    { tags: ["S18"] }
  )

  it.effect("do not grow the script cache with the number of mutexes", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const round = Effect.suspend(() => {
        const m = freshName("cache")
        const a = contender(store, m)
        return Effect.andThen(a.own, Effect.all([a.guard, store.owner(m), a.release]))
      })
      yield* round
      const before = yield* infoField(server, "memory", "number_of_cached_scripts")
      assert.isAtMost(Number(before), 20)
      for (let i = 0; i < 60; i++) yield* round
      assert.strictEqual(yield* infoField(server, "memory", "number_of_cached_scripts"), before)
    }), { tags: ["B38"] })

  it.effect("work even if the server loses them", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      let running = 8
      const worker = Effect.gen(function*() {
        const m = freshName("flush")
        let last = 0
        for (let i = 0; i < 40; i++) {
          const a = contender(store, m)
          const { token } = yield* a.own
          assert.isAbove(token, last)
          last = token
          assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
          assert.deepStrictEqual(yield* a.release, { _tag: "Free" })
        }
        running--
      })
      const flush = Effect.gen(function*() {
        let flushes = 0
        while (running > 0) {
          yield* server.send("SCRIPT", "FLUSH")
          flushes++
          yield* Effect.sleep("4 millis")
        }
        return flushes
      })
      const [flushes] = yield* Effect.all([
        flush,
        Effect.all(Array.from({ length: 8 }, () => worker), { concurrency: "unbounded" })
      ], { concurrency: "unbounded" })
      assert.isAbove(flushes, 1)
    }), { tags: ["B39"] })

  it.effect("are loaded once by concurrent first calls", () =>
    Effect.gen(function*() {
      const { calls, reset } = yield* serverStats
      const store = yield* openStore(yield* RedisServer)
      yield* reset
      yield* Effect.all(
        Array.from({ length: 30 }, () => store.owner(freshName("first call"))),
        { concurrency: "unbounded" }
      )
      const counted = yield* calls
      assert.strictEqual(counted.get("script|load"), 1)
      assert.strictEqual(counted.get("evalsha"), 30)
    }), { tags: ["B39"] })

  it.effect(
    "an owner key of the wrong type causes a permanent error and stays unchanged",
    () =>
      Effect.gen(function*() {
        const { a, m, server, store } = yield* freshMutex("wrong owner")
        yield* server.send("LPUSH", keysOf(m).owner, "x")
        yield* failsWithWrongType(a.ask("try"))
        yield* failsWithWrongType(a.ask("wait"))
        yield* failsWithWrongType(a.release)
        yield* failsWithWrongType(store.owner(m))
        assert.deepStrictEqual(yield* server.send("LRANGE", keysOf(m).owner, "0", "-1"), ["x"])
        assert.strictEqual(yield* server.send("EXISTS", keysOf(m).queue, keysOf(m).fence), 0)
      }),
    { tags: ["S21"] }
  )

  it.effect(
    "a queue or fence of the wrong type causes a permanent error instead of a grant",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const store = yield* openStore(server)
        for (const part of ["queue", "fence"] as const) {
          const m = freshName(`wrong ${part}`)
          yield* server.send("LPUSH", keysOf(m)[part], "x")
          const a = contender(store, m)
          yield* failsWithWrongType(a.ask("try"))
          yield* failsWithWrongType(a.ask("wait"))
          assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
          assert.deepStrictEqual(yield* server.send("LRANGE", keysOf(m)[part], "0", "-1"), ["x"])
        }
      }),
    { tags: ["S21"] }
  )

  it.effect(
    "a queue of the wrong type fails waiters permanently, but lets the owner renew and release",
    () =>
      Effect.gen(function*() {
        const { a, m, server, store } = yield* freshMutex("wrong queue of a held one")
        yield* a.own
        yield* server.send("SADD", keysOf(m).queue, "x")
        const b = contender(store, m)
        yield* failsWithWrongType(b.ask("wait"))
        assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
        yield* Effect.exit(a.release)
        assert.deepStrictEqual(yield* store.owner(m), { _tag: "Free" })
      }),
    { tags: ["S21"] }
  )

  it.effect("a key of the wrong type fails an acquire without retries", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { calls, reset } = yield* serverStats
      const mutex = yield* openMutex(server)
      yield* Effect.scoped(mutex.acquire(freshName("warm")))
      for (const part of ["owner", "queue", "fence"] as const) {
        const m = freshName(`storm ${part}`)
        yield* server.send("LPUSH", keysOf(m)[part], "x")
        yield* reset
        yield* failsWithWrongType(Effect.scoped(mutex.acquire(m)))
        yield* Effect.sleep("300 millis")
        // The attempt and its undo
        assert.isAtMost((yield* calls).get("evalsha") ?? 0, 2, part)
      }
    }), { tags: ["S21"] })

  it.effect("a mutex counts as held for as long as its key has no expiry", () =>
    Effect.gen(function*() {
      const { m, server, store } = yield* freshMutex("endless")
      yield* server.send("SET", keysOf(m).owner, "operator")
      assert.deepStrictEqual(yield* store.owner(m), { _tag: "Held", owner: "operator" })
      const a = contender(store, m)
      assert.deepStrictEqual(refused(yield* a.ask("try")).ownership, { _tag: "Held", owner: "operator" })
      const waiting = yield* a.wait
      assert.deepStrictEqual(waiting.ownership, { _tag: "Held", owner: "operator" })
      assert.isTrue(waiting.foreign)
      const guard = yield* a.guard
      assert.deepStrictEqual(guard, { _tag: "Lost", ownership: { _tag: "Held", owner: "operator" } })
      assert.strictEqual(yield* server.send("PTTL", keysOf(m).owner), -1)
    }), { tags: ["S20"] })

  it.effect("a waiter behind a key without expiry polls once per confirm period", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { calls, reset } = yield* serverStats
      const mutex = yield* openMutex(server, { confirmTimeout: "500 millis" })
      yield* Effect.scoped(mutex.acquire(freshName("warm")))
      const m = freshName("endless wait")
      yield* server.send("SET", keysOf(m).owner, "operator")
      yield* reset
      const error = yield* Effect.flip(Effect.scoped(mutex.acquire(m, { timeout: "1700 millis" })))
      assert.strictEqual(error._tag, "AcquireTimeout")
      // A try, a wait, a poll after subscribing to its own channel, one poll per confirm period, and the undo
      assert.isAtMost((yield* calls).get("evalsha") ?? 0, 7)
      assert.strictEqual((yield* calls).get("subscribe"), 1)
    }), { tags: ["S20"] })

  it.effect("the fence expires, and tokens keep growing even without it", () =>
    Effect.gen(function*() {
      const { a, m, server, store } = yield* freshMutex("fence")
      const first = yield* a.own
      assert.strictEqual(yield* server.send("GET", keysOf(m).fence), String(first.token))
      const day = 24 * 60 * 60 * 1000
      assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).fence)), day)
      yield* a.release
      assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).fence)), day)
      yield* server.send("DEL", keysOf(m).fence)
      const b = contender(store, m)
      const second = yield* b.own
      assert.isAbove(second.token, first.token)
      yield* b.release
      // A fence ahead of the clock, as after a failover to a server whose clock is slow
      yield* server.send("SET", keysOf(m).fence, "8000000000000000")
      assert.strictEqual((yield* contender(store, m).own).token as number, 8_000_000_000_000_101)
    }), { tags: ["B37"] })

  it.effect("the queue does not expire before its waiters have polled again", () =>
    Effect.gen(function*() {
      const { a, m, server, store } = yield* freshMutex("queue")
      yield* a.own
      const short = contender(store, m, { lease: "1 second" })
      const longer = contender(store, m, { lease: "100 seconds" })
      for (const waiter of [short, longer, short]) {
        yield* waiter.wait
        const waits = Number(yield* server.send("PTTL", keysOf(m).owner))
        assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).queue)), waits)
      }
      // H7: a dead waiter's entry is deleted with the queue, one lease after the last live waiter's next poll is due
      const waits = Number(yield* server.send("PTTL", keysOf(m).owner))
      assert.isAtMost(Number(yield* server.send("PTTL", keysOf(m).queue)), waits + 161_000)
      yield* server.send("PERSIST", keysOf(m).owner)
      yield* server.send("DEL", keysOf(m).queue)
      yield* longer.wait
      assert.isAbove(Number(yield* server.send("PTTL", keysOf(m).queue)), 100_000)
    }), { tags: ["S6"] })

  it.effect("every remaining key has an expiry", () =>
    Effect.gen(function*() {
      const { a, b, m, server, store } = yield* freshMutex("expiries")
      yield* a.own
      yield* b.subscribe
      yield* b.wait
      yield* a.release
      yield* b.confirm
      yield* contender(store, m).wait
      const keys = Object.values(keysOf(m))
      for (const key of keys) assert.notStrictEqual(yield* server.send("PTTL", key), -1, key)
    }))

  it.effect(
    "a hand-off takes the same commands for 20 and for 500 waiters, with at most three publishes",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const { calls, reset } = yield* serverStats
        const store = yield* openStore(server)
        const handOff = Effect.fnUntraced(function*(waiters: number) {
          const m = freshName(`hand-off of ${waiters}`)
          const a = contender(store, m)
          yield* a.own
          const all = Array.from({ length: waiters }, () => contender(store, m))
          yield* Effect.forEach(all, (waiter) => waiter.subscribe, { concurrency: "unbounded" })
          for (const waiter of all) yield* waiter.wait
          yield* reset
          yield* a.leave
          const releasing = yield* calls
          assert.strictEqual(ownerOf(yield* store.owner(m)), all[0]!.id)
          yield* reset
          yield* all[0]!.confirm
          const confirming = yield* calls
          assert.strictEqual(releasing.get("evalsha"), 1)
          assert.strictEqual(confirming.get("evalsha"), 1)
          assert.isAtMost(releasing.get("publish") ?? 0, 3)
          assert.isUndefined(confirming.get("publish"))
          return { releasing: Object.fromEntries(releasing), confirming: Object.fromEntries(confirming) }
        }, Effect.scoped)
        yield* handOff(20)
        assert.deepStrictEqual(yield* handOff(500), yield* handOff(20))
      }),
    { tags: ["H2"] }
  )

  it.effect(
    "skipping 500 dead waiters takes one round trip and a few commands",
    () =>
      Effect.gen(function*() {
        const { a, b, m, server, store } = yield* freshMutex("many dead")
        const { calls, reset } = yield* serverStats
        yield* a.own
        for (let i = 0; i < 5; i++) {
          const members = Array.from(
            { length: 100 },
            (_, index) => [`${1_700_000_000 + i * 100 + index}.000001`, freshId()]
          )
          yield* server.send("ZADD", keysOf(m).queue, ...members.flat())
        }
        yield* b.subscribe
        yield* b.wait
        yield* reset
        yield* a.leave
        const counted = yield* calls
        assert.strictEqual(ownerOf(yield* store.owner(m)), b.id)
        assert.strictEqual(counted.get("evalsha"), 1)
        assert.isAtMost([...counted.values()].reduce((sum, calls) => sum + calls, 0), 40)
        assert.strictEqual(yield* server.send("EXISTS", keysOf(m).queue), 0)
      }),
    { tags: ["H3"] }
  )

  it.effect(
    "if subscribers cannot be counted, an unresponsive waiter costs a confirm period because it may be alive",
    () =>
      Effect.gen(function*() {
        const { calls, reset } = yield* serverStats
        const store = yield* openStoreThatCannotCount(yield* RedisServer)
        const m = freshName("uncountable")
        const confirm = "300 millis"
        const [a, b, c] = [contender(store, m, { confirm }), contender(store, m), contender(store, m)]
        yield* a.own
        yield* b.wait
        const wakeUps = yield* c.subscribe
        yield* c.wait
        yield* reset
        assert.strictEqual(ownerOf(yield* a.release), b.id)
        assert.isFalse((yield* calls).has("pubsub|numsub"))
        assert.deepStrictEqual(yield* wakeUps.next, { _tag: "PollAfter", delay: Duration.millis(300) })
        yield* Effect.sleep("320 millis")
        yield* c.confirm
      }),
    { tags: ["H3"] }
  )

  it.effect(
    "an uncontended acquire and its release take one script call each, without a subscription",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const { calls, reset } = yield* serverStats
        const mutex = yield* openMutex(server)
        yield* Effect.scoped(mutex.acquire(freshName("warm")))
        yield* reset
        yield* Effect.scoped(Effect.gen(function*() {
          yield* mutex.acquire(freshName("uncontended"))
          const counted = yield* calls
          assert.strictEqual(counted.get("evalsha"), 1)
          for (const command of ["subscribe", "unsubscribe", "pubsub|numsub", "script|load", "zadd"]) {
            assert.isFalse(counted.has(command), command)
          }
          yield* reset
        }))
        const counted = yield* calls
        assert.strictEqual(counted.get("evalsha"), 1)
        assert.isFalse(counted.has("publish"))
      }),
    { tags: ["H4"] }
  )

  it.effect("a renewal call extends each lease by its own duration", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { calls, reset } = yield* serverStats
      const store = yield* openStore(server)
      const leases = [20_000, 60_000, 20_000].map((lease) => ({
        mutex: freshName("own length"),
        id: freshId(),
        lease: Duration.millis(lease)
      }))
      for (const lease of leases) {
        granted(
          yield* acquire(store, { ...lease, lease: Duration.seconds(2), mode: "try", confirm: Duration.seconds(1) })
        )
      }
      yield* reset
      const results = yield* guard(store, leases)
      assert.strictEqual((yield* calls).get("evalsha"), 1)
      assert.deepStrictEqual(results.map((result) => result._tag), ["Renewed", "Renewed", "Renewed"])
      for (const { lease, mutex } of leases) {
        const left = Number(yield* server.send("PTTL", keysOf(mutex).owner))
        assert.isAtMost(left, Duration.toMillis(lease))
        assert.isAbove(left, Duration.toMillis(lease) - 15_000)
      }
    }))

  it.effect("a key of the wrong type does not prevent the renewal of other leases in the call", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const { calls, reset } = yield* serverStats
      const store = yield* openStore(server)
      const names = Array.from({ length: 5 }, (_, index) => freshName(`batch ${index}`))
      const ids = names.map(() => freshId())
      const request = (index: number, lease: number) => ({
        mutex: names[index]!,
        id: ids[index]!,
        lease: Duration.millis(lease)
      })
      for (const index of [0, 2, 4]) {
        granted(yield* acquire(store, { ...request(index, 10_000), mode: "try", confirm: Duration.seconds(1) }))
      }
      yield* server.send("LPUSH", keysOf(names[1]!).owner, "x")
      yield* guard(store, [request(0, 10_000)])
      yield* reset
      const results = yield* guard(store, names.map((_, index) => request(index, 60_000)))
      assert.strictEqual((yield* calls).get("evalsha"), 1)
      assert.deepStrictEqual(results.map((result) => result._tag), ["Renewed", "Failed", "Renewed", "Lost", "Renewed"])
      const [, failed] = results
      if (failed?._tag !== "Failed" || failed.error._tag !== "BackendError") assert.fail("expected a BackendError")
      assert.isFalse(failed.error.isRetryable)
      assert.match(failed.error.message, /WRONGTYPE/)
      for (const index of [0, 2, 4]) {
        assert.isAbove(Number(yield* server.send("PTTL", keysOf(names[index]!).owner)), 20_000)
      }
      assert.strictEqual(yield* server.send("EXISTS", keysOf(names[3]!).owner), 0)
    }))

  it.effect("a former owner's release does not hand over a mutex that is owned", () =>
    Effect.gen(function*() {
      const { a, b, c, m, server } = yield* freshMutex("nothing to release")
      yield* a.own
      const wakeUps = yield* b.subscribe
      yield* b.wait
      yield* server.send("DEL", keysOf(m).owner)
      // The mutex is free, and a Simba release may have notified only the caller
      assert.strictEqual(ownerOf(yield* a.release), b.id)
      assert.include(yield* wakeUps.next, { _tag: "YourTurn" })
      const later = yield* c.subscribe
      yield* c.wait
      yield* server.send("SET", keysOf(m).owner, "somebody else", "PX", "60000")
      assert.strictEqual(ownerOf(yield* a.release), "somebody else")
      assert.deepStrictEqual(yield* Effect.timeoutOption(later.next, "100 millis"), yield* Effect.succeedNone)
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), "somebody else")
      assert.strictEqual(yield* server.send("ZCARD", keysOf(m).queue), 1)
    }), { tags: ["S22"] })

  it.effect("a renewal publishes nothing", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const store = yield* openStore(server)
      const [a, b] = [contender(store, freshName("renewed")), contender(store, freshName("renewed"))]
      yield* a.own
      yield* a.guard
      yield* stats.reset
      for (let i = 0; i < 20; i++) {
        assert.deepStrictEqual(yield* a.guard, { _tag: "Renewed" })
        assert.strictEqual((yield* b.guard)._tag, "Lost")
      }
      const calls = yield* stats.calls
      assert.strictEqual(calls.get("evalsha"), 40)
      assert.isFalse(calls.has("publish"))
    }), { tags: ["B36"] })
})
