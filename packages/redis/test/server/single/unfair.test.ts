import { release } from "@effect-simba/core/MutexStore"
import { assert, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber } from "effect"
import {
  channelsOpen,
  commandStats,
  contender,
  freshMutex,
  freshName,
  granted,
  held,
  keysLeft,
  keysOf,
  messagesOn,
  openMutex,
  openStore,
  ownerOf,
  patient,
  queued,
  RedisServer,
  refused,
  stockId,
  until
} from "../../support/harness.ts"

const unfair = { unfair: true } as const

layer(RedisServer.layer, { excludeTestServices: true })("unfair", (it) => {
  it.effect(
    "excludes: fair and unfair fibers of three processes, and nobody is left asleep",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const m = freshName("mixed")
        let inside = 0
        const tokens: Array<number> = []
        const places = yield* Effect.all([
          openMutex(server, patient),
          openMutex(server, patient),
          openMutex(server, patient)
        ])
        const worker = (n: number) =>
          Effect.repeat(
            places[n % 3]!.withLock(m, n % 2 === 0 ? unfair : {})((lease) =>
              Effect.gen(function*() {
                assert.strictEqual(++inside, 1)
                tokens.push(lease.token)
                yield* n % 4 === 0 ? Effect.void : Effect.sleep("1 millis")
                assert.strictEqual(inside--, 1)
              })
            ),
            { times: 19 }
          )
        yield* Effect.timeout(
          Effect.all(Array.from({ length: 12 }, (_, n) => worker(n)), { concurrency: "unbounded" }),
          "40 seconds"
        )
        assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
        assert.strictEqual(tokens.length, 240)
        assert.deepStrictEqual(yield* keysLeft(server, `simba:{${m}}*`), [keysOf(m).fence])
        yield* until(
          "no channel",
          Effect.map(channelsOpen(server), (channels) => !channels.some((channel) => String(channel).includes(m)))
        )
      }),
    { tags: ["H4"] }
  )

  it.effect("throughput before order: the mutex is not idle while the waiter that was woken takes its time", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const store = yield* openStore(server)
      const mutex = yield* openMutex(server, patient)
      const rounds = Effect.fnUntraced(function*(options: { readonly unfair: boolean }, within: Duration.Input) {
        const m = freshName("throughput")
        let rounds = 0
        const slow = contender(store, m)
        yield* mutex.withLock(m, options)(Effect.andThen(slow.subscribe, slow.wait))
        yield* Effect.timeoutOption(
          Effect.repeat(mutex.withLock(m, options)(Effect.sync(() => rounds++)), { times: 99 }),
          within
        )
        yield* slow.confirm
        return rounds
      })
      assert.strictEqual(yield* rounds({ unfair: false }, "500 millis"), 0)
      assert.strictEqual(yield* rounds({ unfair: true }, "20 seconds"), 100)
    }))

  it.effect("a release frees the mutex, wakes the first waiter at once and the next after the confirm period", () =>
    Effect.gen(function*() {
      const { a, b, c, m, server, store } = yield* freshMutex("release")
      yield* a.own
      const first = yield* b.subscribe
      yield* b.wait
      const second = yield* c.subscribe
      yield* c.wait
      const stats = commandStats(server)
      yield* stats.reset
      assert.deepStrictEqual(
        yield* release(store, {
          mutex: m,
          id: a.id,
          confirm: Duration.seconds(3),
          lease: Duration.seconds(60),
          ...unfair
        }),
        {
          ownership: { _tag: "Free" },
          requeued: undefined
        }
      )
      assert.strictEqual((yield* stats.calls).get("publish"), 2)
      assert.deepStrictEqual(yield* first.next, { _tag: "YourTurn", from: a.id })
      assert.deepStrictEqual(yield* second.next, { _tag: "PollAfter", delay: Duration.seconds(3) })
      assert.strictEqual(yield* server.send("ZCARD", keysOf(m).queue), 2, "both keep their places")
      yield* b.confirm
      assert.strictEqual(yield* server.send("ZCARD", keysOf(m).queue), 1)
    }))

  it.effect(
    "a fair newcomer does not take a free mutex that somebody waits for; an unfair one does",
    () =>
      Effect.gen(function*() {
        const { m, store } = yield* freshMutex("newcomers")
        const [a, b, c, d] = [contender(store, m), contender(store, m), contender(store, m), contender(store, m)]
        const ask = (id: typeof a.id, unfair: boolean) =>
          store.acquire({
            mutex: m,
            id,
            mode: "try",
            lease: Duration.seconds(60),
            confirm: Duration.seconds(30),
            unfair
          })
        yield* a.own
        yield* b.subscribe
        yield* b.wait
        yield* release(store, {
          mutex: m,
          id: a.id,
          confirm: Duration.seconds(30),
          lease: Duration.seconds(60),
          ...unfair
        })
        granted(yield* ask(c.id, true))
        assert.strictEqual(ownerOf(refused(yield* b.ask("wait")).ownership), c.id)
        yield* release(store, {
          mutex: m,
          id: c.id,
          confirm: Duration.seconds(30),
          lease: Duration.seconds(60),
          ...unfair
        })
        assert.strictEqual(ownerOf(refused(yield* ask(d.id, false)).ownership), b.id)
        yield* b.confirm
      }),
    { tags: ["H1"] }
  )

  it.effect(
    "a dead first waiter is passed over, a silent one costs two confirm periods at most",
    () =>
      Effect.gen(function*() {
        const { m, server, store } = yield* freshMutex("dead and silent")
        const mutex = yield* openMutex(server, { ...patient, confirmTimeout: "2 seconds" })
        const [dead, silent] = [contender(store, m), contender(store, m)]
        const letGo = yield* Deferred.make<void>()
        const holding = yield* Effect.forkScoped(mutex.withLock(m, unfair)(Deferred.await(letGo)))
        yield* held(server, m)
        yield* dead.wait
        yield* silent.subscribe
        yield* silent.wait
        const waiting = yield* Effect.forkScoped(mutex.withLock(m)(Effect.void))
        yield* queued(server, m, 3)
        const begun = performance.now()
        yield* Deferred.succeed(letGo, undefined)
        yield* Fiber.join(holding)
        yield* Effect.timeout(Fiber.join(waiting), "40 seconds")
        assert.isBelow(performance.now() - begun, 6000)
      }),
    { tags: ["H3"] }
  )

  it.effect("a waiter that leaves passes its wake-up on", () =>
    Effect.gen(function*() {
      const { m, server, store } = yield* freshMutex("leaving")
      const mutex = yield* openMutex(server, patient)
      const leaving = contender(store, m)
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(mutex.withLock(m, unfair)(Deferred.await(letGo)))
      yield* held(server, m)
      yield* leaving.subscribe
      yield* leaving.wait
      const waiting = yield* Effect.forkScoped(mutex.withLock(m)(Effect.void))
      yield* queued(server, m, 2)
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      yield* leaving.release
      yield* Effect.timeout(Fiber.join(waiting), "40 seconds")
    }), { tags: ["H4"] })

  it.effect("a Simba waiter at the head is told as before, and only unfair ones overtake it", () =>
    Effect.gen(function*() {
      const { a, b, c, m, server, store } = yield* freshMutex("stock")
      const stock = stockId()
      yield* a.own
      const notified = yield* messagesOn(server, `simba:{${m}}:${stock}`)
      yield* server.send("ZADD", keysOf(m).queue, "1700000000", stock)
      yield* release(store, {
        mutex: m,
        id: a.id,
        confirm: Duration.seconds(30),
        lease: Duration.seconds(60),
        ...unfair
      })
      yield* until("the Simba waiter is told", Effect.sync(() => notified.length > 0))
      assert.deepStrictEqual(notified, [[`simba:{${m}}:${stock}`, `released@@${a.id}`]])
      assert.strictEqual(yield* server.send("GET", keysOf(m).reserved), stock)
      refused(yield* b.ask("try"))
      granted(
        yield* store.acquire({
          mutex: m,
          id: c.id,
          mode: "try",
          lease: Duration.seconds(60),
          confirm: Duration.seconds(30),
          unfair: true
        })
      )
      assert.isNull(yield* server.send("GET", keysOf(m).reserved))
    }))
})
