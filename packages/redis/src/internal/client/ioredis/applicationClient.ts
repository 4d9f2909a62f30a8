/** Validates and connects the application's own client. Used by `clientDriver`. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, ClusterNode, Redis as Client } from "ioredis"
import { type RedisError, redisError } from "../effectRedis.ts"
import * as causes from "./causes.ts"
import { isOwn } from "./commandTimeouts.ts"
import { hostPort, isCluster, reasonOf, rejectUnanswered as rejectOfNode, targetOf } from "./connection.ts"
import { listen } from "./listeners.ts"
import { prefixed, stale } from "./options.ts"

const refuse = (option: string, problem: string) => new InvalidConfig({ option, problem })

export const problemWith = (client: Client | Cluster): InvalidConfig | undefined => {
  // JavaScript callers may pass any value
  if (typeof (client as Partial<Client> | null)?.duplicate !== "function" || typeof client.status !== "string") {
    return refuse("client", "it is not an ioredis client")
  }
  const options = isCluster(client) ? { ...client.options.redisOptions, ...client.options } : client.options
  if (options.keyPrefix) return prefixed
  if (options.stringNumbers === true) return refuse("stringNumbers", "it changes the type of replies: remove it")
  if (options.replyMapping === "resp3") return refuse("replyMapping", "it changes the shape of replies: remove it")
  if ("scaleReads" in options && options.scaleReads !== "master") return stale
  if (client.status === "end") {
    return refuse("client", "it is closed: pass an open one, and close it after the layer")
  }
  if (!isCluster(client) && client.mode !== "normal") {
    return refuse("client", "it subscribes or monitors: pass a client for commands")
  }
  return undefined
}

/** Formats a node from a Cluster client's settings, without its credentials. */
const addressOfNode = (node: ClusterNode): string =>
  typeof node === "object"
    ? hostPort(node)
    : typeof node === "number"
    ? `localhost:${node}`
    : node.replace(/^\w+:\/\//, "").replace(/^.*@/, "").replace(/[/?].*$/, "")

/** Waits until the client is connected. Connects a `lazyConnect` client that is still idle. */
export const ready = (client: Client | Cluster, limit: Duration.Duration): Effect.Effect<void, RedisError> => {
  const target: causes.Target = isCluster(client)
    ? {
      isCluster: true,
      address: client["startupNodes"].map(addressOfNode).join(", "),
      tls: client.options.redisOptions?.tls !== undefined
    }
    : targetOf(client.options)
  let lastError: unknown
  return Effect.callback<void>((resume) => {
    if (client.status === "ready") return resume(Effect.void)
    const onReady = () => resume(Effect.void)
    const onError = (error: unknown) => {
      lastError = reasonOf(error)
    }
    client.on("error", onError).once("ready", onReady)
    if (client.status === "wait") client.connect().catch(onError)
    return Effect.sync(() => {
      client.off("error", onError).off("ready", onReady)
    })
  }).pipe(Effect.timeoutOrElse({
    duration: limit,
    orElse: () =>
      Effect.fail(
        redisError(
          lastError === undefined
            ? causes.ofSilence(Duration.format(limit), target)
            : causes.ofConnecting(lastError, target)
        )
      )
  }))
}

/**
 * Applies `rejectUnanswered` from `connection` to this library's commands on each Cluster node, including nodes that
 * join later.
 */
export const rejectUnanswered = (cluster: Cluster): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    const onNode = (node: Client) => rejectOfNode(node, isOwn)
    cluster.nodes("all").forEach(onNode)
    return listen(cluster, { "+node": onNode })
  })
