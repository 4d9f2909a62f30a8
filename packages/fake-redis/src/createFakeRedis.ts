/**
 * An in-memory Redis 7.0 on a socket, for any client.
 *
 * @since 0.1.0
 */
import { type AddressInfo, createServer, type Socket } from "node:net"
import type { ErrorState } from "./internal/errorStates.ts"
import { defaultExpiryDelay } from "./internal/expiryDelay.ts"
import { sharedLua } from "./internal/lua/vm.ts"
import { seededRandom } from "./internal/random.ts"
import { serve } from "./internal/socket/connection.ts"
import { TimedEngine } from "./internal/timedEngine.ts"

/**
 * Options for `createFakeRedis`.
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The port to listen on. Default: a free port. */
  readonly port?: number | undefined
  /** The local address to listen on. Default: `127.0.0.1`, which is reachable only from this machine. */
  readonly host?: string | undefined
  /** The path of a Unix socket, instead of a port. */
  readonly path?: string | undefined
  /** The seed for all random choices, such as `RANDOMKEY`'s. Default: `fake-redis`. */
  readonly seed?: string | undefined
  /**
   * The minimum and maximum delay, in milliseconds, before an expired key is removed if nobody accesses it. The delay
   * is random for each key, because real servers also remove expired keys late. Commands never see an expired key.
   * Default: 0 to 100.
   */
  readonly expiryDelay?: readonly [minimum: number, maximum: number] | undefined
  /** The maximum number of recent writes that `failover` can lose. Default: 16. */
  readonly undoDepth?: number | undefined
}

/**
 * A running server.
 *
 * **Example** (Production failures)
 *
 * ```ts
 * import { createFakeRedis } from "@effect-simba/fake-redis"
 *
 * const server = await createFakeRedis()
 * server.advance(3_600_000) // one hour later
 * server.setErrorState("LOADING") // as if Redis were loading its data
 * server.setErrorState(undefined)
 * server.failover(2) // the replica lacks the last two writes
 * await server.close()
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface FakeRedis {
  /** The URL in the form that clients accept: `redis://127.0.0.1:6379`, or `unix:///tmp/redis.sock`. */
  readonly url: string
  /** Empty for a Unix socket. */
  readonly host: string
  /** 0 for a Unix socket. */
  readonly port: number
  /** Empty unless the server listens on a Unix socket. */
  readonly path: string
  /** The server's wall clock, in milliseconds since the epoch. */
  readonly now: () => number
  /** Moves the server's clock forward by this many milliseconds. Keys expire, and blocking commands time out. */
  readonly advance: (millis: number) => void
  /**
   * Restarts the server. Closes all connections and discards scripts, settings, users and, unless `keepData` is true,
   * the data.
   */
  readonly restart: (options?: { readonly keepData?: boolean }) => void
  /**
   * Fails over to a replica that lacks the last writes, and closes all connections. Returns the number of lost writes.
   * Throws a `RangeError` if asked to lose more than `undoDepth` writes.
   */
  readonly failover: (loseLastWrites: number) => number
  /**
   * Makes the server reject commands with this error, such as `LOADING` or `READONLY`, until the state is set to
   * `undefined` or the server restarts or fails over.
   */
  readonly setErrorState: (state: ErrorState | undefined) => void
  /** Closes all connections and stops listening. */
  readonly close: () => Promise<void>
  readonly [Symbol.asyncDispose]: () => Promise<void>
}

const listen = (
  accept: (socket: Socket) => void,
  where: { readonly path: string } | { readonly port: number; readonly host: string }
): Promise<ReturnType<typeof createServer>> =>
  new Promise((resolve, reject) => {
    // A client that closes its half of the connection still gets its replies
    const server = createServer({ allowHalfOpen: true, noDelay: true }, accept)
    server.once("error", reject)
    server.listen({ ...where, backlog: 4096 }, () => {
      server.off("error", reject)
      resolve(server)
    })
  })

const addressOf = (address: AddressInfo | string): Pick<FakeRedis, "host" | "path" | "port" | "url"> => {
  if (typeof address === "string") return { host: "", port: 0, path: address, url: `unix://${address}` }
  const { address: host, family, port } = address
  return { host, port, path: "", url: `redis://${family === "IPv6" ? `[${host}]` : host}:${port}` }
}

/**
 * Starts a server in this process. Rejects if the server cannot listen.
 *
 * **Details**
 *
 * The server runs on the process's clock, so it follows a test runner's fake timers. `advance` moves only the server's
 * own clock.
 *
 * **Example** (A session that expires)
 *
 * ```ts
 * import { createFakeRedis } from "@effect-simba/fake-redis"
 * import { Redis } from "ioredis"
 *
 * const server = await createFakeRedis()
 * const redis = new Redis(server.url)
 * await redis.set("session", "alice", "EX", 3600)
 * server.advance(3_600_001)
 * console.log(await redis.get("session")) // => null
 * redis.disconnect()
 * await server.close()
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const createFakeRedis = (options: Options = {}): Promise<FakeRedis> =>
  sharedLua().then((lua) => {
    const undoDepth = options.undoDepth ?? 16
    const timed = new TimedEngine({
      lua,
      random: seededRandom(options.seed ?? "fake-redis"),
      expiryDelayMillis: options.expiryDelay ?? defaultExpiryDelay,
      undoDepth
    })
    const { engine } = timed
    const sockets = new Set<Socket>()
    const accept = (socket: Socket) => {
      sockets.add(socket)
      socket.once("close", () => sockets.delete(socket))
      serve(timed, socket)
    }
    const where = options.path === undefined
      ? { port: options.port ?? 0, host: options.host ?? "127.0.0.1" }
      : { path: options.path }
    return listen(accept, where).then((server): FakeRedis => {
      const close = () =>
        new Promise<void>((resolve) => {
          timed.stop()
          server.close(() => resolve())
          for (const socket of sockets) socket.destroy()
        })
      return {
        ...addressOf(server.address()!),
        now: () => Math.floor(timed.micros() / 1000),
        advance: (millis) => {
          if (!Number.isFinite(millis) || millis < 0) {
            throw new RangeError(`cannot advance by ${millis}: give milliseconds of at least 0`)
          }
          timed.advance(millis)
        },
        restart: ({ keepData = false } = {}) => timed.run(() => engine.restart({ keepData })),
        failover: (lost) => {
          if (!Number.isSafeInteger(lost) || lost < 0) throw new RangeError(`cannot lose ${lost} writes`)
          if (lost > undoDepth) {
            throw new RangeError(`cannot lose ${lost} writes: the server remembers ${undoDepth}; see undoDepth`)
          }
          return timed.run(() => {
            const count = engine.rollback(lost)
            engine.restart({ keepData: true, keepConfig: true })
            return count
          })
        },
        setErrorState: (state) => engine.setErrorState(state),
        close,
        [Symbol.asyncDispose]: close
      }
    })
  })
