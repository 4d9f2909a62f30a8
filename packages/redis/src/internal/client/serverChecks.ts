/**
 * Checks a server for settings that may break leases, and suggests a fix for each. `driver` logs the findings when a
 * layer connects, and `RedisDoctor` reports them.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Redis } from "./effectRedis.ts"

export interface Finding {
  readonly check: string
  readonly status: "ok" | "info" | "warning" | "error"
  readonly message: string
  readonly advice?: string | undefined
}

/** The oldest release that has all required commands. */
const oldest = [6, 2] as const

export type Info = ReadonlyMap<string, string>

/** The fields in an `INFO` reply. */
export const fieldsOf = (text: string): Info =>
  new Map([...text.matchAll(/^([^#:\r\n]+):(.*?)\r?$/gm)].map(([, name, value]) => [name!, value!] as const))

export const finding = (check: string, status: Finding["status"], message: string, advice?: string): Finding => ({
  check,
  status,
  message,
  ...(advice === undefined ? {} : { advice })
})

/** A fork reports its own version separately. Its `redis_version` is the Redis version that it is compatible with. */
const forks = ["Valkey", "Redict"] as const

const version = (info: Info): Finding => {
  const text = info.get("redis_version") ?? "unknown"
  const [major = NaN, minor = NaN] = text.split(".").map(Number)
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    return finding("version", "error", `Redis ${text} is too old`, `upgrade to ${oldest.join(".")} or newer`)
  }
  const fork = forks.find((name) => info.has(`${name.toLowerCase()}_version`))
  const own = fork && `${fork} ${info.get(`${fork.toLowerCase()}_version`)}, compatible with `
  return finding("version", "ok", `${own ?? ""}Redis ${text}`)
}

/** `isCluster` is true if the layer follows Cluster redirections. */
const mode = (info: Info, isCluster: boolean): Finding => {
  // Valkey calls the field `server_mode`
  const found = info.get("redis_mode") ?? info.get("server_mode") ?? info.get("redict_mode") ?? "standalone"
  if (found === "sentinel") {
    return finding("mode", "error", "this is a Sentinel, not a server", "name it in client.sentinels, with client.name")
  }
  const isNode = found === "cluster" || info.get("cluster_enabled") === "1"
  return isNode && !isCluster
    ? finding("mode", "error", "this is a node of a Redis Cluster", "use IoRedis.layerCluster")
    : finding("mode", "ok", isNode ? "Redis Cluster" : "single server")
}

const role = (info: Info): Finding => {
  if (info.get("role") !== "slave") return finding("role", "ok", "primary")
  const problem = "this server is a replica, which refuses writes (READONLY)"
  return finding("role", "warning", problem, "connect to its primary, or name the Sentinels in client.sentinels")
}

const eviction = (info: Info): Finding => {
  const policy = info.get("maxmemory_policy")
  if (policy === undefined) return finding("eviction", "info", "the eviction policy cannot be read")
  if (policy === "noeviction") return finding("eviction", "ok", policy)
  const problem = `the eviction policy is ${policy}, which may evict a lease`
  return finding("eviction", "warning", problem, "set maxmemory-policy noeviction")
}

const connections = (info: Info): Finding => {
  const [used, most] = [Number(info.get("connected_clients")), Number(info.get("maxclients"))]
  const count = Number.isNaN(most) ? `${used} connections` : `${used} of ${most} connections`
  return used >= 0.9 * most
    ? finding("connections", "warning", `${count} are in use`, "raise maxclients, or share layers within a process")
    : finding("connections", "ok", count)
}

/** `save` is the server's setting; undefined if it was not read or the server refused to return it. */
const persistence = (info: Info, save: string | undefined): Finding => {
  const appendOnly = info.get("aof_enabled")
  if (appendOnly === undefined) return finding("persistence", "info", "the persistence settings cannot be read")
  if (appendOnly === "1") return finding("persistence", "ok", "append-only file")
  const problem = save === ""
    ? "nothing is saved to disk: a restart frees every mutex, and loses announcements and checkpoints"
    : "no append-only file: a restart loses at least the newest writes"
  return finding("persistence", "info", problem, "set appendonly yes")
}

/** Returns the findings from an `INFO` reply. */
export const ofInfo = (info: Info, isCluster: boolean, save?: string): ReadonlyArray<Finding> => [
  version(info),
  mode(info, isCluster),
  role(info),
  eviction(info),
  connections(info),
  persistence(info, save)
]

/** Reads a setting. Returns undefined on a managed server that refuses CONFIG. */
export const setting = (send: Redis["Service"]["send"], name: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(send<ReadonlyArray<string> | object>("CONFIG", "GET", name)), (reply) => {
    if (Option.isNone(reply)) return undefined
    const value: unknown = Array.isArray(reply.value) ? reply.value[1] : Object.values(reply.value)[0]
    return typeof value === "string" ? value : undefined
  })

export const eventsSetting = "notify-keyspace-events"

/** `flags` is the value of `eventsSetting`. The flag `A` stands for all kinds of events, including `x`. */
export const keyspaceEvents = (flags: string | undefined): Finding => {
  if (flags === undefined) return finding("keyspaceEvents", "info", `${eventsSetting} cannot be read`)
  if (flags.includes("E") && /[xA]/.test(flags)) return finding("keyspaceEvents", "ok", "expired events are sent")
  const problem = "expired events are not sent: orphaned data streams wait for a sweep"
  return finding("keyspaceEvents", "warning", problem, `set ${eventsSetting} to Ex, or set enableEvents`)
}

export const textOf = ({ advice, message }: Finding): string => advice === undefined ? message : `${message}: ${advice}`
