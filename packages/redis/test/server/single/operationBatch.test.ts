import { acquire, release, wakeUps } from "@effect-simba/core/MutexStore"
import { assert, layer } from "@effect/vitest"
import { Effect, Exit } from "effect"
import {
  channelsOpen,
  commandStats,
  exitsOf,
  freshId,
  freshName,
  granted,
  keysOf,
  openMutex,
  openStore,
  RedisServer,
  requestOf,
  until
} from "../../support/harness.ts"

layer(RedisServer.layer, { excludeTestServices: true })("requests from one event-loop turn on Redis", (it) => {
  it.effect("are sent in calls of at most 64, and each gets its own reply", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const requests = Array.from({ length: 150 }, () => requestOf("turn"))
      yield* Effect.scoped(wakeUps(store, requests[0]!.mutex, requests[0]!.id))
      const stats = commandStats(server)
      yield* stats.reset
      const results = yield* Effect.forEach(requests, (request) => acquire(store, request), {
        concurrency: "unbounded"
      })
      assert.strictEqual((yield* stats.calls).get("evalsha"), 3)
      results.forEach(granted)
      for (const { id, mutex } of requests) assert.strictEqual(yield* server.send("GET", keysOf(mutex).owner), id)
      yield* stats.reset
      yield* Effect.forEach(requests, (request) => release(store, request), { concurrency: "unbounded" })
      assert.strictEqual((yield* stats.calls).get("evalsha"), 3)
      for (const { mutex } of requests) assert.strictEqual(yield* server.send("EXISTS", keysOf(mutex).owner), 0)
    }))

  it.effect("an operation on a key of the wrong type does not fail the others in its call", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const requests = Array.from({ length: 9 }, () => requestOf("neighbours"))
      yield* server.send("LPUSH", keysOf(requests[1]!.mutex).owner, "x")
      yield* server.send("LPUSH", keysOf(requests[4]!.mutex).fence, "x")
      yield* server.send("SET", keysOf(requests[7]!.mutex).queue, "x")
      const exits = yield* exitsOf(requests.map((request) => acquire(store, request)))
      for (const [index, exit] of exits.entries()) {
        if (index % 3 !== 1) granted(Exit.isSuccess(exit) ? exit.value : assert.fail(String(exit)))
        else {
          assert.isTrue(Exit.isFailure(exit))
          assert.match(String(exit), /WRONGTYPE/)
        }
      }
      assert.strictEqual(yield* server.send("EXISTS", keysOf(requests[4]!.mutex).owner), 0)
      const released = yield* exitsOf(requests.map((request) => release(store, request)))
      assert.deepStrictEqual(
        released.map(Exit.isSuccess),
        [true, false, true, true, true, true, true, false, true]
      )
    }))

  it.effect("an operation refused for lack of memory does not fail the others in its call", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const [owned, released] = [requestOf("full"), requestOf("full")]
      for (const request of [owned, released]) granted(yield* acquire(store, request))
      const waiting = { ...owned, id: freshId(), mode: "wait" as const }
      const both = Effect.all([Effect.exit(acquire(store, waiting)), Effect.exit(release(store, released))], {
        concurrency: "unbounded"
      })
      const [queued, freed] = yield* Effect.andThen(server.send("CONFIG", "SET", "maxmemory", "1"), both).pipe(
        Effect.ensuring(Effect.ignore(server.send("CONFIG", "SET", "maxmemory", "0")))
      )
      assert.match(String(queued), /OOM/)
      assert.isTrue(Exit.isSuccess(freed), String(freed))
      assert.strictEqual(yield* server.send("EXISTS", keysOf(released.mutex).owner), 0)
    }))

  it.effect("with a fence ahead of the clock, tokens grow by at least the stride of the previous grant", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      for (const [fence, token] of [["8000000000000000", 8000000000000101], ["8000000000000001", 8000000000000002]]) {
        const request = requestOf("ahead")
        yield* server.send("SET", keysOf(request.mutex).fence, String(fence))
        assert.strictEqual(granted(yield* acquire(store, request)).token, token)
        assert.strictEqual(yield* server.send("GET", keysOf(request.mutex).fence), String(token))
        assert.strictEqual(yield* server.send("GET", keysOf(request.mutex).owner), request.id)
      }
      // The server's clock stands still during a call
      const first = requestOf("same instant")
      const second = { ...first, id: freshId() }
      const [before, , after] = yield* Effect.all(
        [acquire(store, first), release(store, first), acquire(store, second)],
        { concurrency: "unbounded" }
      )
      assert.isAbove(granted(after).token, granted(before).token)
    }))

  it.effect("are executed in order, even for one mutex", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const first = requestOf("order")
      granted(yield* acquire(store, first))
      const ids = Array.from({ length: 20 }, () => freshId())
      let last = first.id
      const asked: Array<Effect.Effect<unknown, unknown>> = []
      for (const id of ids) {
        asked.push(release(store, { ...first, id: last }), Effect.map(acquire(store, { ...first, id }), granted))
        last = id
      }
      const exits = yield* exitsOf(asked)
      assert.isTrue(exits.every(Exit.isSuccess), String(exits.find(Exit.isFailure)))
      assert.strictEqual(yield* server.send("GET", keysOf(first.mutex).owner), last)
    }))

  it.effect("a release and the same fiber's next acquire share one call", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server)
      const m = freshName("again")
      const once = Effect.scoped(Effect.map(mutex.acquire(m), ({ token }) => token))
      let last: number = yield* once
      const stats = commandStats(server)
      yield* stats.reset
      for (let i = 0; i < 200; i++) {
        const token = yield* once
        assert.isAbove(token, last)
        last = token
      }
      // The last release is not followed by an acquire
      assert.isAtMost((yield* stats.calls).get("evalsha")!, 201)
      assert.isUndefined((yield* stats.calls).get("subscribe"))
      yield* until("released", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 0))
      assert.deepStrictEqual(yield* channelsOpen(server, `simba:{${m}}*`), [])
    }))
})
