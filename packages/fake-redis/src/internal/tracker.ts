/**
 * CLIENT TRACKING: notifies clients when a key that they have read changes. In broadcast mode, notifies them when a key
 * with one of their prefixes changes.
 */
import type { Client } from "./client.ts"
import type { CommandSpec } from "./commandSpec.ts"
import { keysOf } from "./keySpecs.ts"
import type { BinaryPush } from "./session.ts"

export interface Tracking {
  readonly redirect: number
  /** The prefixes in broadcast mode. If not set, the client is notified of the keys that it has read. */
  readonly prefixes: ReadonlyArray<string> | undefined
  readonly mode: "all" | "optin" | "optout"
  readonly noLoop: boolean
  /** Whether the client that receives the redirected messages has disconnected. */
  isBroken: boolean
  /** The choice that CLIENT CACHING made for the next command. */
  caching: boolean | undefined
}

/** Whether a command counts as reading its keys. Scripts do not, but the commands that they run may. */
export const isReader = ({ flags }: CommandSpec): boolean => flags.has("readonly") && !flags.has("skip_monitor")

type Send = (client: Client, push: BinaryPush) => void

export class Tracker {
  private readonly readers = new Map<string, Set<Client>>()
  private readonly tracking = new Set<Client>()
  private readonly clients: ReadonlyMap<number, Client>
  private readonly send: Send
  /** Messages to the client whose command is running. They are sent after the command's reply. */
  private later: Array<() => void> = []
  /** The keys that have changed in this turn, each with the last client that changed it. */
  private changes = new Map<string, Client | undefined>()

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

  /** Records the keys that a command reads. */
  read(client: Client, spec: CommandSpec, args: ReadonlyArray<string>): void {
    const { tracking } = client
    if (tracking === undefined || tracking.prefixes !== undefined) return
    if (tracking.mode === "optin" && tracking.caching !== true) return
    if (tracking.mode === "optout" && tracking.caching === false) return
    for (const key of keysOf(spec, args)) {
      const readers = this.readers.get(key)
      if (readers === undefined) this.readers.set(key, new Set([client]))
      else readers.add(client)
    }
  }

  changed(key: string, writer: Client | undefined): void {
    const readers = this.readers.get(key)
    // Forget the readers even if tracking is off for all of them: they may turn it on again
    if (readers !== undefined) this.readers.delete(key)
    if (this.tracking.size === 0) return
    this.changes.set(key, writer)
    for (const client of readers ?? []) {
      const { tracking } = client
      if (tracking === undefined || tracking.prefixes !== undefined) continue
      if (!(tracking.noLoop && client === writer)) this.invalidate(client, [key], writer)
    }
  }

  /** Notifies broadcast clients of the keys that have changed in this turn, with one message per prefix. */
  endTurn(): void {
    if (this.changes.size === 0) return
    const changes = Array.from(this.changes).sort(([a], [b]) => a < b ? -1 : 1)
    this.changes.clear()
    for (const client of this.tracking) {
      const { noLoop, prefixes = [] } = client.tracking!
      for (const prefix of prefixes) {
        const keys = changes.filter(([key, writer]) => key.startsWith(prefix) && !(noLoop && client === writer))
        if (keys.length > 0) this.invalidate(client, keys.map(([key]) => key), undefined)
      }
    }
  }

  flushed(writer: Client | undefined): void {
    this.readers.clear()
    this.changes.clear()
    for (const client of this.tracking) this.invalidate(client, undefined, writer)
  }

  /** Sends the messages that were waiting for the reply to the running command. */
  settle(): void {
    for (const send of this.later.splice(0)) send()
  }

  private invalidate(client: Client, keys: ReadonlyArray<string> | undefined, writer: Client | undefined): void {
    const { redirect } = client.tracking!
    const target = redirect === 0 ? client : this.clients.get(redirect)
    if (target === undefined) {
      client.tracking!.isBroken = true
      if (client.protocol === 3) this.send(client, { _tag: "tracking-redir-broken", target: redirect })
      return
    }
    const push: BinaryPush = { _tag: "invalidate", keys }
    const isHeard = target.protocol === 3 || target.channels.has("__redis__:invalidate")
    if (!isHeard) return
    if (target === writer) this.later.push(() => this.send(target, push))
    else this.send(target, push)
  }
}
