/**
 * The settings that CONFIG GET knows. Only `notify-keyspace-events` changes what the engine does.
 */
export const defaultConfig = (): Map<string, string> =>
  new Map([
    ["notify-keyspace-events", ""],
    ["maxmemory", "0"],
    ["maxmemory-policy", "noeviction"],
    ["appendonly", "no"],
    ["appendfsync", "everysec"],
    ["save", ""],
    ["databases", "16"],
    ["timeout", "0"],
    ["tcp-keepalive", "300"],
    ["maxclients", "10000"],
    ["lua-time-limit", "5000"],
    ["busy-reply-threshold", "5000"],
    ["min-replicas-to-write", "0"],
    ["min-replicas-max-lag", "10"],
    ["replica-read-only", "yes"],
    ["cluster-enabled", "no"],
    ["requirepass", ""],
    ["slowlog-log-slower-than", "10000"],
    ["stream-node-max-entries", "100"],
    ["proto-max-bulk-len", "536870912"]
  ])

export const IMMUTABLE: ReadonlySet<string> = new Set(["databases", "cluster-enabled"])
export const NUMERIC: ReadonlySet<string> = new Set([
  "timeout",
  "tcp-keepalive",
  "maxclients",
  "lua-time-limit",
  "busy-reply-threshold",
  "min-replicas-to-write",
  "min-replicas-max-lag",
  "slowlog-log-slower-than",
  "stream-node-max-entries"
])
export const POLICIES: ReadonlySet<string> = new Set([
  "volatile-lru",
  "volatile-lfu",
  "volatile-random",
  "volatile-ttl",
  "allkeys-lru",
  "allkeys-lfu",
  "allkeys-random",
  "noeviction"
])

/** `100mb` and the like, in bytes. */
export const parseMemory = (text: string): number | undefined => {
  const match = /^([0-9]+)(b|k|kb|m|mb|g|gb)?$/i.exec(text)
  if (match === null) return undefined
  const unit = (match[2] ?? "b").toLowerCase()
  const factor: Readonly<Record<string, number>> = {
    b: 1,
    k: 1000,
    kb: 1024,
    m: 1000 ** 2,
    mb: 1024 ** 2,
    g: 1000 ** 3,
    gb: 1024 ** 3
  }
  return Number(match[1]) * factor[unit]!
}
