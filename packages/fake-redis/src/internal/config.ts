/**
 * The settings for CONFIG. Some change the server's behaviour, some have no effect that a client could observe, and
 * some are fixed: CONFIG SET rejects other values.
 */
import { parseBigInt } from "./numbers.ts"

/** The value in the form that Redis stores, or the reason why Redis rejects it. */
type Accepted = { readonly value: string } | { readonly reason: string }

interface Setting {
  readonly initial: string
  readonly accept: (value: string) => Accepted
}

const LONG_MAX = 9223372036854775807n
const INT_MAX = 2147483647n

const inRange = (number: bigint, minimum: bigint, maximum: bigint): Accepted =>
  number < minimum || number > maximum
    ? { reason: `argument must be between ${minimum} and ${maximum} inclusive` }
    : { value: String(number) }

const integer = (initial: string, minimum = 0n, maximum = LONG_MAX): Setting => ({
  initial,
  accept: (value) => {
    const number = parseBigInt(value)
    return number === undefined
      ? { reason: "argument couldn't be parsed into an integer" }
      : inRange(number, minimum, maximum)
  }
})

const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  k: 1000,
  kb: 1024,
  m: 1000 ** 2,
  mb: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1024 ** 3
}

/** A setting in bytes, which accepts sizes such as `100mb`. */
const parseMemory = (text: string): bigint | undefined => {
  const match = /^([0-9]+)(b|k|kb|m|mb|g|gb)?$/i.exec(text)
  return match === null ? undefined : BigInt(match[1]!) * BigInt(UNITS[(match[2] ?? "b").toLowerCase()]!)
}

const memory = (initial: string): Setting => ({
  initial,
  accept: (value) => {
    const bytes = parseMemory(value)
    return bytes === undefined ? { reason: "argument must be a memory value" } : inRange(bytes, 0n, LONG_MAX)
  }
})

const choice = (initial: string, values: ReadonlyArray<string>): Setting => ({
  initial,
  accept: (value) =>
    values.includes(value.toLowerCase())
      ? { value: value.toLowerCase() }
      : { reason: `argument(s) must be one of the following: ${values.join(", ")}` }
})

const yesNo = (initial: string): Setting => ({
  initial,
  accept: (value) =>
    /^(?:yes|no)$/i.test(value) ? { value: value.toLowerCase() } : { reason: "argument must be 'yes' or 'no'" }
})

const text = (initial: string): Setting => ({ initial, accept: (value) => ({ value }) })

/** A setting that cannot be changed, because other values enable a feature that this server lacks. */
const fixed = (initial: string, setting?: Setting): Setting => ({
  initial,
  accept: (value) => {
    const accepted = setting === undefined ? { value } : setting.accept(value)
    return "reason" in accepted || accepted.value === initial
      ? accepted
      : { reason: "this server does not support other values" }
  }
})

const savePoints: Setting = {
  initial: "",
  accept: (value) =>
    value === "" || /^(?:[1-9][0-9]* [0-9]+ ?)+$/.test(value) ? { value } : { reason: "Invalid save parameters" }
}

const POLICIES: ReadonlyArray<string> = [
  "volatile-lru",
  "volatile-lfu",
  "volatile-random",
  "volatile-ttl",
  "allkeys-lru",
  "allkeys-lfu",
  "allkeys-random",
  "noeviction"
]

