/**
 * Fail-overs, as Sentinels tell of them, or as a primary shows that has become a replica. One that Sentinels replace while
 * it lives is not told for some ten seconds, and goes on to serve those who are connected to it, while others are with the
 * new one already. A replica goes on to serve those who only listen, whom the new primary does not see.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RedisError } from "effect/persistence/Redis"
import type * as Scope from "effect/Scope"
import { Redis as Client } from "ioredis"
import { type Settings, takeRefused } from "./connection.ts"

const channel = "+switch-master"

/** A Sentinel that is away is asked again; the others tell meanwhile. */
const reconnectDelay = (attempt: number): number => Math.min(100 * attempt, 5000)

type Opening = Effect.Effect<Client, RedisError, Scope.Scope>

export interface Watch {
  /**
   * Puts a connection under the watch from its opening on, for as long as its scope is open: it is dropped at each
   * fail-over, so that the address, or the Sentinels, lead it to the new primary.
   */
  readonly follow: (open: Opening) => Opening
  /** A server has said that it is a replica. Once one of the connections has found a primary, the others follow. */
  readonly onReplica: () => void
}

export const watch = Effect.fnUntraced(function*(
  { client: options, connectTimeout }: Settings
): Effect.fn.Return<Watch, never, Scope.Scope> {
  const connected = new Map<Client, { isStale: boolean }>()
  let switches = 0
  let wasReplica = false
  const runLog = Effect.runForkWith(yield* Effect.context<never>())
  const log = (cause: unknown) => {
    takeRefused(cause)
    runLog(Effect.logDebug("Redis connection (Sentinel)", cause))
  }

  const drop = (except?: Client) => {
    switches++
    for (const [client, state] of connected) {
      if (client === except) continue
      if (client.status === "ready" || client.status === "connect") client.disconnect(true)
      // It may have asked a Sentinel that did not know; dropped at this stage, ioredis would give it up for good
      else if (client.status === "connecting") state.isStale = true
    }
  }
  const listen = ({ host, port, family }: NonNullable<typeof options.sentinels>[number]) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const sentinel = new Client({
          host: host ?? "localhost",
          port: port ?? 26379,
          connectionName: "simba:sentinel",
          connectTimeout: Duration.toMillis(connectTimeout),
          enableReadyCheck: false,
          lazyConnect: true,
          maxRetriesPerRequest: null,
          retryStrategy: reconnectDelay,
          ...(family === undefined ? {} : { family }),
          ...(options.sentinelUsername === undefined ? {} : { username: options.sentinelUsername }),
          ...(options.sentinelPassword === undefined ? {} : { password: options.sentinelPassword }),
          ...(options.sentinelTLS === undefined ? {} : { tls: options.sentinelTLS })
        })
        sentinel.on("error", log)
        // "<name> <old host> <old port> <new host> <new port>"; each Sentinel says it, some a moment later
        sentinel.on("message", (_: string, text: string) => {
          if (text.startsWith(`${options.name} `)) drop()
        })
        sentinel.subscribe(channel).catch(log)
        return sentinel
      }),
      (sentinel) => Effect.sync(() => sentinel.disconnect())
    )

  yield* Effect.forEach(options.sentinels ?? [], listen, { discard: true })
  const follow = (open: Opening) =>
    Effect.gen(function*() {
      const before = switches
      const client = yield* open
      const state = { isStale: false }
      const onReady = () => {
        if (!wasReplica) return
        client.info("replication").then((text) => {
          if (!wasReplica || !text.includes("role:master")) return
          wasReplica = false
          drop(client)
        }, log)
      }
      const onConnect = () => {
        if (state.isStale) client.disconnect(true)
        state.isStale = false
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          connected.set(client, state)
          client.on("connect", onConnect).on("ready", onReady)
          if (switches !== before) client.disconnect(true)
        }),
        () =>
          Effect.sync(() => {
            connected.delete(client)
            client.off("connect", onConnect).off("ready", onReady)
          })
      )
      return client
    })
  return {
    follow,
    onReplica: () => {
      wasReplica = true
    }
  }
})
