/**
 * An undo log of the last write commands, with the previous values of their keys. A failover that loses the last writes
 * rolls them back.
 */
import type { Entry } from "./data/values.ts"
import { cloneEntry } from "./data/values.ts"
import type { Keyspace } from "./keyspace.ts"

interface Before {
  readonly db: Keyspace
  readonly key: string
  readonly entry: Entry | undefined
}

export class Journal {
  private readonly depth: number
  private readonly groups: Array<ReadonlyArray<Before>> = []
  private current: Map<string, Before> | undefined

  constructor(depth: number) {
    this.depth = depth
  }

  begin(): void {
    if (this.depth > 0) this.current = new Map()
  }

  record(db: Keyspace, key: string): void {
    if (this.current === undefined) return
    const slot = `${db.index} ${key}`
    if (this.current.has(slot)) return
    const entry = db.entries.get(key)
    this.current.set(slot, { db, key, entry: entry === undefined ? undefined : cloneEntry(entry) })
  }

  commit(): void {
    const current = this.current
    this.current = undefined
    if (current === undefined || current.size === 0) return
    this.groups.push(Array.from(current.values()))
    if (this.groups.length > this.depth) this.groups.shift()
  }

  rollback(count: number): number {
    let undone = 0
    while (undone < count) {
      const group = this.groups.pop()
      if (group === undefined) break
      for (const { db, entry, key } of group) db.reinstate(key, entry)
      undone++
    }
    return undone
  }

  clear(): void {
    this.groups.length = 0
  }
}
