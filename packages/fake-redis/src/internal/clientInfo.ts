/** Describes a client as CLIENT LIST and the logs show it. */
import type { Client } from "./client.ts"
import { subscriptions } from "./client.ts"

/** A made-up address: the engine does not know a client's socket. */
export const addressOf = (client: Client): string => `127.0.0.1:${40000 + client.id}`

export const kindOf = (client: Client): string => subscriptions(client) > 0 ? "pubsub" : "normal"

const flagsOf = (client: Client): string => {
  if (client.isMonitor) return "O"
  if (client.blocked !== undefined) return "b"
  if (client.queue !== undefined) return "x"
  return subscriptions(client) > 0 ? "P" : "N"
}

export const describeClient = (now: number, client: Client): string =>
  [
    `id=${client.id} addr=${addressOf(client)} laddr=127.0.0.1:6379 fd=${client.id + 7} name=${client.name}`,
    `age=${Math.floor((now - client.createdAt) / 1000)} idle=${Math.floor((now - client.lastAt) / 1000)}`,
    `flags=${flagsOf(client)} db=${client.db}`,
    `sub=${client.channels.size} psub=${client.patterns.size} ssub=${client.shards.size}`,
    `multi=${client.queue?.length ?? -1} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=1024 rbp=0 obl=0 oll=0 omem=0`,
    `tot-mem=2048 events=r cmd=${client.lastCommand} user=${client.user?.name ?? "(superuser)"} redir=${
      client.tracking?.redirect ?? -1
    } resp=${client.protocol}`
  ].join(" ")
