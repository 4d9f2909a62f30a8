/**
 * CLIENT TRACKING: which clients have read which keys, and who is told that a key has changed.
 */
import type { Client } from "./client.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { keysOf } from "./keySpecs.ts"
import type { BinaryPush } from "./session.ts"

export interface Tracking {
  readonly redirect: number
  /** Of broadcasting; a client without prefixes is told of the keys that it has read. */
  readonly prefixes: ReadonlyArray<string> | undefined
  readonly mode: "all" | "optin" | "optout"
  readonly noLoop: boolean
  /** CLIENT CACHING: concerns the next command. */
  caching: boolean | undefined
}

type Send = (client: Client, push: BinaryPush) => void

export class Tracker {
  private readonly readers = new Map<string, Set<Client>>()
  private readonly tracking = new Set<Client>()
  private readonly clients: ReadonlyMap<number, Client>
  private readonly send: Send
  /** What the client of the running command is told after its reply. */
  private later: Array<() => void> = []

  constructor(clients: ReadonlyMap<number, Client>, send: Send) {
    this.clients = clients
    this.send = send
  }

  enable(client: Client, tracking: Tracking): void {
    client.tracking = tracking
    this.tracking.add(client)
  }

  disable(client: Client): void {
    client.tracking = undefined
    this.tracking.delete(client)
  }

  /** Remembers the keys that a command reads. */
  read(client: Client, spec: CommandSpec, args: ReadonlyArray<string>): void {
    const { tracking } = client
    if (tracking === undefined || !spec.flags.has("readonly") || tracking.prefixes !== undefined) return
    if (tracking.mode === "optin" && tracking.caching !== true) return
    if (tracking.mode === "optout" && tracking.caching === false) return
    for (const key of keysOf(spec, args)) {
      const readers = this.readers.get(key)
      if (readers === undefined) this.readers.set(key, new Set([client]))
      else readers.add(client)
    }
  }

  changed(key: string, by: Client | undefined): void {
    if (this.tracking.size === 0) return
    const readers = this.readers.get(key)
    this.readers.delete(key)
    for (const client of this.tracking) {
      const { noLoop, prefixes } = client.tracking!
      const told = prefixes === undefined
        ? readers?.has(client) === true
        : prefixes.some((prefix) => key.startsWith(prefix))
      if (told && !(noLoop && client === by)) this.tell(client, [key], by)
    }
  }

  flushed(by: Client | undefined): void {
    this.readers.clear()
    for (const client of this.tracking) this.tell(client, undefined, by)
  }

  /** Sends what had to wait for the reply of the running command. */
  settle(): void {
    for (const send of this.later.splice(0)) send()
  }

  private tell(client: Client, keys: ReadonlyArray<string> | undefined, by: Client | undefined): void {
    const { redirect } = client.tracking!
    const target = redirect === 0 ? client : this.clients.get(redirect)
    if (target === undefined) return
    const push: BinaryPush = { _tag: "invalidate", keys }
    const isHeard = target.protocol === 3 || target.channels.has("__redis__:invalidate")
    if (!isHeard) return
    if (target === by) this.later.push(() => this.send(target, push))
    else this.send(target, push)
  }
}
