/** What a layer remembers about mutexes and leases. Used by `localQueues` and `heldLeases`. */

const most = 10_000

/**
 * A set of names with a size limit, because applications may use any number of mutexes. When it is full, the oldest
 * name is dropped.
 */
export class LatestNames {
  private readonly names = new Set<string>()

  has(name: string): boolean {
    return this.names.has(name)
  }

  add(name: string): void {
    this.names.add(name)
    if (this.names.size > most) this.names.delete(this.names.values().next().value!)
  }

  /** Returns whether the name was in the set. */
  delete(name: string): boolean {
    return this.names.delete(name)
  }
}
