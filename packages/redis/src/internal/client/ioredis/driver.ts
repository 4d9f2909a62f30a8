/** What a layer on ioredis consists of: how to send, where to subscribe, how to open a connection for blocking commands. */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Cluster, Redis as Client } from "ioredis"
import type { RedisTopology } from "../../../RedisTopology.ts"
import type { CommandSink } from "../commandSink.ts"
import type * as Redis from "../effectRedis.ts"
import { fromRedis } from "../errors.ts"
import * as log from "../log.ts"
import * as serverChecks from "../serverChecks.ts"
import * as clusterSubscriptions from "./clusterSubscriptions.ts"
import * as commands from "./commands.ts"
import { withTimeouts } from "./commandTimeouts.ts"
import * as connection from "./connection.ts"
import * as switches from "./failover.ts"
import { type Common, driverOptions, given, partsOf, type SingleOptions, timeouts } from "./options.ts"
import * as outages from "./outageLog.ts"
import * as ownClient from "./ownClient.ts"
import * as channels from "./subscriptions.ts"

export interface Driver {
  readonly client: Client | Cluster
  readonly send: commands.Send
  readonly sink: CommandSink
  readonly ping: Effect.Effect<void, Redis.RedisError>
  readonly subscriptions: channels.Subscriptions
  readonly reserved: Effect.Effect<commands.Send, Redis.RedisError, Scope.Scope>
  readonly pool: Redis.PoolOptions
  readonly topology: RedisTopology
}

/** Findings that this process has logged, by the id of the server's process. */
const logged = new Set<string>()
const mostLogged = 1000

const isFirst = (server: string, text: string) => {
  const key = `${server} ${text}`
  if (logged.has(key)) return false
  if (logged.size >= mostLogged) logged.clear()
  logged.add(key)
  return true
}

/** Checks a server, and logs each finding once per server and process. ioredis sends `INFO` too, so each user may. */
const check = Effect.fnUntraced(function*(send: commands.Send, address: string, isCluster: boolean) {
  const info = serverChecks.fieldsOf(String(yield* Effect.mapError(send("INFO"), fromRedis("check the server"))))
  for (const finding of serverChecks.ofInfo(info, isCluster)) {
    if (finding.status === "error") {
      return yield* new InvalidConfig({ option: "redis", problem: `${serverChecks.textOf(finding)} (${address})` })
    }
    if (finding.status === "ok") continue
    const text = `Redis at ${address}: ${serverChecks.textOf(finding)}`
    const write = finding.status === "warning" ? log.warning : log.info
    if (isFirst(info.get("run_id") ?? "", text)) yield* write(text)
  }
})

/** The parts that depend on the client and the options alone. */
const common = (client: Client | Cluster, { pool, serverChecks }: Common, send: CommandSink["send"]) => {
  // Effect's default of ten is too few for a consumer of thousands of data streams
  const maxReserved = pool?.maxConnections ?? 256
  const sink: CommandSink = { isReady: () => client.status === "ready", afterCurrentTask: queueMicrotask, send }
  return { client, sink, pool: { ...pool, maxConnections: maxReserved }, shape: { maxReserved, serverChecks } }
}

const ofSingle = Effect.fnUntraced(function*(
  client: Client,
  options: Common,
  commandTimeout: Duration.Duration,
  open: (role: "subscriber" | "reserved") => Effect.Effect<Client, Redis.RedisError, Scope.Scope>
): Effect.fn.Return<Driver, BackendError | InvalidConfig, Scope.Scope> {
  const { shape, ...parts } = common(client, options, yield* withTimeouts(client, commandTimeout))
  const send = commands.shared(parts.sink.send)
  const address = () => connection.addressOf(client)
  if (options.serverChecks !== false) yield* check(send, address(), false)
  yield* outages.watch(client, yield* outages.make("commands", address))
  return {
    ...parts,
    send,
    ping: Effect.asVoid(send("PING")),
    subscriptions: yield* channels.make(
      open("subscriber"),
      commandTimeout,
      yield* outages.make("subscriber", address)
    ),
    reserved: Effect.map(open("reserved"), commands.reserved),
    topology: { _tag: "Single", ...shape }
  }
})

