/** How a layer handles Sentinels that refuse a connection or do not reply. */
import { Subscriber } from "@effect-simba/core/Subscriber"
import { IoRedis } from "@effect-simba/redis"
import { assert, it } from "@effect/vitest"
import { Context, Duration, Effect, Exit, Layer } from "effect"
import { Redis as Client } from "ioredis"
import { vi } from "vitest"
import * as failover from "../../src/internal/client/ioredis/failover.ts"
import { quiet, until } from "../support/harness.ts"
import { refusingServer } from "../support/refusingServer.ts"

it.live("a Sentinel that refused the first connection still reports failovers", () =>
  Effect.gen(function*() {
    const sentinel = yield* refusingServer
    sentinel.refuse = { command: "HELLO", reply: "ERR max number of clients reached" }
    yield* failover.watch({
      client: { name: "main", sentinels: [{ host: "127.0.0.1", port: sentinel.port }] },
      commandTimeout: Duration.seconds(1),
      connectTimeout: Duration.seconds(1)
    })
    const receives = (command: string) => until(command, Effect.sync(() => sentinel.received.includes(command)))
    yield* receives("HELLO")
    sentinel.refuse = undefined
    yield* receives("SUBSCRIBE")
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live("subscriptions for an application's client work even if most Sentinels do not reply", () =>
  Effect.gen(function*() {
    const sentinels = [yield* refusingServer, yield* refusingServer, yield* refusingServer]
    for (const silent of sentinels.slice(0, 2)) silent.isSilent = true
    const client = yield* Effect.acquireRelease(
      Effect.sync(() =>
        new Client({
          name: "main",
          sentinels: sentinels.map(({ port }) => ({ host: "127.0.0.1", port })),
          sentinelCommandTimeout: 50
        }).on("error", () => undefined)
      ),
      (client) => Effect.sync(() => client.disconnect())
    )
    const context = yield* Layer.build(IoRedis.layerClient(client))
    const subscribed = yield* Effect.exit(Context.get(context, Subscriber).subscribe("channel"))
    assert.isTrue(Exit.isSuccess(subscribed), String(subscribed))
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live("the connections for an application's client wait only briefly for a Sentinel that cannot be reached", () =>
  Effect.gen(function*() {
    const sentinel = yield* refusingServer
    const client = yield* Effect.acquireRelease(
      Effect.sync(() => {
        const sentinels = [{ host: "127.0.0.1", port: 1 }, { host: "127.0.0.1", port: sentinel.port }]
        return new Client({ name: "main", sentinels, disconnectTimeout: 200 }).on("error", () => undefined)
      }),
      (client) => Effect.sync(() => client.disconnect())
    )
    const context = yield* Layer.build(IoRedis.layerClient(client))
    const timers = vi.spyOn(globalThis, "setTimeout")
    yield* Effect.addFinalizer(() => Effect.sync(() => timers.mockRestore()))
    yield* Context.get(context, Subscriber).subscribe("channel")
    const waits = timers.mock.calls.flatMap(([callback, millis]) =>
      String(callback).includes("still open, destroying it") ? [millis] : []
    )
    assert.deepStrictEqual(waits, [200, 200])
  }).pipe(Effect.scoped, Effect.provide(quiet)))

it.live.each([["reconnects", true], ["never reconnects", false]] as const)(
  "an application's client that %s leaves the old primary after a failover: %s",
  ([, leaves]) =>
    Effect.gen(function*() {
      const [sentinel, primary] = [yield* refusingServer, yield* refusingServer]
      const sentinels = [{ host: "127.0.0.1", port: sentinel.port }]
      sentinel.port = primary.port
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const options = leaves ? {} : { retryStrategy: () => null }
          return new Client({ ...options, name: "main", sentinels }).on("error", () => undefined)
        }),
        (client) => Effect.sync(() => client.disconnect())
      )
      yield* Layer.build(IoRedis.layerClient(client))
      yield* until("the layer is listening", Effect.sync(() => sentinel.received.includes("SUBSCRIBE")))
      const { stream } = client
      sentinel.publish("+switch-master", "main 127.0.0.1 1 127.0.0.1 2")
      if (leaves) yield* until("the client has disconnected", Effect.sync(() => stream.destroyed))
      else {
        yield* Effect.sleep("100 millis")
        assert.strictEqual(client.status, "ready")
      }
    }).pipe(Effect.scoped, Effect.provide(quiet))
)

it.live.each(
  [
    ["no Sentinel", { name: "main", sentinels: [] }, "client.sentinels"],
    ["an empty name", { name: "", sentinels: [{ port: 1 }] }, "client.name"]
  ] as const
)("%s is refused", ([, client, option]) =>
  Effect.gen(function*() {
    const error = yield* Effect.flip(Layer.build(Layer.fresh(IoRedis.layer({ client: { ...client } as object }))))
    assert.include(error.message, `Configuration "${option}"`)
  }).pipe(Effect.scoped))
