/** A set of names that forgets the oldest, because applications may use any number of mutexes. */
import type { MutexName } from "../../MutexName.ts"

const most = 10_000

export class RecentNames {
  private readonly names = new Set<MutexName>()

  has(name: MutexName): boolean {
    return this.names.has(name)
  }

  add(name: MutexName): void {
    this.names.add(name)
    if (this.names.size > most) this.names.delete(this.names.values().next().value!)
  }

  delete(name: MutexName): void {
    this.names.delete(name)
  }
}
