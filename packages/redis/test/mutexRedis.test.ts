import { BackendError, InvalidConfig, LeaseLost } from "@effect-simba/core/Errors"
import * as Mutex from "@effect-simba/core/Mutex"
import { RedisMutex } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { ConfigProvider, Deferred, Duration, Effect, Exit, Fiber, Layer, Option } from "effect"
import {
  capturingLogs,
  connections,
  freshName,
  keysLeft,
  keysOf,
  killConnections,
  mutexChannelsOpen,
  openMutex,
  ownerOf,
  RedisServer,
  until
} from "./support/harness.ts"
import type { Server } from "./support/redisServer.ts"

/** A lease far longer than any test, so that only a message or a gap can wake a waiter in time. */
const patient = { ttl: "10 minutes", transition: "5 minutes", confirm: "1 minute" } as const

const queueLength = (server: Server, mutex: Parameters<typeof keysOf>[0], count: number) =>
  until(`${count} in the queue`, Effect.map(server.send("ZCARD", keysOf(mutex).queue), (n) => n === count))

/** Work that waits for its interruption, and notes when it came. */
const interruptible = () => {
  let interruptedAt: number | undefined
  return {
    body: Effect.onInterrupt(Effect.never, () =>
      Effect.sync(() => {
        interruptedAt = performance.now()
      })),
    get interruptedAt() {
      return interruptedAt
    }
  }
}

const quiet = capturingLogs([])

const lossOf = <A, E>(exit: Exit.Exit<A, E>): LeaseLost => {
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  assert.instanceOf(error, LeaseLost, JSON.stringify(exit))
  return error as unknown as LeaseLost
}

