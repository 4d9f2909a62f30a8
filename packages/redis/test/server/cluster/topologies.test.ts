import { Mutex } from "@effect-simba/core"
import { FencingToken } from "@effect-simba/core/FencingToken"
import { Subscriber } from "@effect-simba/core/Subscriber"
import { Fencing, IoRedis, RedisMutexStore } from "@effect-simba/redis"
import { assert, describe, it, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Queue, Schedule } from "effect"
import { Redis } from "effect/persistence/Redis"
import * as RedisKeys from "../../../src/internal/mutex/keys.ts"
import { capturingLogs, until } from "../../support/harness.ts"
import { RedisServer, type RedisServerError, type Server } from "../../support/redisServer.ts"
import { relayTo } from "../../support/relay.ts"

type Provided = Mutex.Mutex | Redis | IoRedis.IoRedis

const mutexes = (ioRedis: ReturnType<typeof IoRedis.layer>) =>
  Mutex.layer({ ttl: "1 second", transition: "2 seconds", commandTimeout: "500 millis", confirmTimeout: "500 millis" })
    .pipe(
      Layer.provideMerge(RedisMutexStore.layer),
      Layer.provideMerge(ioRedis)
    )

class Sentinel extends Context.Service<Sentinel, Effect.Success<ReturnType<typeof RedisServer.sentinel>>>()(
  "test/Sentinel"
) {
  static readonly layer = Layer.effect(Sentinel, RedisServer.sentinel())
}

class ClusterNodes extends Context.Service<ClusterNodes, Effect.Success<ReturnType<typeof RedisServer.cluster>>>()(
  "test/ClusterNodes"
) {
  static readonly layer = Layer.effect(ClusterNodes, RedisServer.cluster())
}

const throughSentinel = Layer.unwrap(Effect.map(Sentinel, ({ name, sentinels }) =>
  mutexes(IoRedis.layer({
    client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
    commandTimeout: "500 millis"
  })))).pipe(Layer.provideMerge(Sentinel.layer))

const onCluster = Layer.unwrap(Effect.map(ClusterNodes, ({ nodes }) =>
  mutexes(IoRedis.layerCluster({
    nodes: nodes.slice(0, 1).map(({ port }) => ({ host: "127.0.0.1", port })),
    commandTimeout: "500 millis"
  })))).pipe(Layer.provideMerge(ClusterNodes.layer))

const onOne = Layer.unwrap(Effect.map(RedisServer, ({ url }) => mutexes(IoRedis.layer({ url })))).pipe(
  Layer.provide(RedisServer.layer)
)

/** Counts in a key of the resource's slot. */
const advance = Fencing.script((key: string, by: number) => [key, by], {
  numberOfKeys: 1,
  lua: `return redis.call('INCRBY', KEYS[1], ARGV[1])`
})

