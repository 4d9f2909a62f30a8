/** Tracks the owner of each resource by reading the server's keys after each command and each expiry. */
import type { Reply } from "@effect-simba/fake-redis/Engine"
import type { FakeServer, TraceEntry } from "../client/server.ts"
import type { Event } from "../simulation/history.ts"

/**
 * Describes how to read locks from a server. The testkit knows Redis commands, but not the keys that an implementation
 * uses. An id must not be reused: once it is released, checkers ignore its requests.
 *
 * - `ownerKey`: a string key whose value is the owner's id. `tokenKey`: a string key whose value starts with the
 *   fencing token.
 * - `asked`: the ids for which a command requests a resource.
 * - `queued`: the ids that a command put into the queue, with their places. Smaller places come first.
 * - `released`: the ids that a command released, both owners and waiters. For a null reply, the ids that the command
 *   would release.
 * - `forced`: the owners from whom a command forcibly took a resource.
 * - `channel` (default: none): the channel to which a live waiter is subscribed.
 * - `keep`: whether a key may remain after all scopes are closed.
 * - `line` (default: the id): groups ids that may pass each other, such as those in the same process.
 * - `identify` (default: the value): converts the value of an owner key to the owner's id.
 * - `spareTokens` (default: none): how many additional tokens the grant with this token reserves for successive holders
 *   under the same id.
 * - `fencedKey`: a string key to which holders write their tokens, and which rejects stale tokens.
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

/** None, one or several, because a single command may make several changes. */
export type Parties<P extends Party = Party> = P | ReadonlyArray<P> | undefined

const none: ReadonlyArray<never> = []

export const all = <P extends Party>(parties: Parties<P>): ReadonlyArray<P> =>
  parties === undefined ? none : Array.isArray(parties) ? parties as ReadonlyArray<P> : [parties as P]

export interface Owned {
  readonly id: string
  readonly token: number | undefined
  /** When the lease ends, in milliseconds of server time, or Infinity. */
  readonly until: number
  /** The virtual time of the grant. */
  readonly since: number
}

export class OwnershipTracker {
  readonly model: LockModel
  private readonly server: FakeServer
  private readonly now: () => number
  private readonly owners = new Map<string, Owned>()
  /** The index of each resource, by owner key. There may be thousands of keys, but a command names only a few. */
  private readonly positions: ReadonlyMap<string, number>

  constructor(model: LockModel, server: FakeServer, now: () => number) {
    this.model = model
    this.positions = new Map(model.resources.map((resource, index) => [model.ownerKey(resource), index]))
    this.server = server
    this.now = now
  }

  /** Returns the owner, unless its lease has expired. */
  owner(resource: string): Owned | undefined {
    const owned = this.owners.get(resource)
    return owned !== undefined && this.isLive(owned) ? owned : undefined
  }

  /** Returns the owner. An owner whose lease has expired is still returned until it has a successor. */
  lastOwner(resource: string): Owned | undefined {
    return this.owners.get(resource)
  }

  /**
   * Reads a string and its deadline. After the deadline, returns `undefined` even if the server has not removed the key
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

  /** Returns the resources whose owner may have changed, in order. */
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
   * Returns the changes since the previous call. `cause` is the command that has run, or `expiry`. Without a cause, all
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
