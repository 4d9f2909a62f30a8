/** A real server's outages do not cause unhandled rejections, and the client recovers from them. */
import * as Mutex from "@effect-simba/core/Mutex"
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Stream } from "effect"
import { Redis } from "effect/persistence/Redis"
import { Redis as Client } from "ioredis"
import { type AddressInfo, createServer, type Socket } from "node:net"
import {
  freshName,
  held,
  killConnections,
  openMutex,
  queued,
  quiet,
  RedisServer,
  until
} from "../../support/harness.ts"
import { relayTo } from "../../support/relay.ts"

it.live("no outage causes an unhandled rejection", () =>
  Effect.gen(function*() {
    const unhandled: Array<unknown> = []
    const note = (error: unknown) => unhandled.push(error)
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("unhandledRejection", note).on("uncaughtException", note)),
      () => Effect.sync(() => process.off("unhandledRejection", note).off("uncaughtException", note))
    )
    const server = yield* RedisServer.start()
    const options = {
      ttl: "200 millis",
      transition: "3 seconds",
      commandTimeout: "200 millis",
      releaseTimeout: "300 millis",
      redis: { commandTimeout: "1 second" }
    } as const
    yield* Effect.scoped(Effect.gen(function*() {
      const mutex = yield* openMutex(server, options)
      const m = freshName("outage")
      const holding = yield* Effect.forkScoped(Effect.exit(mutex.withLock(m)(Effect.never)))
      yield* held(server, m)
      const [second, third] = yield* Effect.all([openMutex(server, options), openMutex(server, options)])
      const waiting = yield* Effect.forkScoped(Effect.exit(Effect.scoped(second.acquire(m))))
      const gone = yield* Effect.forkScoped(Effect.scoped(third.acquire(m)))
      yield* Effect.forkScoped(Effect.exit(Stream.runDrain(Stream.provideService(Mutex.events(m), Mutex.Mutex, mutex))))
      const contention = yield* Effect.provideService(Mutex.contend(freshName("outage")), Mutex.Mutex, mutex)
      yield* Effect.forkScoped(Effect.exit(contention.whileLeader(Effect.never)))
      yield* queued(server, m, 2)
      yield* server.pause
      yield* Effect.sleep("1500 millis")
      yield* Fiber.interrupt(gone)
      yield* server.kill()
      yield* Fiber.join(holding)
      yield* Fiber.join(waiting)
      yield* Effect.exit(Effect.scoped(mutex.acquire(m)))
      yield* Effect.exit(mutex.forceRelease(m))
      yield* server.restart
      yield* killConnections(server, "simba:subscriber")
      yield* Effect.retry(mutex.withLock(m)(Effect.void), { times: 20 })
      yield* server.kill()
    }))
    yield* Effect.sleep("300 millis")
    assert.deepStrictEqual(unhandled, [])
  }).pipe(Effect.provide(quiet)), { tags: ["B22"] })

it.live("a connection that hangs before it is ready is replaced", () =>
  Effect.gen(function*() {
    const server = yield* RedisServer.start()
    const relay = yield* relayTo(server.port)
    const layer = IoRedis.layer({ url: `redis://127.0.0.1:${relay.port}`, commandTimeout: "300 millis" })
    const redis = Context.get(yield* Layer.build(Layer.fresh(layer)), Redis)
    relay.isHanging = true
    yield* killConnections(server, "simba:commands")
    yield* until("the server is replying again", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
    assert.isFalse(relay.isHanging)
  }).pipe(Effect.scoped, Effect.provide(quiet)), 60_000)

/**
 * A server whose first reply says that it is ready, but whose next reply says that it needs another second to load its
 * data.
 */
const loadingOnce = Effect.acquireRelease(
  Effect.callback<{ readonly port: number; readonly sockets: Array<Socket>; readonly close: () => void }>((resume) => {
    const sockets: Array<Socket> = []
    let requests = 0
    const listener = createServer((socket) => {
      sockets.push(socket.on("error", () => undefined))
      socket.on("data", (data) => {
        for (const [command] of String(data).matchAll(/(?<=\*\d+\r\n\$\d+\r\n)\w+/g)) {
          const text = command.toUpperCase() !== "INFO" ? undefined : requests++ === 1
            ? "loading:1\r\nloading_eta_seconds:1\r\n"
            : "loading:0\r\n"
          socket.write(text === undefined ? "+OK\r\n" : `$${text.length}\r\n${text}\r\n`)
        }
      })
    })
    const close = () => {
      listener.close()
      sockets.forEach((socket) => socket.destroy())
    }
    listener.listen(0, "127.0.0.1", () => {
      resume(Effect.succeed({ port: (listener.address() as AddressInfo).port, sockets, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

it.live(
  "a connection is not replaced while the server is loading its data, even if loading outlasts the command timeout",
  () =>
    Effect.gen(function*() {
      const { port, sockets } = yield* loadingOnce
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => new Client(port, "127.0.0.1", { protocol: 2 }).on("error", () => undefined)),
        (client) => Effect.sync(() => client.disconnect())
      )
      const layer = IoRedis.layerClient(client, { commandTimeout: "100 millis", serverChecks: false })
      const redis = Context.get(yield* Layer.build(layer), Redis)
      sockets[0]!.destroy()
      yield* until("the server is replying again", Effect.map(Effect.exit(redis.send("PING")), Exit.isSuccess))
      assert.lengthOf(sockets, 2)
    }).pipe(Effect.scoped, Effect.provide(quiet)),
  30_000
)