/** What users rely on, wherever their Redis runs. */
const contract = <R>(name: string, live: Layer.Layer<Provided | R, RedisServerError | Layer.Error<typeof onOne>>) =>
  layer(live, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    it.effect("excludes, serves in order and wakes up by message, for names in every slot", () =>
      Effect.gen(function*() {
        const names = Array.from({ length: 24 }, (_, i) => `${name} ${i}`)
        yield* Effect.forEach(names, (mutex) =>
          Effect.gen(function*() {
            const order: Array<number> = []
            let inside = 0
            const first = yield* Effect.forkChild(
              Mutex.withLock(mutex)(Effect.sleep("100 millis")),
              { startImmediately: true }
            )
            yield* Effect.retry(
              Effect.filterOrFail(Mutex.owner(mutex), (owner) => owner._tag === "Held"),
              Schedule.spaced("5 millis")
            )
            const waiters: Array<Fiber.Fiber<void, unknown>> = []
            for (const n of [1, 2, 3]) {
              waiters.push(
                yield* Effect.forkChild(
                  Mutex.withLock(mutex)(Effect.gen(function*() {
                    assert.strictEqual(++inside, 1)
                    yield* Effect.yieldNow
                    order.push(n)
                    inside--
                  }))
                )
              )
              yield* Effect.sleep("10 millis")
            }
            yield* Fiber.join(first)
            yield* Fiber.joinAll(waiters)
            assert.deepStrictEqual(order, [1, 2, 3])
            assert.strictEqual((yield* Mutex.owner(mutex))._tag, "Free")
          }), { concurrency: 8 })
      }))

    it.effect("renews leases of names in every slot for longer than they would last", () =>
      Effect.scoped(Effect.gen(function*() {
        const leases = yield* Effect.forEach(
          Array.from({ length: 24 }, (_, i) => `renewed ${i}`),
          (mutex) => Mutex.acquire(mutex)
        )
        yield* Effect.sleep("4 seconds")
        for (const lease of leases) yield* lease.ensure
      })))

    it.effect("recovers when the server has forgotten the scripts", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        for (let i = 0; i < 12; i++) {
          yield* redis.send("SCRIPT", "FLUSH")
          yield* Mutex.withLock(`forgotten ${i}`)(Effect.void)
        }
      }))

    it.effect("holds several mutexes at once, whatever their slots", () =>
      Effect.gen(function*() {
        const group = yield* Mutex.acquireAll(["x", "y", "z"])
        assert.strictEqual(yield* group.protect(Effect.succeed(group.tokens.size)), 3)
      }).pipe(Effect.scoped))

    it.effect("B32: fences resources in every slot: a former holder writes nothing", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const names = Array.from(
          { length: 24 },
          (_, i) => i % 2 === 0 ? `${name} fenced ${i}` : `{${name} ${i}}:fenced`
        )
        yield* Effect.forEach(names, (key) =>
          Effect.gen(function*() {
            const tokenOf = Effect.scoped(Effect.map(Mutex.acquire(key), (lease) => lease.token))
            const former = yield* tokenOf
            yield* Fencing.set(key, "former", former)
            const latter = yield* tokenOf
            yield* Fencing.guard(key, latter)
            const late = yield* Effect.flip(Fencing.set(key, "late", former))
            assert.deepInclude(late, { _tag: "StaleToken", token: former, seen: latter })
            assert.strictEqual(yield* redis.send("GET", key), "former")
            yield* Fencing.set(key, "latter", latter)
            const other = RedisKeys.seenToken(key).replace(":simba-token", ":count")
            assert.strictEqual(yield* Fencing.run(advance, key, latter)(other, 2), 2)
            const again = yield* Effect.flip(Fencing.run(advance, key, former)(other, 2))
            assert.strictEqual(again._tag, "StaleToken")
            assert.strictEqual(yield* redis.send("GET", other), "2")
            assert.strictEqual(yield* redis.send("GET", key), "latter")
          }), { concurrency: 8, discard: true })
      }))

    it.effect("fences on, when the server has forgotten the scripts", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        for (let i = 0; i < 12; i++) {
          yield* redis.send("SCRIPT", "FLUSH")
          const key = `${name} forgotten fence ${i}`
          yield* Fencing.set(key, "new", FencingToken.make(2))
          yield* redis.send("SCRIPT", "FLUSH")
          assert.strictEqual((yield* Effect.flip(Fencing.set(key, "old", FencingToken.make(1))))._tag, "StaleToken")
          assert.strictEqual(yield* redis.send("GET", key), "new")
        }
      }))

    it.effect("runs blocking commands on connections of their own", () =>
      Effect.gen(function*() {
        const redis = yield* Redis
        const blocked = yield* Effect.forkChild(Effect.scoped(Effect.flatMap(
          redis.reserve,
          (connection) => connection.send<ReadonlyArray<string>>("BLPOP", "list", "5")
        )))
        yield* Effect.sleep("100 millis")
        yield* redis.send("RPUSH", "list", "one")
        assert.deepStrictEqual(yield* Fiber.join(blocked), ["list", "one"])
      }))
  })

describe("one primary", () => contract("single", onOne))
describe("Sentinel", () => contract("sentinel", throughSentinel))
describe("Cluster", () => contract("cluster", onCluster))