layer(RedisServer.layer, { excludeTestServices: true })("a mutex on Redis", (it) => {
  it.effect("excludes: fifteen fibers of three processes, many rounds", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const m = freshName("exclusion")
      let inside = 0
      const tokens: Array<number> = []
      const worker = (mutex: Mutex.Mutex["Service"]) =>
        Effect.repeat(
          mutex.withLock(m)((lease) =>
            Effect.gen(function*() {
              assert.strictEqual(++inside, 1)
              tokens.push(lease.token)
              yield* Effect.sleep("1 millis")
              yield* lease.ensure
              assert.strictEqual(inside--, 1)
            })
          ),
          { times: 9 }
        )
      const places = yield* Effect.all([openMutex(server), openMutex(server), openMutex(server)])
      yield* Effect.all(
        places.flatMap((place) => Array.from({ length: 5 }, () => worker(place))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(tokens.length, 150)
      assert.deepStrictEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b))
      assert.strictEqual(yield* server.send("EXISTS", keysOf(m).owner, keysOf(m).queue), 0)
    }))

  it.effect("H1: first come, first served, between processes", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const m = freshName("order")
      const places = yield* Effect.all([
        openMutex(server, patient),
        openMutex(server, patient),
        openMutex(server, patient)
      ])
      const letGo = yield* Deferred.make<void>()
      const order: Array<number> = []
      const first = yield* Effect.forkScoped(places[0].withLock(m)(Deferred.await(letGo)))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      const waiters: Array<Fiber.Fiber<unknown, unknown>> = []
      for (let i = 0; i < 12; i++) {
        waiters.push(yield* Effect.forkScoped(places[(i * 2) % 3]!.withLock(m)(Effect.sync(() => order.push(i)))))
        yield* queueLength(server, m, i + 1)
      }
      yield* Deferred.succeed(letGo, undefined)
      for (const fiber of [first, ...waiters]) yield* Fiber.join(fiber)
      assert.deepStrictEqual(order, Array.from({ length: 12 }, (_, i) => i))
    }))

  it.effect("B2: a waiter whose subscription was lost still gets the mutex", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const m = freshName("gap")
      const holder = yield* openMutex(server, patient)
      const waiter = yield* openMutex(server, { ...patient, redis: { client: { connectionName: "waiter" } } })
      for (let round = 0; round < 3; round++) {
        const letGo = yield* Deferred.make<void>()
        const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
        yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
        const waiting = yield* Effect.forkScoped(waiter.withLock(m)(Effect.void))
        yield* queueLength(server, m, 1)
        const [subscriber] = (yield* connections(server, "waiter")).slice(-1)
        yield* server.send("CLIENT", "KILL", "ID", subscriber!)
        yield* Deferred.succeed(letGo, undefined)
        yield* Fiber.join(holding)
        yield* Effect.timeout(Fiber.join(waiting), "10 seconds")
      }
    }))

  it.effect("B18: a key that was deleted is a loss: the work is interrupted, and the mutex is not made again", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ttl: "300 millis", transition: "3 seconds" })
      const m = freshName("deleted")
      const work = interruptible()
      const working = yield* Effect.forkScoped(mutex.withLock(m)(work.body))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      yield* server.send("DEL", keysOf(m).owner)
      const loss = lossOf(yield* Fiber.await(working))
      assert.strictEqual(loss.reason, "Vanished")
      assert.isDefined(work.interruptedAt)
      yield* Effect.sleep("700 millis")
      assert.strictEqual(yield* server.send("EXISTS", keysOf(m).owner), 0)
    }).pipe(Effect.provide(quiet)))

  it.effect("a key that was overwritten is a loss that names the new owner, and is left alone", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ttl: "300 millis", transition: "3 seconds" })
      const m = freshName("overwritten")
      const work = interruptible()
      const working = yield* Effect.forkScoped(mutex.withLock(m)(work.body))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      yield* server.send("SET", keysOf(m).owner, "somebody else", "PX", "60000")
      const loss = lossOf(yield* Fiber.await(working))
      assert.deepStrictEqual([loss.reason, loss.owner], ["TakenOver", "somebody else"])
      assert.isDefined(work.interruptedAt)
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), "somebody else")
    }).pipe(Effect.provide(quiet)))

  it.effect("L2: a lease is renewed for as long as its work takes", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, {
        ttl: "200 millis",
        transition: "1 second",
        commandTimeout: "500 millis"
      })
      const other = yield* openMutex(server)
      const m = freshName("renewed")
      yield* mutex.withLock(m)((lease) =>
        Effect.gen(function*() {
          for (let i = 0; i < 10; i++) {
            yield* Effect.sleep("200 millis")
            yield* lease.ensure
            assert.strictEqual(ownerOf(yield* other.owner(m)), lease.id)
          }
        })
      )
      assert.deepStrictEqual(yield* other.owner(m), { _tag: "Free" })
    }))

  it.effect("H7: an interrupted acquire returns at once and leaves nothing behind", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [holder, waiter] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("interrupted")
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* holder.acquire(m)
        const waiting = yield* Effect.forkScoped(Effect.scoped(waiter.acquire(m)))
        yield* queueLength(server, m, 1)
        yield* Fiber.interrupt(waiting)
        yield* until("no place", Effect.map(server.send("EXISTS", keysOf(m).queue), (n) => n === 0))
        yield* until("no channel", Effect.map(mutexChannelsOpen(server), (channels) => channels.length === 0))
        assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
      }))
      assert.deepStrictEqual(yield* keysLeft(server, `simba:{${m}}*`), [keysOf(m).fence])
    }))

  it.effect("H7: an acquire that is interrupted at any moment leaves nothing behind", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, patient)
      const m = freshName("interrupted anywhere")
      for (let i = 0; i < 60; i++) {
        const holding = i % 2 === 0
        const attempts = Effect.forEach(
          [1, 2, 3],
          () => Effect.scoped(Effect.andThen(mutex.acquire(m), Effect.never)),
          {
            concurrency: "unbounded"
          }
        )
        const fiber = yield* Effect.forkScoped(holding ? attempts : Effect.scoped(mutex.acquire(m)))
        for (let yields = 0; yields < i % 10; yields++) yield* Effect.yieldNow
        if (i % 3 === 0) yield* Effect.sleep(Duration.millis((i % 7) / 2))
        yield* Fiber.interrupt(fiber)
      }
      yield* until(
        "nothing is left",
        Effect.map(keysLeft(server, `simba:{${m}}*`), (keys) => keys.every((key) => key === keysOf(m).fence))
      )
      yield* until("no channel", Effect.map(mutexChannelsOpen(server), (channels) => channels.length === 0))
      yield* Effect.timeout(Effect.scoped(mutex.acquire(m)), "5 seconds")
    }))

  it.effect("H7: an acquire that timed out leaves nothing behind, and names the owner it saw", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [holder, waiter] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("timed out")
      yield* Effect.scoped(Effect.gen(function*() {
        const lease = yield* holder.acquire(m)
        const begun = performance.now()
        const error = yield* Effect.flip(waiter.withLock(m, { timeout: "300 millis" })(Effect.void))
        assert.isAtLeast(performance.now() - begun, 299)
        assert.strictEqual(error._tag, "AcquireTimeout")
        if (error._tag === "AcquireTimeout") assert.strictEqual(error.owner, lease.id)
        yield* until("no place", Effect.map(server.send("EXISTS", keysOf(m).queue), (n) => n === 0))
        yield* until("no channel", Effect.map(mutexChannelsOpen(server), (channels) => channels.length === 0))
        assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
      }))
      assert.deepStrictEqual(yield* keysLeft(server, `simba:{${m}}*`), [keysOf(m).fence])
    }))

  it.effect("H3: a waiter that leaves does not hold up the one behind it", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const [holder, waiter] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("leaving")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      const leaving = yield* Effect.forkScoped(Effect.scoped(waiter.acquire(m)))
      yield* queueLength(server, m, 1)
      const staying = yield* Effect.forkScoped(Effect.scoped(waiter.acquire(m)))
      yield* queueLength(server, m, 2)
      yield* Effect.all([Fiber.interrupt(leaving), Deferred.succeed(letGo, undefined)], { concurrency: 2 })
      yield* Fiber.join(holding)
      yield* Effect.timeout(Fiber.join(staying), "10 seconds")
    }))
})

