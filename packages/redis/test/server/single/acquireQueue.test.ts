/** Waiters of one process share one place: random scripts on the fake Redis, and what it costs on a real one. */
import { Mutex, MutexStore } from "@effect-simba/core"
import { RedisMutexStore } from "@effect-simba/redis"
import { ContentionScript, FakeRedis, TestMutex } from "@effect-simba/testkit"
import { assert, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer } from "effect"
import { commandStats, freshName, keysOf, openMutex, RedisServer, until } from "../../support/harness.ts"

const patient = { ttl: "10 minutes", transition: "5 minutes", confirmTimeout: "1 minute" } as const

/** A process all of whose holders hand the lease on as often as that. */
const processWith = (maxLocalHandOffs: number) => (name: string) =>
  Layer.effect(
    Mutex.Mutex,
    Effect.map(Layer.build(TestMutex.layerClient(RedisMutexStore.layer, { name })), (context) => {
      const mutex = Context.get(context, Mutex.Mutex)
      return Mutex.Mutex.of({
        ...mutex,
        withLock: (name, options) => mutex.withLock(name, { ...options, maxLocalHandOffs }),
        withLockIfAvailable: (name, options) => mutex.withLockIfAvailable(name, { ...options, maxLocalHandOffs })
      })
    })
  )

const crowded = {
  workers: 2,
  mutexes: 1,
  length: [1, 30],
  within: "4 seconds",
  hold: ["1 millis", "600 millis"]
} as const

it.effect.prop(
  "two crowded processes: never two, growing tokens, first come, first served in each",
  [ContentionScript.arbitrary(crowded)],
  ([script]) =>
    Effect.gen(function*() {
      const history = yield* ContentionScript.run(script, { layer: processWith(0) })
      assert.deepStrictEqual(ContentionScript.problems(history), [])
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual((yield* server.keys).filter(({ key }) => !key.endsWith(":fence")), [])
    }).pipe(Effect.provide(FakeRedis.layer())),
  { timeout: 60_000 }
)

it.effect.prop(
  "and where they hand leases on: others wait for bound and one holders at most",
  [ContentionScript.arbitrary({ ...crowded, kinds: ["acquire", "timeout", "tryAcquire"] })],
  ([script]) =>
    Effect.gen(function*() {
      const bound = 2
      const history = yield* ContentionScript.run(script, { layer: processWith(bound) })
      assert.deepStrictEqual(ContentionScript.problems(history, ["neverTwo", "tokensGrow", "everybodyServed"]), [])
      assert.deepStrictEqual(history.failed, [])
      const { gaveUp, holdings } = history
      holdings.forEach((holding, index) => {
        for (const earlier of holdings.slice(0, index)) {
          if (earlier.worker === holding.worker) assert.isAtMost(earlier.asked, holding.asked)
        }
        // Since this one asked: a turn of the other process that had begun, and one in which this process's own went before
        const others = holdings.slice(0, index).filter(({ from, worker }) =>
          worker !== holding.worker && from > holding.asked
        )
        const own = holdings.slice(0, index).filter(({ from, worker }) =>
          worker === holding.worker && from >= holding.asked
        )
        const mayTakePlace = gaveUp.filter(({ at, worker }) => worker === holding.worker && at <= holding.from)
        const turns = 2 + own.length + mayTakePlace.length
        assert.isAtMost(others.length, turns * (bound + 1))
      })
      const server = yield* FakeRedis.FakeRedis
      assert.deepStrictEqual((yield* server.keys).filter(({ key }) => !key.endsWith(":fence")), [])
    }).pipe(Effect.provide(FakeRedis.layer())),
  { timeout: 60_000 }
)

it.effect.prop(
  "likewise on the in-process store",
  [ContentionScript.arbitrary(crowded)],
  ([script]) =>
    Effect.gen(function*() {
      for (const maxLocalHandOffs of [0, 2]) {
        const history = yield* ContentionScript.run(script, {
          layer: () => Layer.fresh(Mutex.layer({ maxLocalHandOffs }))
        }).pipe(Effect.provide(Layer.fresh(MutexStore.layerMemory)))
        assert.deepStrictEqual(ContentionScript.problems(history, ["neverTwo", "tokensGrow"]), [])
        if (maxLocalHandOffs === 0) assert.deepStrictEqual(ContentionScript.problems(history), [])
        assert.deepStrictEqual([history.unserved, history.failed], [[], []])
      }
    }),
  { timeout: 60_000 }
)

