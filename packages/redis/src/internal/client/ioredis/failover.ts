/**
 * Detects failovers and drops the connections to the old primary. A message from a Sentinel, or a server that has
 * become a replica, indicates a failover. The drivers register each connection here. ioredis would reconnect only when
 * a connection closes. But a primary that is replaced while it is alive serves its clients for about ten more seconds.
 * Then it becomes a replica and keeps its subscribers, which the new primary cannot count. ioredis's own detector would
 * open connections to every Sentinel for each client, react to other primaries' failovers, and miss a primary that
 * becomes a replica.
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
    // Call this first: it removes the command's arguments, which may contain a password
    refusedCommand(cause)
    runLog(log.debug("Redis connection (Sentinel)", cause))
  }

  const drop = (clients: Iterable<Client>) => {
    switches++
    for (const client of clients) {
      if (client.status === "ready" || client.status === "connect") client.disconnect(true)
      // If a client is disconnected while it is connecting, ioredis does not reconnect it
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
        // Subscribe after each connect, because ioredis drops a queued command if the Sentinel refuses the connection
        sentinel.on("ready", () => void sentinel.subscribe(channel).catch(report))
        return sentinel
      }),
      (sentinel) => Effect.sync(() => close(sentinel))
    )

  yield* Effect.forEach(options.sentinels ?? [], askSentinel, { discard: true })
  /**
   * Opens a connection and drops it on each failover, which makes it reconnect to the new primary. Runs until its scope
   * closes.
   */
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
   * If the application's client loses its connection and then reaches another server, drops the connections that were
   * open when it was lost. The client may have reconnected because of a reply to one of the application's own commands.
   */
  const followServer = (client: Client) =>
    Effect.suspend(() => {
      let server: string | undefined
      let atLoss: ReadonlyArray<Client> | undefined
      const identify = () => {
        const before = atLoss ?? []
        atLoss = undefined
        client.info("server").then((text) => {
          const found = /^run_id:.*/m.exec(String(text))?.[0]
          if (server !== undefined && found !== server) drop(before)
          server = found
        }, report)
      }
      identify()
      // A failed reconnection attempt emits `close` too
      return listen(client, { close: () => atLoss ??= others(client), ready: identify })
    })
  /**
   * Called when a server replies that it is a replica. That connection reconnects by itself. The next connection that
   * reaches a primary drops all others.
   */
  const onReplica = () => {
    wasReplica = true
  }
  return { follow, followServer, onReplica }
})
