/** Tracks the owner of each resource from the server's keys, after each command and each expiry. */
import type { Reply } from "@effect-simba/fake-redis/Engine"
import type { FakeServer, TraceEntry } from "../client/server.ts"
import type { Event } from "../simulation/history.ts"

/**
 * Describes how to read locks from a server. The testkit knows Redis commands, but not the keys of an implementation.
 *
 * - `ownerKey`: a string key whose value is the owner's id. `tokenKey`: a string key that begins with the fencing
 *   token.
 * - `asked`: the ids for which a command requests a resource.
 * - `queued`: the ids that a command put into the queue, with their places. Smaller places are earlier.
 * - `released`: the ids that a command released, whether owners or waiters. For a null reply, the ids that the command
 *   would release.
 * - `forced`: the owners from whom a command took a resource by force.
 * - `channel`: the channel of a waiter. `keep`: whether a key may remain when all scopes are closed.
 * - `line` (default: the id): groups ids, such as those of one process, that may pass each other.
 * - `identify` (default: the value): the id of the owner that the value of an owner key stands for.
 * - `spareTokens` (default: none): how many more tokens the grant of this token reserves for successive holders under
 *   the same id.
 * - `fencedKey`: a string key to which holders write their tokens, and which refuses stale ones.
 */
export interface LockModel {
  readonly resources: ReadonlyArray<string>
  readonly ownerKey: (resource: string) => string
  readonly tokenKey?: (resource: string) => string
  readonly asked?: (args: ReadonlyArray<string>, reply: Reply) => Parties<Party>
  readonly queued?: (args: ReadonlyArray<string>, reply: Reply) => Parties<Party & { readonly place: number }>
  readonly released?: (args: ReadonlyArray<string>, reply: Reply) => Parties<Party>
  readonly forced?: (args: ReadonlyArray<string>, reply: Reply) => Parties<Party>
  readonly channel?: (resource: string, id: string) => string
  readonly keep?: (key: string, expires: boolean) => boolean
  readonly line?: (id: string) => string
  readonly identify?: (resource: string, value: string) => string
  readonly spareTokens?: (token: number) => number
  readonly fencedKey?: (resource: string) => string
}

/** An id and the resource that it uses. */
export interface Party {
  readonly resource: string
  readonly id: string
}

/** None, one or several, because one command may make several changes. */
export type Parties<P extends Party = Party> = P | ReadonlyArray<P> | undefined

const none: ReadonlyArray<never> = []

export const all = <P extends Party>(parties: Parties<P>): ReadonlyArray<P> =>
  parties === undefined ? none : Array.isArray(parties) ? parties as ReadonlyArray<P> : [parties as P]

export interface Owned {
  readonly id: string
  readonly token: number | undefined
  /** When the lease ends in server time, in milliseconds, or Infinity. */
  readonly until: number
  /** Virtual time of the grant. */
  readonly since: number
}

export class OwnershipTracker {
  readonly model: LockModel
  private readonly server: FakeServer
  private readonly now: () => number
  private readonly owners = new Map<string, Owned>()
  /** The index of each resource, by its owner key. A command names only a few of possibly thousands of keys. */
  private readonly positions: ReadonlyMap<string, number>

  constructor(model: LockModel, server: FakeServer, now: () => number) {
    this.model = model
    this.positions = new Map(model.resources.map((resource, index) => [model.ownerKey(resource), index]))
    this.server = server
    this.now = now
  }

  /** The owner, unless its lease has expired. */
  owner(resource: string): Owned | undefined {
    const owned = this.owners.get(resource)
    return owned !== undefined && this.isLive(owned) ? owned : undefined
  }

  /** The owner. Returns an owner whose lease has expired until it has a successor. */
  lastOwner(resource: string): Owned | undefined {
    return this.owners.get(resource)
  }

  /**
   * Reads a string and its deadline. Returns `undefined` after the deadline, even if the server has not removed the key
   * yet.
   */
  private read(key: string): { readonly value: string; readonly until: number } | undefined {
    const dump = this.server.engine.dump(0, key)
    if (dump?.type !== "string") return undefined
    const until = this.server.engine.expiresAt(0, key) ?? Infinity
    return this.server.micros() / 1000 < until + 1 ? { value: dump.value, until } : undefined
  }

  private isLive(owned: Owned): boolean {
    return this.server.micros() / 1000 < owned.until + 1
  }

  /** The resources whose owner may have changed, in order. */
  private touched(cause: TraceEntry | "expiry" | undefined): Iterable<string> {
    const { ownerKey, resources } = this.model
    if (cause === undefined) return resources
    const found = new Set<number>()
    const add = (key: string) => {
      const position = this.positions.get(key)
      if (position !== undefined) found.add(position)
    }
    if (cause === "expiry") {
      const now = this.server.micros() / 1000
      for (const [resource, { until }] of this.owners) if (until <= now) add(ownerKey(resource))
    } else for (const arg of cause.args) add(arg)
    return found.size === 0 ? none : [...found].sort((a, b) => a - b).map((position) => resources[position]!)
  }

  /**
   * Returns the changes since the previous call. `cause` is the command that has run, or `expiry`. Without it, all
   * resources are checked.
   */
  changesAfter(cause: TraceEntry | "expiry" | undefined): ReadonlyArray<Event> {
    let events: Array<Event> | undefined
    const { model } = this
    const command = cause === "expiry" ? undefined : cause
    for (const resource of this.touched(cause)) {
      const key = model.ownerKey(resource)
      const before = this.owners.get(resource)
      const found = this.read(key)
      const id = found === undefined ? undefined : model.identify?.(resource, found.value) ?? found.value
      const until = found?.until ?? Infinity
      const tokenKey = model.tokenKey?.(resource)
      const fence = tokenKey === undefined ? undefined : this.server.engine.dump(0, tokenKey)
      const token = fence?.type === "string" ? parseInt(fence.value, 10) : undefined
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