describe("a mutex on a Redis that fails", () => {
  it.live("B2: a server that starts anew while somebody waits: the waiter gets the mutex, the holder loses it", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const options = { ttl: "400 millis", transition: "20 seconds", confirm: "1 minute" } as const
      const [holder, waiter] = yield* Effect.all([openMutex(server, options), openMutex(server, patient)])
      const m = freshName("restart")
      const work = interruptible()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(work.body))
      yield* until("held", Effect.map(server.send("EXISTS", keysOf(m).owner), (n) => n === 1))
      const waiting = yield* Effect.forkScoped(waiter.acquire(m))
      yield* queueLength(server, m, 1)
      yield* server.restart
      const lease = yield* Effect.timeout(Fiber.join(waiting), "15 seconds")
      yield* lease.ensure
      const loss = lossOf(yield* Effect.timeout(Fiber.await(holding), "15 seconds"))
      assert.include(["Vanished", "TakenOver"], loss.reason)
      assert.isAbove(lease.token, loss.token)
      assert.isDefined(work.interruptedAt)
      yield* lease.ensure
    }).pipe(Effect.provide(quiet)))

  it.live("L1: a server that hangs: the work is interrupted at the local deadline, with BackendGone", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const mutex = yield* openMutex(server, {
        ttl: "400 millis",
        transition: "1500 millis",
        commandTimeout: "500 millis",
        redis: { commandTimeout: "500 millis" }
      })
      const m = freshName("hangs")
      const work = interruptible()
      const deadline = yield* Deferred.make<number>()
      const working = yield* Effect.forkScoped(
        mutex.withLock(m)((lease) =>
          Effect.gen(function*() {
            yield* Effect.sleep("1 second")
            yield* server.pause
            // No renewal can succeed from here on, once the one that may be under way has been heard of
            yield* Effect.sleep("100 millis")
            yield* Deferred.succeed(deadline, performance.now() + Duration.toMillis(yield* lease.timeLeft))
            return yield* work.body
          })
        )
      )
      const loss = lossOf(yield* Fiber.await(working))
      assert.strictEqual(loss.reason, "BackendGone")
      const due = yield* Deferred.await(deadline)
      assert.isDefined(work.interruptedAt)
      assert.isAtLeast(work.interruptedAt! - due, -5, "neither early")
      assert.isBelow(work.interruptedAt! - due, 1000, "nor late")
      yield* server.resume
      yield* until(
        "it is free again",
        Effect.map(Effect.exit(mutex.owner(m)), (exit) => Exit.isSuccess(exit) && exit.value._tag === "Free")
      )
      yield* Effect.retry(mutex.withLock(m)(Effect.void), { times: 10 })
    }).pipe(Effect.provide(quiet)))

  it.live("L2, B13: an outage that is shorter than the transition costs nothing", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const mutex = yield* openMutex(server, {
        ttl: "300 millis",
        transition: "10 seconds",
        commandTimeout: "500 millis",
        redis: { commandTimeout: "500 millis" }
      })
      const m = freshName("short outage")
      yield* mutex.withLock(m)((lease) =>
        Effect.gen(function*() {
          yield* server.pause
          yield* Effect.sleep("2 seconds")
          yield* server.resume
          yield* until("renewed", Effect.map(lease.timeLeft, (left) => Duration.toMillis(left) > 9500))
          assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
          // And a lost connection as well
          yield* killConnections(server, "simba:commands")
          yield* Effect.sleep("500 millis")
          yield* until("renewed", Effect.map(lease.timeLeft, (left) => Duration.toMillis(left) > 9500))
          yield* lease.ensure
        })
      )
    }).pipe(Effect.provide(quiet)))

  it.live("an acquire sits out an outage, and fails as a BackendError where that lasts longer than a lease", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const mutex = yield* openMutex(server, {
        ttl: "300 millis",
        transition: "1700 millis",
        commandTimeout: "300 millis"
      })
      const m = freshName("outage")
      yield* server.kill()
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      yield* Effect.sleep("300 millis")
      assert.isUndefined(waiting.pollUnsafe())
      yield* server.restart
      yield* Effect.timeout(Fiber.join(waiting), "10 seconds")
      yield* server.kill()
      const error = yield* Effect.flip(Effect.timeout(Effect.scoped(mutex.acquire(m)), "15 seconds"))
      assert.instanceOf(error, BackendError)
    }).pipe(Effect.provide(quiet)))
})

