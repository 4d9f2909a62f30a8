/**
 * An undo log for the last write commands: the previous values of their keys, and the databases that they swapped. A
 * failover that loses these writes rolls them back.
 */
import { cloneEntry } from "./data/values.ts"
import type { Keyspace } from "./keyspace.ts"

type Undo = () => void

export class Journal {
  private readonly depth: number
  private readonly groups: Array<ReadonlyArray<Undo>> = []
  /** The steps that undo the current command. Each restores a key to its value before the command. */
  private current: Map<string | symbol, Undo> | undefined

  constructor(depth: number) {
    this.depth = depth
  }

  begin(): void {
    if (this.depth > 0) this.current = new Map()
  }

  record(db: Keyspace, key: string): void {
    if (this.current === undefined) return
    const slot = `${db.id} ${key}`
    if (this.current.has(slot)) return
    const entry = db.entries.get(key)
    const before = entry === undefined ? undefined : cloneEntry(entry)
    this.current.set(slot, () => db.reinstate(key, before))
  }

  recordSwap(undo: Undo): void {
    this.current?.set(Symbol("swap"), undo)
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
      for (const undo of [...group].reverse()) undo()
      undone++
    }
    return undone
  }

  clear(): void {
    this.groups.length = 0
  }
}
