/** The driver for a Redis Cluster. Loaded by `IoRedis`. */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, ClusterNode, Redis as Client } from "ioredis"
import type * as Redis from "../effectRedis.ts"
import { fromRedis } from "../errors.ts"
import * as clusterSubscriptions from "./clusterSubscriptions.ts"
import * as commands from "./commands.ts"
import { withTimeouts } from "./commandTimeouts.ts"
import * as connection from "./connection.ts"
import { check, common, type Driver } from "./driver.ts"
import type { Settings } from "./forcedSettings.ts"
import { listen } from "./listeners.ts"
import { type Common, defined, driverOptions, type SingleOptions, timeouts } from "./options.ts"
import * as outages from "./outageLog.ts"
import * as url from "./url.ts"

export const ofCluster = Effect.fnUntraced(function*(
  client: Cluster,
  options: Common,
  settings: Settings,
  reserved: Effect.Effect<Cluster, Redis.RedisError, Scope.Scope>
): Effect.fn.Return<Driver, BackendError | InvalidConfig, Scope.Scope> {
  const limit = settings.commandTimeout
  const { shape, ...parts } = yield* common(client, options, yield* withTimeouts(client, limit))
  // The node already has the other options
  const named = { ...settings, client: defined({ connectionName: settings.client.connectionName }) }
  const subscriberAt = (node: Client) => connection.duplicate(node, "subscriber", named)
  if (options.serverChecks !== false) {
    yield* Effect.forEach(client.nodes("master"), (node) =>
      // Check the other nodes even if this one is down
      Effect.catchTag(
        check(commands.node(node, limit), connection.addressOf(node), true),
        "BackendError",
        () => Effect.void
      ), { concurrency: "unbounded" })
  }
  yield* listen(client, { refresh: () => commands.forgetUnserved(client) })
  yield* outages.watchCluster(client, yield* outages.make("commands", () => "a Cluster node"))
  return {
    ...parts,
    send: commands.onCluster(client, limit, commands.shared(parts.sink.send)),
    ping: commands.pingAll(client, limit),
    subscriptions: yield* clusterSubscriptions.make(client, subscriberAt, limit),
    reserved: Effect.map(reserved, commands.reserved),
    topology: {
      _tag: "Cluster",
      ...shape,
      primaries: commands.primaries(client, limit)
    }
  }
})

/** A port, `host:port`, a URL, or an object. */
const partsOfNode = (node: ClusterNode): Effect.Effect<url.Parts, InvalidConfig> => {
  if (typeof node === "object") return Effect.succeed(node as url.Parts)
  const trimmed = String(node).trim()
  if (trimmed === "") return Effect.fail(new InvalidConfig({ option: "nodes", problem: "a node is blank" }))
  const text = /^\d+$/.test(trimmed) ? `localhost:${trimmed}` : trimmed
  return Effect.filterOrFail(
    url.read(text.includes("://") ? text : `redis://${text}`, "nodes"),
    ({ db = 0 }) => db === 0,
    () =>
      new InvalidConfig({ option: "nodes", problem: "a Cluster has only database 0: remove the number after the port" })
  )
}

const credentialsOf = (nodes: ReadonlyArray<url.Parts>) => {
  const login = nodes.find(({ password, username }) => (password ?? username) !== undefined)
  const tls = nodes.find(({ tls }) => tls !== undefined)?.tls
  return defined({ username: login?.username, password: login?.password, tls })
}

export const cluster = Effect.fnUntraced(function*(
  options: Common & Pick<SingleOptions, "client"> & {
    readonly nodes: ReadonlyArray<ClusterNode>
    readonly cluster?: connection.ClusterSettings["cluster"] | undefined
  }
) {
  if (options.nodes.length === 0) {
    return yield* new InvalidConfig({ option: "nodes", problem: "name at least one node of the cluster" })
  }
  const nodes = yield* Effect.forEach(options.nodes, partsOfNode)
  const settings = {
    nodes: nodes.map(({ host, port }) => ({ host, port })),
    // The credentials in a URL apply to nodes that are discovered later, too
    client: { ...credentialsOf(nodes), ...yield* driverOptions(options.client) },
    cluster: yield* driverOptions(options.cluster),
    ...yield* timeouts(options)
  }
  const client = yield* Effect.mapError(connection.openCluster("commands", settings), fromRedis("connect"))
  return yield* ofCluster(client, options, settings, connection.duplicateCluster(client, settings))
})
