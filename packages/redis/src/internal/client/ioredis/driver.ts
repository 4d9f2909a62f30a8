/**
 * The driver for one server: commands, subscriptions, and connections for blocking commands. Loaded by `IoRedis`.
 * `clusterDriver` and `clientDriver` are separate files to keep bundles small.
 */
import { type BackendError, InvalidConfig } from "@effect-simba/core/SimbaError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Cluster, Redis as Client } from "ioredis"
import type { RedisTopology } from "../../../RedisTopology.ts"
import type { CommandSink } from "../commandSink.ts"
import type * as Redis from "../effectRedis.ts"
import { fromRedis } from "../errors.ts"
import * as log from "../log.ts"
import * as serverChecks from "../serverChecks.ts"
import * as commands from "./commands.ts"
import { withTimeouts } from "./commandTimeouts.ts"
import * as connection from "./connection.ts"
import * as failover from "./failover.ts"
import type { Role } from "./forcedSettings.ts"
import { type Common, driverOptions, ofConnection, partsOf, type SingleOptions, timeouts } from "./options.ts"
import * as outages from "./outageLog.ts"
import * as channels from "./subscriptions.ts"

export interface Driver {
  readonly client: Client | Cluster
  readonly send: commands.Send
  readonly sink: CommandSink["Service"]
  readonly ping: Effect.Effect<void, Redis.RedisError>
  readonly subscriptions: channels.Subscriptions
  readonly reserved: Effect.Effect<commands.Send, Redis.RedisError, Scope.Scope>
  readonly pool: Redis.PoolOptions
  readonly topology: RedisTopology
}

/** Findings that this process has already logged, by the server's `run_id`. */
const logged = new Set<string>()
const mostLogged = 1000

const isFirst = (server: string, text: string) => {
  const key = `${server} ${text}`
  if (logged.has(key)) return false
  if (logged.size >= mostLogged) logged.clear()
  logged.add(key)
  return true
}

/**
 * Checks a server. Each process logs each finding once per server. The check needs no additional permissions, because
 * ioredis itself sends `INFO`.
 */
export const check = Effect.fnUntraced(function*(send: commands.Send, address: string, isCluster: boolean) {
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

/** Creates a driver's parts that depend only on the client and the options. */
export const common = Effect.fnUntraced(function*(
  client: Client | Cluster,
  { pool, serverChecks }: Common,
  send: CommandSink["Service"]["send"]
) {
  // Effect's default of ten is too low for a consumer with thousands of data streams
  const maxReserved = pool?.maxConnections ?? 256
  // With a maximum of 0, a reservation would wait forever
  if (!(maxReserved >= 1)) {
    return yield* new InvalidConfig({ option: "pool.maxConnections", problem: "it must be at least 1" })
  }
  const sink: CommandSink["Service"] = {
    isReady: () => client.status === "ready",
    afterCurrentTask: queueMicrotask,
    send
  }
  return { client, sink, pool: { ...pool, maxConnections: maxReserved }, shape: { maxReserved, serverChecks } }
})

export const ofSingle = Effect.fnUntraced(function*(
  client: Client,
  options: Common,
  commandTimeout: Duration.Duration,
  sendOver: CommandSink["Service"]["send"],
  open: (role: "subscriber" | "reserved") => Effect.Effect<Client, Redis.RedisError, Scope.Scope>
): Effect.fn.Return<Driver, BackendError | InvalidConfig, Scope.Scope> {
  const { shape, ...parts } = yield* common(client, options, sendOver)
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

export const single = Effect.fnUntraced(function*(options: SingleOptions) {
  for (const option in options) {
    if (option !== "commandTimeout" && !ofConnection.includes(option)) {
      // A JavaScript program would connect to the default server
      return yield* new InvalidConfig({ option, problem: "it does not exist: set url, or this inside client" })
    }
  }
  const server = yield* partsOf(options.url)
  const client = yield* driverOptions(options.client)
  if (client.db !== undefined && (!Number.isInteger(client.db) || client.db < 0)) {
    return yield* new InvalidConfig({ option: "db", problem: "it must be a whole number of at least 0" })
  }
  if (client.sentinels?.length === 0) {
    return yield* new InvalidConfig({ option: "client.sentinels", problem: "name at least one Sentinel" })
  }
  if (client.sentinels && !client.name) {
    return yield* new InvalidConfig({
      option: "client.name",
      problem: "it is missing: Sentinels know a primary by its name, such as \"mymaster\""
    })
  }
  const settings = { client, ...yield* timeouts(options) }
  const { follow, onReplica } = yield* failover.watch(settings)
  const open = (role: Role) => follow(connection.open(role, { ...settings, server, onReplica }))
  const commandClient = yield* Effect.mapError(open("commands"), fromRedis("connect"))
  const send = yield* withTimeouts(commandClient, settings.commandTimeout)
  return yield* ofSingle(commandClient, options, settings.commandTimeout, send, open)
})
