/** The connections that a layer opens for reservations. */
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Redis } from "effect/persistence/Redis"
import { Redis as Client } from "ioredis"
import { quiet, until } from "../support/harness.ts"
import { refusingServer } from "../support/refusingServer.ts"
import { relayTo } from "../support/relay.ts"

it.live("reserved connections use the database selected by the client", () =>
  Effect.gen(function*() {
    const server = yield* refusingServer
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new Client(server.url)),
      (client) => Effect.sync(() => client.disconnect())
    )
    yield* Effect.promise(() => client.select(3))
    const redis = Context.get(yield* Layer.build(IoRedis.layerClient(client)), Redis)
    server.received.length = 0
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("GET", "key"))), "OK")
    assert.include(server.received, "SELECT")
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live("reserved connections use the database selected by the client while it reconnects", () =>
  Effect.gen(function*() {
    const server = yield* refusingServer
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => new Client(server.url, { retryStrategy: (attempt) => attempt === 1 ? 1 : 60_000 })),
      (client) => Effect.sync(() => client.disconnect())
    )
    yield* Effect.promise(() => client.select(3))
    const redis = Context.get(yield* Layer.build(IoRedis.layerClient(client)), Redis)
    server.refuse = { command: "INFO", reply: "ERR the server is busy" }
    const failed = new Promise((resolve) => client.once("error", resolve))
    client.disconnect(true)
    yield* Effect.promise(() => failed)
    server.refuse = undefined
    server.received.length = 0
    assert.strictEqual(yield* Effect.scoped(Effect.flatMap(redis.reserve, ({ send }) => send("GET", "key"))), "OK")
    assert.notStrictEqual(client.status, "ready")
    assert.include(server.received, "SELECT")
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live("a command on a reserved connection that was lost in the pool is reported as not sent", () =>
  Effect.gen(function*() {
    const relay = yield* relayTo((yield* refusingServer).port)
    const context = yield* Layer.build(IoRedis.layer({ url: `redis://127.0.0.1:${relay.port}` }))
    const { client } = Context.get(context, IoRedis.IoRedis)
    const get = Effect.scoped(Effect.flatMap(Context.get(context, Redis).reserve, ({ send }) => send("GET", "key")))
    yield* get
    relay.isDown = true
    yield* until("the loss is noticed", Effect.sync(() => client.status !== "ready"))
    assert.match(String((yield* Effect.flip(get)).cause), /not connected to Redis at/)
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live.each([0, -1, NaN])(
  "a maximum of %d reserved connections is refused, because a reservation would wait forever",
  (most) =>
    Effect.gen(function*() {
      const server = yield* refusingServer
      const options = { url: server.url, pool: { maxConnections: most } }
      const error = yield* Effect.flip(Layer.build(Layer.fresh(IoRedis.layer(options))))
      assert.strictEqual(error.message, `Configuration "pool.maxConnections": it must be at least 1.`)
    }).pipe(Effect.scoped, Effect.provide(quiet))
)
