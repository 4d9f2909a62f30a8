/**
 * Detects copies of a message from several Cluster nodes, for `clusterSubscriptions`.
 *
 * That module subscribes to a channel without a hash tag on every primary, because a script counts only the subscribers
 * on its own node. Nodes forward messages to each other, so each of these subscriptions receives every message.
 */

/**
 * The maximum number of remembered texts. Beyond it, all of them are forgotten, and a message may be delivered twice.
 */
const capacity = 1024

/** The copies received by one subscription to a channel. */
export class Copies {
  /** How many times each node has sent a text. The largest count is how many times the text was published. */
  private readonly counts = new Map<string, Map<string, number>>()

  /** Returns whether this is the first copy of a message. `nodes` is the number of subscribed nodes. */
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

  /** Forgets all copies. Called after a gap, because the copies from some nodes may never arrive. */
  clear(): void {
    this.counts.clear()
  }
}
