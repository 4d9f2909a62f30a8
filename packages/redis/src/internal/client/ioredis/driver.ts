/** What a layer on ioredis consists of: how to send, where to subscribe, how to open a connection for blocking commands. */
import { InvalidConfig } from "@effect-simba/core/SimbaError"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Cluster, Redis as Client } from "ioredis"
import type { ClusterOptions, Options } from "../../../IoRedis.ts"
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
import * as outages from "./outageLog.ts"
import * as ownClient from "./ownClient.ts"
import * as channels from "./subscriptions.ts"
import * as url from "./url.ts"

export interface Driver {
  readonly client: Client | Cluster
  readonly send: commands.Send
  readonly sink: CommandSink
  readonly ping: Effect.Effect<void, Redis.RedisError>
  readonly subscriptions: channels.Subscriptions
  readonly reserved: Effect.Effect<commands.Send, Redis.RedisError, Scope.Scope>
  readonly pool: Redis.PoolOptions | undefined
  readonly topology: RedisTopology
}

/** Effect's default of ten is too few for a consumer of thousands of data streams. */
const maxReserved = ({ pool }: Pick<Options, "pool">) => pool?.maxConnections ?? 256

const pool = (options: Pick<Options, "pool">) => ({ ...options.pool, maxConnections: maxReserved(options) })

type Common = Pick<Options, "commandTimeout" | "connectTimeout" | "pool" | "serverChecks">

const duration = (option: string, input: Duration.Input) => {
  const value = Duration.fromInput(input)
  return Option.isSome(value) && Duration.isFinite(value.value) && Duration.toMillis(value.value) >= 1
    ? Effect.succeed(value.value)
    : Effect.fail(new InvalidConfig({ option, problem: "it must be a finite duration of at least 1 millisecond" }))
}

const timeouts = Effect.fnUntraced(function*(options: Common) {
  return {
    commandTimeout: yield* duration("commandTimeout", options.commandTimeout ?? "1 second"),
    connectTimeout: yield* duration("connectTimeout", options.connectTimeout ?? "2 seconds")
  }
})

/** An option that is there, and undefined, counts as not given: it hides neither the environment nor the URL. */
export const given = <A extends object>(options: A | undefined): Partial<A> =>
  Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined)) as Partial<A>

/** Scripts name their channels themselves, and look for keys by pattern: ioredis would prefix neither. */
export const driverOptions = <A extends object>(input: A | undefined): Effect.Effect<Partial<A>, InvalidConfig> => {
  if (input instanceof Client || input instanceof Cluster) {
    return Effect.fail(
      new InvalidConfig({ option: "client", problem: "it is a client, not options: give it to IoRedis.fromClient" })
    )
  }
  const options = given(input)
  return "keyPrefix" in options && options.keyPrefix !== ""
    ? Effect.fail(ownClient.prefixed)
    : Effect.succeed(options)
}

export const partsOf = (text: Options["url"]): Effect.Effect<url.Parts, InvalidConfig> =>
  text === undefined ? Effect.succeed({}) : url.read(Redacted.isRedacted(text) ? Redacted.value(text) : text)

/** One look at a server. ioredis asks for `INFO` too, so each user that connects may ask. */
const check = Effect.fnUntraced(function*(send: commands.Send, address: string, isCluster: boolean) {
  const info = serverChecks.fieldsOf(String(yield* Effect.mapError(send("INFO"), fromRedis("check the server"))))
  for (const finding of serverChecks.ofInfo(info, isCluster)) {
    if (finding.status === "error") {
      return yield* new InvalidConfig({ option: "redis", problem: `${serverChecks.textOf(finding)} (${address})` })
    }
    if (finding.status === "ok") continue
    const write = finding.status === "warning" ? log.warning : log.info
    yield* write(`Redis at ${address}: ${serverChecks.textOf(finding)}`)
  }
})