layer(RedisServer.layer, { excludeTestServices: true })("places on a real server", (it) => {
  it.effect("a thousand waiters behind another process: two requests, one entry, no subscription; then one release each", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const [holder, mutex] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("a thousand")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      yield* stats.reset
      const order: Array<number> = []
      const tokens: Array<number> = []
      const waiters = yield* Effect.forEach(
        Array.from({ length: 1000 }, (_, n) => n),
        (n) =>
          Effect.forkScoped(
            mutex.withLock(m)((lease) =>
              Effect.sync(() => {
                order.push(n)
                tokens.push(lease.token)
              })
            )
          )
      )
      yield* until("queued", Effect.map(server.send("ZCARD", keysOf(m).queue), (n) => n === 1))
      const waiting = yield* stats.calls
      assert.deepStrictEqual([waiting.get("evalsha"), waiting.get("subscribe")], [2, undefined])
      yield* stats.reset
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.joinAll([holding, ...waiters])
      assert.deepStrictEqual(order, [...order].sort((a, b) => a - b))
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      yield* until("free", Effect.map(server.send("EXISTS", keysOf(m).owner, keysOf(m).queue), (n) => n === 0))
      const handing = yield* stats.calls
      // The holder's release, the confirmation of the first, a release each
      assert.isAtMost(handing.get("evalsha")!, 1 + 1 + 1000)
      assert.deepStrictEqual([handing.has("subscribe"), handing.has("unsubscribe")], [false, false])
    }))

  it.effect("with maxLocalHandOffs they share turns, and another process has its own between two of them", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const maxLocalHandOffs = 63
      const [us, them] = yield* Effect.all([
        openMutex(server, { ...patient, maxLocalHandOffs }),
        openMutex(server, patient)
      ])
      const m = freshName("turns")
      const letGo = yield* Deferred.make<void>()
      const served: Array<string> = []
      const tokens: Array<number> = []
      const work = (name: string) => (lease: { readonly token: number }) =>
        Effect.sync(() => {
          served.push(name)
          tokens.push(lease.token)
        })
      const holding = yield* Effect.forkScoped(us.withLock(m)(Deferred.await(letGo)))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      const waiters = yield* Effect.forEach(
        Array.from({ length: 320 }),
        () => Effect.forkScoped(us.withLock(m)(work("us")))
      )
      // Four in line, so that each release queues the next in the same script: they never cease to wait
      const others = yield* Effect.forEach(
        Array.from({ length: 4 }),
        () => Effect.forkScoped(them.withLock(m)(work("them")))
      )
      yield* until("they wait", Effect.map(server.send("ZCARD", keysOf(m).queue), (n) => n === 1))
      yield* stats.reset
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.joinAll([holding, ...waiters, ...others])
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      const runs = served.join(" ").split(/ ?them ?/).map((run) => run === "" ? 0 : run.split(" ").length)
      assert.strictEqual(runs[0], maxLocalHandOffs, "behind the holder, who was the first of that turn")
      for (const run of runs.slice(0, -1)) assert.isAtMost(run, maxLocalHandOffs + 1)
      assert.isAtMost((yield* stats.calls).get("evalsha")!, 40)
    }))

  it.effect("a layer whose server is flushed under a line goes on with it", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ttl: "300 millis", transition: "2 seconds", maxLocalHandOffs: 5 })
      const m = freshName("flushed")
      let served = 0
      let lost = 0
      const work = mutex.withLock(m)(
        Effect.andThen(Effect.sleep("40 millis"), Effect.sync(() => served++))
      ).pipe(Effect.catchTag("LeaseLost", () => Effect.sync(() => lost++)))
      const waiters = yield* Effect.forEach(Array.from({ length: 30 }), () => Effect.forkScoped(work))
      for (let i = 0; i < 3; i++) {
        yield* Effect.sleep("300 millis")
        yield* server.send("DEL", keysOf(m).owner, keysOf(m).queue)
      }
      yield* Effect.timeout(Fiber.joinAll(waiters), "20 seconds")
      assert.strictEqual(served + lost, 30)
      assert.isAtMost(lost, 3)
    }))
})