describe("a mutex on Redis, from the environment", () => {
  const build = (env: Record<string, string>) =>
    Layer.fresh(RedisMutex.layerConfig()).pipe(
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )

  it.live.each(["SIMBA_ENABLED", "SIMBA_REDIS_ENABLED"])(
    "%s=false: refuses to build, and says why",
    (option) =>
      Effect.gen(function*() {
        const server = yield* RedisServer.start()
        const error = yield* Effect.flip(
          Effect.scoped(Layer.build(build({ REDIS_URL: server.url, [option]: "false" })))
        )
        assert.instanceOf(error, InvalidConfig)
        assert.strictEqual((error as InvalidConfig).option, option)
        assert.include((error as InvalidConfig).message, "MemoryMutexStore")
        assert.strictEqual((yield* connections(server, "simba:commands")).length, 0)
      })
  )

  it.live("periods and URL are those of the environment", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const env = {
        REDIS_URL: server.url,
        SIMBA_ENABLED: "true",
        SIMBA_REDIS_TTL: "40 seconds",
        SIMBA_REDIS_TRANSITION: "20 seconds"
      }
      const m = freshName("environment")
      yield* Effect.gen(function*() {
        yield* Mutex.acquire(m)
        const left = Number(yield* server.send("PTTL", keysOf(m).owner))
        assert.isAbove(left, 50_000)
        assert.isAtMost(left, 60_000)
      }).pipe(Effect.scoped, Effect.provide(build(env)))
    }))

  it.live.each([
    { SIMBA_REDIS_TTL: "soon" },
    { SIMBA_REDIS_TTL: "0 seconds" },
    { SIMBA_REDIS_TRANSITION: "1 second" },
    { SIMBA_REDIS_TRANSITION: "-1 second" },
    { SIMBA_ENABLED: "perhaps" },
    { REDIS_URL: "http://localhost" }
  ])("%j: refuses to build", (env) =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const error = yield* Effect.flip(Effect.scoped(Layer.build(build({ REDIS_URL: server.url, ...env }))))
      assert.include(["InvalidConfig", "ConfigError"], error._tag)
      assert.strictEqual((yield* connections(server, "simba:commands")).length, 0)
    }))
})
