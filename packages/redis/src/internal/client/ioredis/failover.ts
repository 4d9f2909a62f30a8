/**
 * Detects failovers and drops the connections to the old primary. The signs are a message from a Sentinel and a server
 * that has become a replica. ioredis reconnects only when a connection closes. But a primary that is replaced while
 * alive serves its clients for about ten more seconds, and then keeps its subscribers as a replica, where the new
 * primary cannot count them. The drivers register each connection here. ioredis's own detector would open a connection
 * to each Sentinel for every client, react to failovers of other primaries, and miss a primary that becomes a replica.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Redis as Client } from "ioredis"
import type { RedisError } from "../effectRedis.ts"
import * as log from "../log.ts"
import { close, refusedCommand } from "./connection.ts"
import type { Settings } from "./forcedSettings.ts"
import { listen } from "./listeners.ts"
import { defined } from "./options.ts"

const channel = "+switch-master"

const reconnectDelay = (attempt: number): number => Math.min(100 * attempt, 5000)

export const watch = Effect.fnUntraced(function*({ client: options, connectTimeout }: Settings) {
  const connected = new Set<Client>()
  const stale = new WeakSet<Client>()
  let switches = 0
  let wasReplica = false
  const runLog = Effect.runForkWith(yield* Effect.context<never>())
  const report = (cause: unknown) => {
    // This call removes the command's arguments, which may contain a password
    refusedCommand(cause)
    runLog(log.debug("Redis connection (Sentinel)", cause))
  }

  const drop = (clients: Iterable<Client>) => {
    switches++
    for (const client of clients) {
      if (client.status === "ready" || client.status === "connect") client.disconnect(true)
      // ioredis would not reconnect a client that is disconnected while it connects
      else if (client.status === "connecting") stale.add(client)
    }
  }
  const others = (client: Client) => [...connected].filter((other) => other !== client)
  const askSentinel = ({ host, port, family }: NonNullable<typeof options.sentinels>[number]) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const sentinel = new Client({
          host: host ?? "localhost",
          port: port ?? 26379,
          autoResubscribe: false,
          connectionName: "simba:sentinel",
          connectTimeout: Duration.toMillis(connectTimeout),
          disconnectTimeout: 200,
          enableReadyCheck: false,
          maxRetriesPerRequest: null,
          retryStrategy: reconnectDelay,
          ...defined({
            family,
            keepAlive: options.keepAlive,
            username: options.sentinelUsername,
            password: options.sentinelPassword,
            tls: options.sentinelTLS
          })
        })
        sentinel.on("error", report)
        // "<name> <old host> <old port> <new host> <new port>", once from each Sentinel
        sentinel.on("message", (_: string, text: string) => {
          if (text.startsWith(`${options.name} `)) drop(connected)
        })
        // After each connect, because ioredis drops a waiting command if the Sentinel refuses the connection
        sentinel.on("ready", () => void sentinel.subscribe(channel).catch(report))
        return sentinel
      }),
      (sentinel) => Effect.sync(() => close(sentinel))
    )

  yield* Effect.forEach(options.sentinels ?? [], askSentinel, { discard: true })
  /** Drops the connection at each failover, so that it reconnects to the new primary. Runs until its scope closes. */
  const follow = (open: Effect.Effect<Client, RedisError, Scope.Scope>) =>
    Effect.gen(function*() {
      const before = switches
      const client = yield* open
      yield* listen(client, {
        ready: () => {
          if (!wasReplica) return
          client.info("replication").then((text) => {
            if (!wasReplica || !text.includes("role:master")) return
            wasReplica = false
            drop(others(client))
          }, report)
        },
        connect: () => {
          if (stale.delete(client)) client.disconnect(true)
        }
      })
      yield* Effect.acquireRelease(
        Effect.sync(() => connected.add(client)),
        () => Effect.sync(() => connected.delete(client))
      )
      if (switches !== before) client.disconnect(true)
      return client
    })
  /**
   * Drops the connections that were open when this client lost its own, if the client then reaches another server. For a
   * client of the application, which may reconnect because of a reply to the application.
   */
  const followServer = (client: Client) =>
    Effect.suspend(() => {
      let server: string | undefined
      let before: ReadonlyArray<Client> = []
      const identify = () => {
        client.info("server").then((text) => {
          const found = /^run_id:.*/m.exec(String(text))?.[0]
          if (server !== undefined && found !== server) drop(before)
          server = found
        }, report)
      }
      identify()
      return listen(client, {
        close: () => {
          before = others(client)
        },
        ready: identify
      })
    })
  /**
   * Called when a server replies that it is a replica. That connection reconnects. The first connection that reaches a
   * primary afterwards drops all others.
   */
  const onReplica = () => {
    wasReplica = true
  }
  return { follow, followServer, onReplica }
})
