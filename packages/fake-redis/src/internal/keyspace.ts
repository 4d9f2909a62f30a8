/**
 * One database: its keys, and their lazy and active expiry. Commands access values only through `read` and `write`.
 * These methods expire keys and record writes in the undo journal.
 */
import type { Entry, TypeName, ValueTypes } from "./data/values.ts"
import { cloneEntry } from "./data/values.ts"
import { Fail, WRONGTYPE } from "./reply.ts"

export const DATABASES = 16

export interface KeyspaceHost {
  /** Server time of the running command, in milliseconds. */
  readonly now: number
  /** Draws the time, in microseconds, at which active expiry removes a key with this deadline in milliseconds. */
  readonly drawActive: (deadline: number) => number
  readonly journal: (db: Keyspace, key: string) => void
  readonly expired: (db: Keyspace, key: string) => void
  readonly missed: (db: Keyspace, key: string) => void
  readonly created: (db: Keyspace, key: string) => void
  readonly removed: (db: Keyspace, key: string, type: TypeName) => void
}

interface HeapNode {
  readonly at: number
  readonly key: string
}

export class Keyspace {
  /** The database number, which changes with SWAPDB. */
  index: number
  readonly id: number
  entries = new Map<string, Entry>()
  private heap: Array<HeapNode> = []
  private readonly host: KeyspaceHost

  constructor(host: KeyspaceHost, index: number) {
    this.host = host
    this.index = this.id = index
  }

  isExpired(entry: Entry): boolean {
    return this.host.now > entry.expiresAt
  }

  /** Returns the entry. Removes it instead if it has expired. */
  peek(key: string): Entry | undefined {
    const entry = this.entries.get(key)
    if (entry === undefined) return undefined
    if (this.host.now > entry.expiresAt) {
      this.expire(key)
      return undefined
    }
    return entry
  }

  expire(key: string): void {
    this.host.journal(this, key)
    const type = this.entries.get(key)!.type
    this.entries.delete(key)
    this.host.removed(this, key, type)
    this.host.expired(this, key)
  }

  read(key: string): Entry | undefined {
    const entry = this.inspect(key)
    if (entry !== undefined) entry.accessedAt = this.host.now
    return entry
  }

  /** Like `read`, but does not reset the key's idle time: for commands that inspect the key itself. */
  inspect(key: string): Entry | undefined {
    const entry = this.peek(key)
    if (entry === undefined) this.host.missed(this, key)
    return entry
  }

  readAs<T extends TypeName>(key: string, type: T): Entry<T> | undefined {
    const entry = this.read(key)
    if (entry !== undefined && entry.type !== type) throw new Fail(WRONGTYPE)
    return entry as Entry<T> | undefined
  }

  write(key: string): Entry | undefined {
    const entry = this.peek(key)
    if (entry !== undefined) {
      this.host.journal(this, key)
      entry.accessedAt = this.host.now
    }
    return entry
  }

  writeAs<T extends TypeName>(key: string, type: T): Entry<T> | undefined {
    const entry = this.peek(key)
    if (entry === undefined) return undefined
    if (entry.type !== type) throw new Fail(WRONGTYPE)
    this.host.journal(this, key)
    entry.accessedAt = this.host.now
    return entry as Entry<T>
  }

  /** Stores a value under a key, replacing its old value and deadline. */
  put<T extends TypeName>(key: string, type: T, value: ValueTypes[T], expiresAt = Infinity): Entry<T> {
    const old = this.peek(key)
    this.host.journal(this, key)
    // Reuse the old value's heap node, or nodes would pile up for a key that is set repeatedly
    const heapAt = old?.heapAt ?? Infinity
    const entry: Entry<T> = { type, value, expiresAt: Infinity, activeAt: Infinity, heapAt, accessedAt: this.host.now }
    this.entries.set(key, entry as Entry)
    if (expiresAt !== Infinity) this.setExpiry(key, entry as Entry, expiresAt)
    if (old === undefined || old.type !== type) {
      if (old !== undefined) this.host.removed(this, key, old.type)
      this.host.created(this, key)
    }
    return entry
  }

  remove(key: string): boolean {
    const entry = this.entries.get(key)
    if (entry === undefined) return false
    this.host.journal(this, key)
    this.entries.delete(key)
    this.host.removed(this, key, entry.type)
    return true
  }

  setExpiry(key: string, entry: Entry, expiresAt: number): void {
    this.host.journal(this, key)
    entry.expiresAt = expiresAt
    if (expiresAt === Infinity) {
      entry.activeAt = Infinity
      return
    }
    entry.activeAt = this.host.drawActive(expiresAt)
    // A renewal only postpones the deadline, so keep the earlier node. It is rescheduled when it is due.
    if (entry.activeAt < entry.heapAt) this.schedule(key, entry)
  }

  private schedule(key: string, entry: Entry): void {
    entry.heapAt = entry.activeAt
    push(this.heap, { at: entry.activeAt, key })
    if (this.heap.length > 1000 && this.heap.length > 2 * this.entries.size) this.compact()
  }

  /** Drops the heap nodes of deleted keys. */
  private compact(): void {
    this.heap = []
    for (const [key, { heapAt }] of this.entries) if (heapAt !== Infinity) push(this.heap, { at: heapAt, key })
  }

  /** The number of nodes in the heap, including stale ones, such as those for deleted keys. */
  get scheduled(): number {
    return this.heap.length
  }

  /** The earliest time, in microseconds, at which active expiry removes a key. */
  nextActive(): number | undefined {
    for (;;) {
      const top = this.heap[0]
      if (top === undefined) return undefined
      const entry = this.entries.get(top.key)
      if (entry !== undefined && entry.heapAt === top.at) {
        if (entry.activeAt === top.at) return top.at
        entry.heapAt = Infinity
        pop(this.heap)
        if (entry.activeAt !== Infinity) this.schedule(top.key, entry)
      } else pop(this.heap)
    }
  }

  /**
   * Removes the node that `nextActive` found, and returns its key. The caller must set the entry's `heapAt` to
   * Infinity, because the entry then has no node.
   */
  takeActive(): string {
    return pop(this.heap)!.key
  }

  clear(): void {
    this.entries = new Map()
    this.heap = []
  }

  /** Restores an entry from the journal or a snapshot, without notifying anyone. */
  reinstate(key: string, entry: Entry | undefined): void {
    if (entry === undefined) {
      this.entries.delete(key)
      return
    }
    const copy = cloneEntry(entry)
    this.entries.set(key, copy)
    if (copy.activeAt !== Infinity) this.schedule(key, copy)
  }
}

const before = (a: HeapNode, b: HeapNode): boolean => a.at < b.at || (a.at === b.at && a.key < b.key)

const push = (heap: Array<HeapNode>, node: HeapNode): void => {
  let i = heap.length
  heap.push(node)
  while (i > 0) {
    const parent = (i - 1) >> 1
    if (!before(node, heap[parent]!)) break
    heap[i] = heap[parent]!
    i = parent
  }
  heap[i] = node
}

const pop = (heap: Array<HeapNode>): HeapNode | undefined => {
  const top = heap[0]
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return top
  let i = 0
  for (;;) {
    let child = i * 2 + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++
    if (!before(heap[child]!, last)) break
    heap[i] = heap[child]!
    i = child
  }
  heap[i] = last
  return top
}
