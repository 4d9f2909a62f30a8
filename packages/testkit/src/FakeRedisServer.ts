/**
 * Serves `FakeRedis` to any client in any language, using RESP2 or RESP3 over TCP or Unix sockets.
 *
 * **Example** (A server for another process)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 * import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
 * import { Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { url } = yield* FakeRedisServer.listen()
 *   yield* Effect.log(`REDIS_URL=${url}`)
 *   return yield* Effect.never
 * }).pipe(Effect.scoped, Effect.provide(FakeRedis.layer()))
 * ```
 *
 * @since 0.1.0
 */
import * as NodeSocketServer from "@effect/platform-node-shared/NodeSocketServer"
import * as Effect from "effect/Effect"
import * as NetAddress from "effect/net/NetAddress"
import type * as Scope from "effect/Scope"
import * as SocketServer from "effect/socket/SocketServer"
import { FakeRedis } from "./FakeRedis.ts"
import { serve } from "./internal/socket/connection.ts"

type Options = {
  /** The port to listen on. Default: a free port. */
  readonly port?: number | undefined
  /** The local address to listen on. Default: `127.0.0.1`, which is reachable only from this machine. */
  readonly host?: string | undefined
  /** The path of a Unix socket, to use instead of a port. */
  readonly path?: string | undefined
  /** The name of the link in `FakeNetwork` and of the clients in the trace. Default: `socket`. */
  readonly client?: string | undefined
}

/** The port is 0 for a Unix socket, and the path is empty for TCP. */
type Address = {
  readonly host: string
  readonly port: number
  readonly path: string
  /** The URL for clients, such as `redis://127.0.0.1:6379` or `unix:///tmp/redis.sock`. */
  readonly url: string
}

const addressOf = (address: NetAddress.SocketAddress): Address => {
  if (NetAddress.isUnixPathAddress(address)) {
    return { host: "", port: 0, path: address.path, url: `unix://${address.path}` }
  }
  const text = String(address)
  const { port } = address
  return { host: text.slice(0, text.lastIndexOf(":")), port, path: "", url: `redis://${text}` }
}

/**
 * Serves clients on the current `SocketServer` until the effect is interrupted.
 *
 * **When to use**
 *
 * Use it with another platform's `SocketServer`. On Node, use `listen`.
 *
 * **Example** (Another platform's socket server)
 *
 * ```ts
 * import { FakeRedis } from "@effect-simba/testkit"
 * import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
 * import { Effect, Layer } from "effect"
 * import type { SocketServer } from "effect/socket/SocketServer"
 *
 * const serve = <E>(sockets: Layer.Layer<SocketServer, E>) =>
 *   Effect.provide(FakeRedisServer.run("legacy"), Layer.merge(sockets, FakeRedis.layer()))
 * ```
 *
 * @category running
 * @since 0.1.0
 */
export const run = (
  client = "socket"
): Effect.Effect<never, SocketServer.SocketServerError, FakeRedis | SocketServer.SocketServer> =>
  Effect.gen(function*() {
    const { server } = yield* FakeRedis
    const sockets = yield* SocketServer.SocketServer
    return yield* sockets.run(serve(server, client))
  })

/**
 * Listens on a Node socket while the scope is open. Serves the current `FakeRedis`.
 *
 * **Details**
 *
 * The server uses the `FakeRedis` layer's clock, so under `TestClock` the test decides when keys expire for socket
 * clients too. `FakeNetwork.link("socket")` can stall, delay and break their connections. If a request or a reply is
 * lost, the connection breaks, because a byte stream cannot skip one.
 *
 * **Example** (Using another client under `TestClock`)
 *
 * ```ts
 * import { assert, it } from "@effect/vitest"
 * import { FakeRedis } from "@effect-simba/testkit"
 * import * as FakeRedisServer from "@effect-simba/testkit/FakeRedisServer"
 * import { Effect } from "effect"
 * import { TestClock } from "effect/testing"
 * import { Redis } from "ioredis"
 *
 * it.effect("expires", () =>
 *   Effect.gen(function*() {
 *     const { port } = yield* FakeRedisServer.listen()
 *     const redis = yield* Effect.acquireRelease(
 *       Effect.sync(() => new Redis({ port })),
 *       (redis) => Effect.sync(() => redis.disconnect())
 *     )
 *     yield* Effect.promise(() => redis.set("session", "alice", "EX", 60))
 *     yield* TestClock.adjust("61 seconds")
 *     assert.isNull(yield* Effect.promise(() => redis.get("session")))
 *   }).pipe(Effect.provide(FakeRedis.layer())))
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const listen = (
  options: Options = {}
): Effect.Effect<Address, SocketServer.SocketServerError, FakeRedis | Scope.Scope> =>
  Effect.gen(function*() {
    const where = options.path === undefined
      ? { port: options.port ?? 0, host: options.host ?? "127.0.0.1" }
      : { path: options.path }
    // A client that closes its half of the connection still receives its replies
    const sockets = yield* NodeSocketServer.make({ ...where, allowHalfOpen: true, noDelay: true, backlog: 4096 })
    yield* Effect.forkScoped(
      Effect.provideService(run(options.client), SocketServer.SocketServer, sockets),
      { startImmediately: true }
    )
    return addressOf(sockets.address)
  })