const SETTINGS: Readonly<Record<string, Setting>> = {
  // Settings that affect what commands do or return
  "acllog-max-len": integer("128"),
  "busy-reply-threshold": integer("5000"),
  "hash-max-listpack-entries": integer("512"),
  "hash-max-listpack-value": memory("64"),
  "hll-sparse-max-bytes": memory("3000"),
  "min-replicas-to-write": integer("0", 0n, INT_MAX),
  "min-replicas-max-lag": integer("10", 0n, INT_MAX),
  requirepass: text(""),
  "set-max-intset-entries": integer("512"),
  "slowlog-log-slower-than": integer("10000", -1n),
  "slowlog-max-len": integer("128"),
  "stream-node-max-bytes": memory("4096"),
  "stream-node-max-entries": integer("100"),
  "zset-max-listpack-entries": integer("128"),
  "zset-max-listpack-value": memory("64"),
  // No effect: without `maxmemory` nothing is evicted
  "maxmemory-policy": choice("noeviction", POLICIES),
  // No effect on replies: these settings trade memory, CPU or latency
  "active-expire-effort": integer("1", 1n, 10n),
  activerehashing: yesNo("yes"),
  "dynamic-hz": yesNo("yes"),
  hz: integer("10", 0n, INT_MAX),
  "lazyfree-lazy-eviction": yesNo("no"),
  "lazyfree-lazy-expire": yesNo("no"),
  "lazyfree-lazy-server-del": yesNo("no"),
  "lazyfree-lazy-user-del": yesNo("no"),
  "lazyfree-lazy-user-flush": yesNo("no"),
  "list-compress-depth": integer("0", 0n, INT_MAX),
  "list-max-listpack-size": integer("-2", -INT_MAX - 1n, INT_MAX),
  // Fixed: this server lacks the features that they enable
  activedefrag: fixed("no", yesNo("no")),
  appendfsync: fixed("everysec", choice("everysec", ["everysec", "always", "no"])),
  appendonly: fixed("no", yesNo("no")),
  "client-query-buffer-limit": fixed("1073741824", memory("1073741824")),
  "latency-monitor-threshold": fixed("0", integer("0")),
  "latency-tracking": fixed("no", yesNo("no")),
  "lfu-decay-time": fixed("1", integer("1", 0n, INT_MAX)),
  "lfu-log-factor": fixed("10", integer("10", 0n, INT_MAX)),
  maxclients: fixed("10000", integer("10000", 1n, 4294967295n)),
  maxmemory: fixed("0", memory("0")),
  "maxmemory-clients": fixed("0"),
  "maxmemory-samples": fixed("5", integer("5", 1n, INT_MAX)),
  "proto-max-bulk-len": fixed("536870912", memory("536870912")),
  "replica-read-only": fixed("yes", yesNo("yes")),
  "replica-serve-stale-data": fixed("yes", yesNo("yes")),
  "acl-pubsub-default": fixed("resetchannels", choice("resetchannels", ["resetchannels", "allchannels"])),
  save: fixed("", savePoints),
  "tcp-keepalive": fixed("300", integer("300", 0n, INT_MAX)),
  timeout: fixed("0", integer("0", 0n, INT_MAX)),
  "tracking-table-max-keys": {
    initial: "1000000",
    accept: (value) => value === "0" ? { value } : fixed("1000000", integer("1000000")).accept(value)
  }
}

/** Older names that Redis still accepts. */
const ALIASES: Readonly<Record<string, string>> = {
  "hash-max-ziplist-entries": "hash-max-listpack-entries",
  "hash-max-ziplist-value": "hash-max-listpack-value",
  "list-max-ziplist-size": "list-max-listpack-size",
  "lua-time-limit": "busy-reply-threshold",
  "min-slaves-max-lag": "min-replicas-max-lag",
  "min-slaves-to-write": "min-replicas-to-write",
  "slave-read-only": "replica-read-only",
  "slave-serve-stale-data": "replica-serve-stale-data",
  "zset-max-ziplist-entries": "zset-max-listpack-entries",
  "zset-max-ziplist-value": "zset-max-listpack-value"
}

const IMMUTABLE: Readonly<Record<string, string>> = { databases: "16", "cluster-enabled": "no" }

export class Config {
  private readonly values = new Map<string, string>([
    ...Object.entries(SETTINGS).map(([name, { initial }]) => [name, initial] as const),
    ...Object.entries(IMMUTABLE)
  ])

  /** All names, including aliases, with their values. */
  entries(): ReadonlyArray<readonly [name: string, value: string]> {
    return [
      ...this.values,
      ...Object.entries(ALIASES).map(([alias, name]) => [alias, this.get(name)] as const)
    ]
  }

  has(name: string): boolean {
    return this.values.has(ALIASES[name] ?? name)
  }

  isImmutable(name: string): boolean {
    return name in IMMUTABLE
  }

  get(name: string): string {
    return this.values.get(name)!
  }

  number(name: string): number {
    return Number(this.get(name))
  }

  /** Returns the name and the value to store, or the reason why the value is rejected. */
  check(name: string, value: string): Accepted {
    return SETTINGS[ALIASES[name] ?? name]!.accept(value)
  }

  set(name: string, value: string): void {
    this.values.set(ALIASES[name] ?? name, value)
  }
}