layer(throughSentinel, { excludeTestServices: true, timeout: "60 seconds" })("Sentinel, fail-over", (it) => {
  it.effect("a waiter and new callers carry on at the new primary; what the old one lost is reported as lost", () =>
    Effect.gen(function*() {
      const { primary } = yield* Sentinel
      const before = yield* Effect.scoped(Effect.map(Mutex.acquire("m"), (lease) => lease.token))
      const holder = yield* Effect.forkChild(Effect.exit(Mutex.withLock("held")(Effect.sleep("8 seconds"))))
      yield* Effect.sleep("200 millis")
      yield* primary.kill("SIGKILL")
      const after = yield* Effect.scoped(Effect.map(Mutex.acquire("m"), (lease) => lease.token)).pipe(
        Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 100 })
      )
      assert.isAbove(after, before)
      // Either the write had reached the replica and the lease was renewed in time, or its end was told
      const exit = yield* Fiber.join(holder)
      if (exit._tag === "Failure") assert.include(String(exit.cause), "LeaseLost")
    }))
})

describe("Sentinel, fail-over on purpose", () => {
  it.live(
    "all connections leave the old primary before it knows that it is none any more",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, replica, sentinels } = yield* RedisServer.sentinel()
        const context = yield* Layer.build(IoRedis.layer({
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
          commandTimeout: "500 millis"
        }))
        const redis = Context.get(context, Redis)
        const subscriber = Context.get(context, Subscriber)
        const notices = yield* subscriber.subscribe("channel")
        yield* Effect.forkChild(Effect.forever(
          Effect.scoped(Effect.flatMap(
            redis.reserve,
            (connection) => connection.send("BLPOP", "list", "30")
          )).pipe(Effect.catch(() => Effect.sleep("50 millis")))
        ))
        const named = (server: Server) =>
          Effect.map(
            server.send("CLIENT", "LIST"),
            (list) => [...new Set(String(list).match(/(?<=\bname=simba:)\w+/g))].sort().join()
          )
        yield* until(
          "all are at the old one",
          Effect.map(named(primary), (all) => all === "commands,reserved,subscriber")
        )
        yield* sentinels[0]!.send("SENTINEL", "FAILOVER", name)
        yield* until(
          "the replica has been promoted",
          Effect.map(replica.send("ROLE"), (role) => String(role).startsWith("master"))
        )
        yield* until("none is left at the old one", Effect.map(named(primary), (all) => all === ""))
        assert.include(String(yield* primary.send("ROLE")), "master")

        yield* until(
          "commands are sent to the new one",
          Effect.map(named(replica), (all) => all.includes("commands,reserved"))
        )
        while ((yield* Queue.take(notices))._tag !== "Gap") { /* what was said in between is not known */ }
        yield* replica.send("PUBLISH", "channel", "hello")
        assert.deepInclude(yield* Queue.take(notices), { text: "hello" })
      })).pipe(Effect.provide(capturingLogs([]))),
    60_000
  )

  it.live(
    "Sentinels that cannot be reached do not stand in the way, and those that come back tell again",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, sentinels } = yield* RedisServer.sentinel()
        const [first, ...others] = sentinels
        for (const other of others) yield* other.kill()
        const context = yield* Layer.build(IoRedis.layer({
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) }
        }))
        assert.strictEqual(yield* Context.get(context, Redis).send("PING"), "PONG")
        const watching = (server: Server) =>
          Effect.map(server.send("CLIENT", "LIST"), (list) => /\bname=simba:sentinel .*\bsub=1 /.test(String(list)))
        yield* until("the one that lives is listened to", watching(first!))
        yield* others[0]!.restart
        yield* until("the one that came back is listened to", watching(others[0]!))
        assert.include(String(yield* primary.send("ROLE")), "master")
      })).pipe(Effect.provide(capturingLogs([]))),
    60_000
  )

  it.live(
    "a Sentinel that hangs does not keep the others from being asked",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { name, primary, sentinels } = yield* RedisServer.sentinel()
        const options = {
          client: { name, sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })) },
          // Longer than there is time to connect
          commandTimeout: "5 seconds"
        } satisfies IoRedis.Options
        const redis = Context.get(yield* Layer.build(IoRedis.layer(options)), Redis)
        for (const hanging of sentinels) {
          yield* hanging.pause
          const connections = String(yield* primary.send("CLIENT", "LIST")).split("\n")
          const [id] = connections.flatMap((line) => /^id=(\d+) .*\bname=simba:commands /.exec(line)?.[1] ?? [])
          yield* primary.send("CLIENT", "KILL", "ID", id!)
          yield* until("it is back", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
          yield* Effect.scoped(Layer.build(Layer.fresh(IoRedis.layer(options))))
          yield* hanging.resume
        }
      })).pipe(Effect.provide(capturingLogs([]))),
    60_000
  )
})