const ofSingle = Effect.fnUntraced(function*(
  client: Client,
  options: Common,
  settings: { readonly commandTimeout: Duration.Duration },
  open: (role: "subscriber" | "reserved") => Effect.Effect<Client, Redis.RedisError, Scope.Scope>
) {
  const direct = yield* withTimeouts(client, settings.commandTimeout)
  const send = commands.shared(direct)
  const address = () => connection.addressOf(client)
  if (options.serverChecks !== false) yield* check(send, address(), false)
  yield* outages.watch(client, yield* outages.make("commands", address))
  const driver: Driver = {
    client,
    send,
    sink: { isReady: () => client.status === "ready", afterCurrentTask: queueMicrotask, send: direct },
    ping: Effect.asVoid(send("PING")),
    subscriptions: yield* channels.make(
      open("subscriber"),
      settings.commandTimeout,
      yield* outages.make("subscriber", address)
    ),
    reserved: Effect.map(open("reserved"), commands.reserved),
    pool: pool(options),
    topology: { _tag: "Single", maxReserved: maxReserved(options), serverChecks: options.serverChecks }
  }
  return driver
})

const ofCluster = Effect.fnUntraced(function*(
  client: Cluster,
  options: Common,
  settings: { readonly commandTimeout: Duration.Duration },
  subscriberAt: (node: Client) => Effect.Effect<Client, Redis.RedisError, Scope.Scope>,
  reserved: Effect.Effect<Cluster, Redis.RedisError, Scope.Scope>
) {
  const limit = settings.commandTimeout
  const direct = yield* withTimeouts(client, limit)
  const send = commands.onCluster(client, limit, commands.shared(direct))
  const primaries = Effect.sync(() => client.nodes("master"))
  if (options.serverChecks !== false) {
    yield* Effect.flatMap(primaries, (nodes) =>
      Effect.forEach(nodes, (node) =>
        // A node that is down now is no reason to do without the others
        Effect.catchTag(
          check(commands.node(node, limit), connection.addressOf(node), true),
          "BackendError",
          () => Effect.void
        )))
  }
  yield* outages.watchCluster(client, yield* outages.make("commands", () => "a node of the Cluster"))
  const driver: Driver = {
    client,
    send,
    sink: { isReady: () => client.status === "ready", afterCurrentTask: queueMicrotask, send: direct },
    ping: commands.pingAll(client, limit),
    subscriptions: yield* clusterSubscriptions.make(client, subscriberAt, limit),
    reserved: Effect.map(reserved, commands.reserved),
    pool: pool(options),
    topology: {
      _tag: "Cluster",
      maxReserved: maxReserved(options),
      serverChecks: options.serverChecks,
      primaries: Effect.map(primaries, (nodes) => nodes.map((node) => commands.node(node, limit)))
    }
  }
  return driver
})

export const single = Effect.fnUntraced(function*(options: Options) {
  const server = yield* partsOf(options.url)
  const client = yield* driverOptions(options.client)
  if (client.db !== undefined && (!Number.isInteger(client.db) || client.db < 0)) {
    return yield* new InvalidConfig({ option: "db", problem: "it must be a whole number, and not below 0" })
  }
  const settings = { server, client, ...yield* timeouts(options) }
  const { follow, onReplica } = yield* switches.watch(settings)
  const open = (role: connection.Role) => follow(connection.open(role, { ...settings, onReplica }))
  return yield* ofSingle(yield* Effect.mapError(open("commands"), fromRedis("connect")), options, settings, open)
})

export const cluster = Effect.fnUntraced(function*(options: ClusterOptions) {
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
  return yield* ofCluster(
    client,
    options,
    settings,
    connection.openNode(settings),
    connection.openCluster("reserved", settings)
  )
})

/** The connection is the caller's: it is not closed, and its options stay. */
export const ofClient = Effect.fnUntraced(function*(client: Client | Cluster, options: Common) {
  const problem = ownClient.problemWith(client)
  if (problem !== undefined) return yield* problem
  const settings = yield* timeouts(options)
  yield* Effect.mapError(ownClient.ready(client, settings.connectTimeout), fromRedis("connect"))
  if (client instanceof Client) {
    const { follow } = yield* switches.watch({ server: {}, client: client.options, ...settings })
    yield* Effect.mapError(follow(Effect.succeed(client)), fromRedis("connect"))
    return yield* ofSingle(client, options, settings, (role) => follow(connection.duplicate(client, role, settings)))
  }
  yield* ownClient.rejectUnanswered(client)
  const ofNodes = { client: client.options.redisOptions ?? {}, ...settings }
  return yield* ofCluster(
    client,
    options,
    settings,
    connection.openNode(ofNodes),
    connection.duplicateCluster(client, ofNodes)
  )
})
