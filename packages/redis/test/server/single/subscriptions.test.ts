/**
 * Tests how many connections and subscriptions a layer uses, and what happens to its waiters when subscriptions are
 * lost.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import type { LeaseId } from "@effect-simba/core/MutexName"
import { assert, it, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Scope, Stream } from "effect"
import { Redis as Client } from "ioredis"
import { connect, createServer, type Socket } from "node:net"
import * as connection from "../../../src/internal/client/ioredis/connection.ts"
import * as subscriptions from "../../../src/internal/client/ioredis/subscriptions.ts"
import {
  commandStats,
  connections,
  freshName,
  held,
  inboxChannelOf,
  keysOf,
  killConnections,
  openMutex,
  patient,
  queued,
  quiet,
  RedisServer,
  until
} from "../../support/harness.ts"
import type { Server } from "../../support/redisServer.ts"

/** A proxy that can drop all data while its connections stay open. */
const proxyTo = (server: Server) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly deafen: () => void; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const deaf = new WeakSet<Socket>()
      const listener = createServer((near) => {
        const far = connect(server.port, "127.0.0.1")
        for (const [from, to] of [[near, far], [far, near]] as const) {
          sockets.add(from)
          from.on("data", (chunk) => deaf.has(from) || to.write(chunk))
          from.on("close", () => deaf.has(from) || to.destroy())
          from.on("error", () => undefined)
        }
      })
      listener.listen(0, "127.0.0.1", () => {
        const { port } = listener.address() as { readonly port: number }
        resume(Effect.succeed({
          url: `redis://127.0.0.1:${port}`,
          deafen: () => sockets.forEach((socket) => deaf.add(socket)),
          close: () => {
            listener.close()
            sockets.forEach((socket) => socket.destroy())
          }
        }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

layer(RedisServer.layer, { excludeTestServices: true })("a layer's subscriptions", (it) => {
  it.effect(
    "late messages affect neither current nor former holders",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
        const m = freshName("late")
        const letGo = yield* Deferred.make<void>()
        const holding = yield* Effect.forkScoped(other.withLock(m)(Deferred.await(letGo)))
        yield* held(server, m)
        const contention = yield* Effect.provideService(Mutex.contend(m), Mutex.Mutex, mutex)
        yield* queued(server, m, 1)
        yield* Deferred.succeed(letGo, undefined)
        yield* Fiber.join(holding)
        yield* until("it leads", Effect.map(contention.lease, (lease) => lease._tag === "Some"))
        const lease = yield* Effect.flatMap(contention.lease, Effect.fromOption)
        const { owner } = keysOf(m)
        yield* server.send("PUBLISH", `${owner}:${lease.id}`, "released@@1-000000000000:old")
        yield* server.send("PUBLISH", owner, "acquired@@1-000000000000:old")
        yield* Effect.sleep("100 millis")
        yield* lease.ensure
        assert.strictEqual(yield* server.send("GET", owner), lease.id)
        yield* contention.stop
        const rival = yield* other.acquire(m)
        yield* contention.start
        yield* queued(server, m, 1)
        yield* server.send("PUBLISH", owner, `acquired@@${lease.id}`)
        yield* Effect.sleep("100 millis")
        assert.strictEqual((yield* contention.lease)._tag, "None")
        assert.strictEqual(yield* server.send("GET", owner), rival.id)
      }),
    { tags: ["S8", "S9"] }
  )

  it.effect("waiting does not send another SUBSCRIBE", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const stats = commandStats(server)
      const [mutex, other] = yield* Effect.all([openMutex(server, patient), openMutex(server, patient)])
      const m = freshName("one subscription")
      yield* other.acquire(m)
      yield* stats.reset
      const waiting = yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
      yield* queued(server, m, 1)
      const [id] = (yield* server.send("ZRANGE", keysOf(m).queue, "0", "-1")) as [LeaseId]
      for (let i = 0; i < 20; i++) {
        // Publish one by one, because several simultaneous messages cause a single poll
        assert.strictEqual(yield* server.send("PUBLISH", inboxChannelOf(id), `${id.split("-")[0]}@@look@@0`), 1)
        yield* until("it polled", Effect.map(stats.calls, (calls) => (calls.get("evalsha") ?? 0) >= 3 + i))
      }
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.interrupt(waiting)
      yield* queued(server, m, 0)
      const calls = yield* stats.calls
      assert.deepStrictEqual(["subscribe", "unsubscribe"].map((command) => calls.has(command)), [false, false])
    }), { tags: ["B9"] })

  it.effect("a layer uses two connections for all its leases and waiters", () =>
    Effect.gen(function*() {
      const server = yield* RedisServer
      const mutex = yield* openMutex(server, { ...patient, redis: { client: { connectionName: "budget" } } })
      const other = yield* openMutex(server, patient)
      const names = Array.from({ length: 40 }, () => freshName("budget"))
      for (const m of names) {
        yield* other.acquire(m)
        yield* mutex.acquire(freshName("held"))
        yield* Effect.forkScoped(Effect.scoped(mutex.acquire(m)))
        yield* Effect.forkScoped(Stream.runDrain(Stream.provideService(Mutex.events(m), Mutex.Mutex, mutex)))
      }
      yield* Effect.forEach(names, (m) => queued(server, m, 1), { concurrency: 8 })
      assert.strictEqual((yield* connections(server, "budget")).length, 2)
    }), { tags: ["B40"] })

  it.effect(
    "every waiter gets its hand-off after subscriptions are lost and restored",
    () =>
      Effect.gen(function*() {
        const server = yield* RedisServer
        const holder = yield* openMutex(server, patient)
        const waiter = yield* openMutex(server, patient)
        const names = Array.from({ length: 30 }, () => freshName("resubscribed"))
        const letGo = yield* Deferred.make<void>()
        const holding = yield* Effect.forEach(
          names,
          (m) => Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
        )
        yield* Effect.forEach(names, (m) => held(server, m), { concurrency: 8 })
        const waiting = yield* Effect.forEach(names, (m) => Effect.forkScoped(Effect.scoped(waiter.acquire(m))))
        yield* Effect.forEach(names, (m) => queued(server, m, 1), { concurrency: 8 })
        const [id] = (yield* server.send("ZRANGE", keysOf(names[0]!).queue, "0", "-1")) as [LeaseId]
        const inbox = inboxChannelOf(id)
        const stats = commandStats(server)
        for (let i = 0; i < 2; i++) {
          yield* stats.reset
          assert.isAtLeast(yield* killConnections(server, "simba:subscriber"), 1)
          yield* until(
            "the subscription is restored",
            Effect.map(server.send("PUBSUB", "NUMSUB", inbox), (counts) => (counts as Array<unknown>)[1] === 1)
          )
          // Every waiter receives a gap, so all of them poll with their tickets
          yield* until("all look", Effect.map(stats.calls, (calls) => (calls.get("zscore") ?? 0) >= names.length))
        }
        yield* Deferred.succeed(letGo, undefined)
        yield* Effect.timeout(Fiber.joinAll([...holding, ...waiting]), "40 seconds")
      }),
    { tags: ["B43"] }
  )
})

