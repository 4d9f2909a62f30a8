/** Follows who owns what on the server, from the server's own keys, after each command and expiry. */
import type { Reply } from "./engine/types.ts"
import type { FakeServer, TraceEntry } from "./fakeServer.ts"
import type { Event } from "./history.ts"

/**
 * How to read locks from a server. The testkit knows Redis commands, never somebody's keys.
 *
 * - `ownerKey`: a string key whose value is the owner's id. `tokenKey`: a string key with the fencing token.
 * - `queued`: the id that a command put into the queue, with its place: smaller is earlier.
 * - `released`: the id that a command gave up, owner or waiter.
 * - `channel`: where a waiter listens. `keep`: keys that may remain when all scopes are closed.
 */
export interface LockModel {
  readonly resources: ReadonlyArray<string>
  readonly ownerKey: (resource: string) => string
  readonly tokenKey?: (resource: string) => string
  readonly queued?: (
    args: ReadonlyArray<string>,
    reply: Reply
  ) => { readonly resource: string; readonly id: string; readonly place: number } | undefined
  readonly released?: (
    args: ReadonlyArray<string>,
    reply: Reply
  ) => { readonly resource: string; readonly id: string } | undefined
  readonly channel?: (resource: string, id: string) => string
  readonly keep?: (key: string, expires: boolean) => boolean
}

export interface Owned {
  readonly id: string
  readonly token: number | undefined
  /** Server time in milliseconds, or Infinity. */
  readonly until: number
  /** Virtual time at which it came. */
  readonly since: number
}

export class Locks {
  readonly model: LockModel
  private readonly server: FakeServer
  private readonly now: () => number
  private readonly owners = new Map<string, Owned>()

  constructor(model: LockModel, server: FakeServer, now: () => number) {
    this.model = model
    this.server = server
    this.now = now
  }

  /** The owner whose time is not up. */
  owner(resource: string): Owned | undefined {
    const owned = this.owners.get(resource)
    return owned !== undefined && this.isLive(owned) ? owned : undefined
  }

  /** A string and its deadline, unless that has passed: the server may not have noticed yet. */
  private read(key: string): { readonly value: string; readonly until: number } | undefined {
    const dump = this.server.engine.dump(0, key)
    if (dump?.type !== "string") return undefined
    const until = this.server.engine.keys().find((info) => info.db === 0 && info.key === key)?.expiresAt ?? Infinity
    return this.server.micros() / 1000 < until + 1 ? { value: dump.value, until } : undefined
  }

  private isLive(owned: Owned): boolean {
    return this.server.micros() / 1000 < owned.until + 1
  }

  /** What has changed since the last look. */
  look(command: TraceEntry | undefined): ReadonlyArray<Event> {
    let events: Array<Event> | undefined
    const { model } = this
    for (const resource of model.resources) {
      const key = model.ownerKey(resource)
      if (command !== undefined && !command.args.includes(key)) continue
      const before = this.owners.get(resource)
      const found = this.read(key)
      const id = found?.value
      const until = found?.until ?? Infinity
      const tokenKey = model.tokenKey?.(resource)
      const fence = tokenKey === undefined ? undefined : this.server.engine.dump(0, tokenKey)
      const token = fence?.type === "string" ? Number(fence.value) : undefined
      if (id === before?.id && (before === undefined || token === before.token || this.isLive(before))) {
        if (before !== undefined && before.until !== until) this.owners.set(resource, { ...before, until })
        continue
      }
      const at = this.now()
      if (id === undefined) this.owners.delete(resource)
      else this.owners.set(resource, { id, token, until, since: at })
      events ??= []
      events.push({
        _tag: "Owner",
        at,
        resource,
        from: before?.id,
        since: before?.since ?? at,
        deadline: before?.until ?? Infinity,
        to: id,
        token,
        command
      })
    }
    return events ?? []
  }
}
