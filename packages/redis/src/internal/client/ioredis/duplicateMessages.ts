/** Detects copies of a message from several nodes of a Cluster. */

/** The maximum number of remembered texts. Beyond it, all are forgotten, and a message may be delivered twice. */
const capacity = 1024

export class Copies {
  /** How often each node has sent a text. The maximum is how often it was published. */
  private readonly counts = new Map<string, Map<string, number>>()

  /** Whether this is the first copy. `nodes`: how many will send one. */
  isFirst(node: string, text: string, nodes: number): boolean {
    if (nodes === 1) return true
    const byNode = this.counts.get(text) ?? new Map<string, number>()
    const known = Math.max(0, ...byNode.values())
    const count = (byNode.get(node) ?? 0) + 1
    byNode.set(node, count)
    if (byNode.size >= nodes && [...byNode.values()].every((each) => each === Math.max(known, count))) {
      this.counts.delete(text)
    } else {
      if (this.counts.size >= capacity) this.clear()
      this.counts.set(text, byNode)
    }
    return count > known
  }

  clear(): void {
    this.counts.clear()
  }
}