describe("one address", () => {
  it.live(
    "where another server has become the primary, subscriptions leave the old one with the commands, and quietly",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const old = yield* RedisServer.start()
        const next = yield* RedisServer.start()
        const relay = yield* relayTo(old.port)
        const context = yield* Layer.build(
          mutexes(IoRedis.layer({ url: `redis://127.0.0.1:${relay.port}`, commandTimeout: "500 millis" }))
        )
        const subscriber = Context.get(context, Subscriber)
        const notices = yield* subscriber.subscribe("channel")
        relay.target = next.port
        // The connections stay; what is published at the new primary is counted there
        yield* old.send("REPLICAOF", "127.0.0.1", String(next.port))
        const warnings: Array<Error> = []
        const onWarning = (warning: Error) => warnings.push(warning)
        yield* Effect.acquireRelease(
          Effect.sync(() => process.on("warning", onWarning)),
          () => Effect.sync(() => process.off("warning", onWarning))
        )
        const set = Effect.exit(Context.get(context, Redis).send("SET", "key", "value"))
        yield* Effect.all(Array.from({ length: 30 }, () => set), { concurrency: "unbounded" })
        yield* until(
          "the new one has the mutexes",
          Effect.map(Effect.exit(Mutex.withLock("m")(Effect.void).pipe(Effect.provide(context))), Exit.isSuccess)
        )
        yield* until(
          "the new one is subscribed to",
          Effect.map(next.send("PUBSUB", "NUMSUB", "channel"), (counts) => Array.isArray(counts) && counts[1] === 1)
        )
        assert.deepInclude(yield* Queue.take(notices), { _tag: "Gap" })
        const list = String(yield* old.send("CLIENT", "LIST"))
        assert.notMatch(list, /\bname=simba:(commands|subscriber)/)
        assert.deepStrictEqual(warnings, [])
      })).pipe(Effect.provide(capturingLogs([]))),
    60_000
  )
})

layer(onCluster, { excludeTestServices: true, timeout: "60 seconds" })("Cluster, subscriber", (it) => {
  it.effect("H3: a dead waiter is not skipped there: it costs one confirm period, and no more", () =>
    Effect.gen(function*() {
      const { client } = yield* IoRedis.IoRedis
      const scope = yield* Effect.forkChild(Mutex.withLock("m")(Effect.sleep("300 millis")), { startImmediately: true })
      yield* Effect.sleep("50 millis")
      const seconds = Math.floor(Number((yield* Effect.promise(() => client.time()))[0]))
      // Nobody listens to this one: it waits, as far as the queue knows, ahead of everybody
      yield* Effect.promise(() => client.zadd("simba:{m}:contender", `${seconds - 60}.000001`, "1-000000000000:dead"))
      const waiter = yield* Effect.forkChild(Mutex.withLock("m")(Mutex.owner("m")))
      yield* Fiber.join(scope)
      const owner = yield* Mutex.owner("m")
      assert.deepInclude(owner, { _tag: "Held", owner: "1-000000000000:dead" })
      const next = yield* Fiber.join(waiter)
      assert.strictEqual(next._tag, "Held")
    }))
})
