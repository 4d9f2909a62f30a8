/** INFO: the fields that clients and dashboards read. */
import { subscriptions } from "../client.ts"
import type { Server } from "../server.ts"

const sections: Readonly<Record<string, (server: Server) => ReadonlyArray<string>>> = {
  Server: (server) => [
    "redis_version:7.0.15",
    "redis_mode:standalone",
    "os:effect-simba",
    "process_id:1",
    "run_id:0000000000000000000000000000000000000000",
    "tcp_port:6379",
    `server_time_usec:${server.micros}`,
    `uptime_in_seconds:${Math.floor((server.now - server.startedAt) / 1000)}`,
    "hz:10"
  ],
  Clients: (server) => {
    const clients = Array.from(server.clients.values())
    return [
      `connected_clients:${clients.length}`,
      `blocked_clients:${server.blocked.all.size}`,
      `pubsub_clients:${clients.filter((client) => subscriptions(client) > 0).length}`
    ]
  },
  Memory: (server) => [
    "used_memory:1048576",
    `maxmemory:${server.config.get("maxmemory")}`,
    `maxmemory_policy:${server.config.get("maxmemory-policy")}`,
    `number_of_cached_scripts:${server.scripts.size}`
  ],
  Persistence: (server) => [
    `loading:${server.errorState === "LOADING" ? 1 : 0}`,
    "rdb_changes_since_last_save:0",
    "aof_enabled:0"
  ],
  Stats: (server) => [
    `total_commands_processed:${server.commandsProcessed}`,
    `expired_keys:${server.expiredKeys}`,
    "evicted_keys:0",
    `pubsub_channels:${server.subscribers.channels.size}`,
    `pubsub_patterns:${server.subscribers.patterns.size}`
  ],
  Replication: () => [
    "role:master",
    "connected_slaves:0",
    "master_failover_state:no-failover",
    "master_replid:0000000000000000000000000000000000000000",
    "master_repl_offset:0"
  ],
  CPU: () => ["used_cpu_sys:0.000000", "used_cpu_user:0.000000"],
  Modules: () => [],
  Commandstats: (server) => server.statistics.commandLines(),
  Errorstats: (server) => server.statistics.errorLines(),
  Latencystats: () => [],
  Cluster: () => ["cluster_enabled:0"],
  Keyspace: (server) =>
    server.dbs.filter((db) => db.entries.size > 0).map((db) => {
      let expires = 0
      for (const entry of db.entries.values()) if (entry.expiresAt !== Infinity) expires++
      return `db${db.index}:keys=${db.entries.size},expires=${expires},avg_ttl=0`
    })
}

/** The sections that are shown only on request or with `all`. */
const onDemand: ReadonlyArray<string> = ["Commandstats", "Latencystats"]

export const info = (server: Server, wanted: ReadonlyArray<string>): string => {
  const names = wanted.map((name) => name.toLowerCase())
  const isAll = names.some((name) => name === "all" || name === "everything")
  const isDefault = names.length === 0 || names.includes("default")
  return Object.entries(sections)
    .filter(([name]) => isAll || names.includes(name.toLowerCase()) || (isDefault && !onDemand.includes(name)))
    .map(([name, lines]) => `# ${name}\r\n${lines(server).map((text) => `${text}\r\n`).join("")}`).join("\r\n")
}
