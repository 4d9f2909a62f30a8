/**
 * Tracks blocked clients, in order of arrival, and the keys that they wait for. Decides which client is served when a
 * key becomes ready. While a command runs, ready keys are only marked, and the clients are served afterwards, so that
 * scripts and transactions stay atomic.
 */
import type { Client } from "./client.ts"
import type { Context } from "./context.ts"
import type { TypeName } from "./data/values.ts"
import type { Keyspace } from "./keyspace.ts"
import { double } from "./numbers.ts"
import type { Value } from "./reply.ts"
import { fail } from "./reply.ts"

/** What a blocked command waits for, and how it replies. */
export interface Wait {
  readonly type: TypeName
  readonly keys: ReadonlyArray<string>
  /** Server time in microseconds, or Infinity. */
  readonly deadline: number
  /**
   * The reply if the key can serve the client now. Use the context's database, because SWAPDB may have replaced the
   * original one.
   */
  readonly serve: (context: Context, key: string) => Value | undefined
  /** The reply after a timeout. */
  readonly timedOut: Value
  /** The reply if the key vanishes or changes type. If not set, the client keeps waiting. */
  readonly vanished?: () => Value
}

export interface Blocked extends Wait {
  readonly client: Client
  readonly db: number
  readonly reply: (value: Value) => void
}

interface Ready {
  readonly db: Keyspace
  readonly key: string
}

export class BlockedClients {
  readonly all = new Set<Blocked>()
  private readonly byKey = new Map<string, Array<Blocked>>()
  private ready: Array<Ready> = []
  private readonly marked = new Set<string>()

  add(blocked: Blocked): void {
    blocked.client.blocked = blocked
    this.all.add(blocked)
    for (const key of new Set(blocked.keys)) {
      const slot = `${blocked.db} ${key}`
      const queue = this.byKey.get(slot)
      if (queue === undefined) this.byKey.set(slot, [blocked])
      else queue.push(blocked)
    }
  }

  remove(blocked: Blocked): void {
    if (!this.all.delete(blocked)) return
    blocked.client.blocked = undefined
    for (const key of new Set(blocked.keys)) {
      const slot = `${blocked.db} ${key}`
      const queue = this.byKey.get(slot)!
      queue.splice(queue.indexOf(blocked), 1)
      if (queue.length === 0) this.byKey.delete(slot)
    }
  }

  mark(db: Keyspace, key: string): void {
    if (this.byKey.size === 0) return
    const slot = `${db.index} ${key}`
    if (!this.byKey.has(slot) || this.marked.has(slot)) return
    this.marked.add(slot)
    this.ready.push({ db, key })
  }

  markAll(db: Keyspace): void {
    for (const slot of this.byKey.keys()) {
      const at = slot.indexOf(" ")
      if (Number(slot.slice(0, at)) === db.index) this.mark(db, slot.slice(at + 1))
    }
  }

  get pending(): boolean {
    return this.ready.length > 0
  }

  /** Serves every client that can be served. A served client's writes may make more keys ready. */
  serveReady(run: (blocked: Blocked, serve: (context: Context) => Value | undefined) => void): void {
    while (this.ready.length > 0) {
      const batch = this.ready
      this.ready = []
      this.marked.clear()
      for (const { db, key } of batch) {
        const queue = this.byKey.get(`${db.index} ${key}`)
        if (queue === undefined) continue
        for (const blocked of queue.slice()) {
          if (!this.all.has(blocked)) continue
          run(
            blocked,
            (context) => db.peek(key)?.type === blocked.type ? blocked.serve(context, key) : blocked.vanished?.()
          )
        }
      }
    }
  }

  nextDeadline(): number | undefined {
    let next = Infinity
    for (const blocked of this.all) next = Math.min(next, blocked.deadline)
    return next === Infinity ? undefined : next
  }

  /** The clients whose timeouts have passed, earliest first. */
  due(micros: number): Array<Blocked> {
    return Array.from(this.all).filter((blocked) => blocked.deadline <= micros)
      .sort((a, b) => a.deadline - b.deadline || a.client.id - b.client.id)
  }

  clear(): void {
    for (const blocked of Array.from(this.all)) this.remove(blocked)
    this.ready = []
    this.marked.clear()
  }
}

/** Converts the timeout argument of a blocking command from seconds to a deadline in microseconds. */
export const blockUntil = (text: string, micros: number): number => {
  const millis = Math.ceil(double(text, "ERR timeout is not a float or out of range") * 1000)
  // In Redis, a large number of milliseconds overflows to a negative one
  if (millis < 0 || millis >= 2 ** 63) return fail("ERR timeout is negative")
  return millis === 0 ? Infinity : micros + millis * 1000
}
