/** A set of names that forgets the oldest, because applications may use any number of mutexes. */
const most = 10_000

export class LatestNames {
  private readonly names = new Set<string>()

  has(name: string): boolean {
    return this.names.has(name)
  }

  add(name: string): void {
    this.names.add(name)
    if (this.names.size > most) this.names.delete(this.names.values().next().value!)
  }

  /** Whether it was in the set. */
  delete(name: string): boolean {
    return this.names.delete(name)
  }
}