const ofCluster = Effect.fnUntraced(function*(
  client: Cluster,
  options: Common,
  settings: connection.Settings,
  reserved: Effect.Effect<Cluster, Redis.RedisError, Scope.Scope>
): Effect.fn.Return<Driver, BackendError | InvalidConfig, Scope.Scope> {
  const limit = settings.commandTimeout
  const { shape, ...parts } = common(client, options, yield* withTimeouts(client, limit))
  // The node has the other options already
  const named = { ...settings, client: given({ connectionName: settings.client.connectionName }) }
  const subscriberAt = (node: Client) => connection.duplicate(node, "subscriber", named)
  if (options.serverChecks !== false) {
    for (const node of client.nodes("master")) {
      // A node that is down now is no reason to do without the others
      yield* Effect.catchTag(
        check(commands.node(node, limit), connection.addressOf(node), true),
        "BackendError",
        () => Effect.void
      )
    }
  }
  yield* outages.watchCluster(client, yield* outages.make("commands", () => "a node of the Cluster"))
  return {
    ...parts,
    send: commands.onCluster(client, limit, commands.shared(parts.sink.send)),
    ping: commands.pingAll(client, limit),
    subscriptions: yield* clusterSubscriptions.make(client, subscriberAt, limit),
    reserved: Effect.map(reserved, commands.reserved),
    topology: {
      _tag: "Cluster",
      ...shape,
      primaries: Effect.sync(() => client.nodes("master").map((node) => commands.node(node, limit)))
    }
  }
})

export const single = Effect.fnUntraced(function*(options: SingleOptions) {
  const server = yield* partsOf(options.url)
  const client = yield* driverOptions(options.client)
  if (client.db !== undefined && (!Number.isInteger(client.db) || client.db < 0)) {
    return yield* new InvalidConfig({ option: "db", problem: "it must be a whole number, and not below 0" })
  }
  if (client.sentinels !== undefined && client.name === undefined) {
    return yield* new InvalidConfig({
      option: "client.name",
      problem: "it is missing: Sentinels know a primary by its name, such as \"mymaster\""
    })
  }
  const settings = { client, ...yield* timeouts(options) }
  const { follow, onReplica } = yield* switches.watch(settings)
  const open = (role: connection.Role) => follow(connection.open(role, { ...settings, server, onReplica }))
  return yield* ofSingle(
    yield* Effect.mapError(open("commands"), fromRedis("connect")),
    options,
    settings.commandTimeout,
    open
  )
})

export const cluster = Effect.fnUntraced(function*(
  options: Common & Pick<SingleOptions, "client"> & Pick<connection.ClusterSettings, "nodes"> & {
    readonly cluster?: connection.ClusterSettings["cluster"] | undefined
  }
) {
  if (options.nodes.length === 0) {
    return yield* new InvalidConfig({ option: "nodes", problem: "name at least one node of the cluster" })
  }
  const settings = {
    nodes: options.nodes,
    client: yield* driverOptions(options.client),
    cluster: yield* driverOptions(options.cluster),
    ...yield* timeouts(options)
  }
  const client = yield* Effect.mapError(connection.openCluster("commands", settings), fromRedis("connect"))
  return yield* ofCluster(client, options, settings, connection.openCluster("reserved", settings))
})

/** The connection is the caller's: it is not closed, and its options stay. */
export const ofClient = Effect.fnUntraced(function*(client: Client | Cluster, options: Common) {
  const problem = ownClient.problemWith(client)
  if (problem !== undefined) return yield* problem
  const settings = yield* timeouts(options)
  yield* Effect.mapError(ownClient.ready(client, settings.connectTimeout), fromRedis("connect"))
  if (client instanceof Client) {
    const { follow } = yield* switches.watch({ client: client.options, ...settings })
    yield* Effect.mapError(follow(Effect.succeed(client)), fromRedis("connect"))
    return yield* ofSingle(
      client,
      options,
      settings.commandTimeout,
      (role) => follow(connection.duplicate(client, role, { ...settings, client: {} }))
    )
  }
  yield* ownClient.rejectUnanswered(client)
  const ofNodes = { client: client.options.redisOptions ?? {}, ...settings }
  return yield* ofCluster(client, options, ofNodes, connection.duplicateCluster(client, ofNodes))
})