/** Subscriptions of a layer whose first connection is delayed until `gate`. */
const gated = Effect.fnUntraced(function*(server: Server, gate: Deferred.Deferred<void>) {
  const settings = { client: {}, commandTimeout: Duration.seconds(5), connectTimeout: Duration.seconds(5) }
  const one = new Client({ host: "127.0.0.1", port: server.port, lazyConnect: true })
  const open = Effect.andThen(Deferred.await(gate), connection.duplicate(one, "subscriber", settings))
  return yield* subscriptions.make(open, settings.commandTimeout, { lost: () => undefined, back: () => undefined })
})

it.live("a listener that leaves while the first connection is being opened does not make others fail", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const gate = yield* Deferred.make<void>()
    const { listen } = yield* gated(server, gate)
    const heard: Array<string> = []
    const join = (name: string) =>
      Effect.forkScoped(listen("x", (text) => heard.push(`${name} ${text}`)), { startImmediately: true })
    const [first, second] = [yield* join("first"), yield* join("second")]
    yield* Fiber.interrupt(first)
    const third = yield* join("third")
    yield* Deferred.succeed(gate, undefined)
    yield* Fiber.joinAll([second, third])
    yield* server.send("PUBLISH", "x", "hello")
    yield* until("both listeners receive the message", Effect.sync(() => heard.length === 2))
    assert.deepStrictEqual(heard, ["second hello", "third hello"])
  }))

it.live("listeners waiting for the first connection fail when the layer closes", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const scope = yield* Scope.make()
    const { listen } = yield* Scope.provide(gated(server, yield* Deferred.make<void>()), scope)
    const waiting = yield* Effect.forkScoped(Effect.flip(listen("x", () => undefined)), { startImmediately: true })
    yield* Scope.close(scope, Exit.void)
    assert.match((yield* Fiber.join(waiting)).message, /the subscriber connection is down/)
  }), 10_000)

it.live(
  "a half-open subscriber connection is replaced, and its waiter continues",
  () =>
    Effect.gen(function*() {
      const server = yield* RedisServer.start()
      const proxy = yield* proxyTo(server)
      const holder = yield* openMutex(server, patient)
      const waiter = yield* openMutex(server, { ...patient, redis: { url: proxy.url, commandTimeout: "500 millis" } })
      const m = freshName("half open")
      const letGo = yield* Deferred.make<void>()
      const holding = yield* Effect.forkScoped(holder.withLock(m)(Deferred.await(letGo)))
      yield* held(server, m)
      const waiting = yield* Effect.forkScoped(waiter.acquire(m))
      yield* queued(server, m, 1)
      proxy.deafen()
      yield* Deferred.succeed(letGo, undefined)
      yield* Fiber.join(holding)
      const lease = yield* Effect.timeout(Fiber.join(waiting), "40 seconds")
      assert.strictEqual(yield* server.send("GET", keysOf(m).owner), lease.id)
    }).pipe(Effect.provide(quiet)),
  { tags: ["B42"] }
)
