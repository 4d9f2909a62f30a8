/** Subscriptions to channels, patterns and shard channels, and the delivery of published messages. */
import type { Client } from "./client.ts"
import { globMatch } from "./glob.ts"
import type { BinaryPush } from "./session.ts"

export type Kind = "channels" | "patterns" | "shards"

const KINDS: ReadonlyArray<Kind> = ["channels", "patterns", "shards"]

export class Subscribers {
  readonly channels = new Map<string, Set<Client>>()
  readonly patterns = new Map<string, Set<Client>>()
  readonly shards = new Map<string, Set<Client>>()
  private readonly push: (client: Client, push: BinaryPush) => void

  constructor(push: (client: Client, push: BinaryPush) => void) {
    this.push = push
  }

  add(kind: Kind, name: string, client: Client): void {
    client[kind].add(name)
    const all = this[kind].get(name)
    if (all === undefined) this[kind].set(name, new Set([client]))
    else all.add(client)
  }

  remove(kind: Kind, name: string, client: Client): void {
    if (!client[kind].delete(name)) return
    const all = this[kind].get(name)
    all?.delete(client)
    if (all?.size === 0) this[kind].delete(name)
  }

  removeAll(client: Client): void {
    for (const kind of KINDS) {
      for (const name of Array.from(client[kind])) this.remove(kind, name, client)
    }
  }

  /** Publishes a message to subscribers of the channel and of matching patterns. Returns the number of deliveries. */
  publish(channel: string, message: string): number {
    let count = this.send({ _tag: "message", channel, message }, this.channels.get(channel))
    for (const [pattern, clients] of this.patterns) {
      if (globMatch(pattern, channel)) count += this.send({ _tag: "pmessage", pattern, channel, message }, clients)
    }
    return count
  }

  publishSharded(channel: string, message: string): number {
    return this.send({ _tag: "smessage", channel, message }, this.shards.get(channel))
  }

  private send(push: BinaryPush, clients: ReadonlySet<Client> | undefined): number {
    for (const client of clients ?? []) this.push(client, push)
    return clients?.size ?? 0
  }
}
