/** A sorted set: scores by member, and the members sorted by score and then by bytes. */
import { isTable } from "./tables.ts"

export interface Scored {
  readonly member: string
  readonly score: number
}

export class SortedSet {
  readonly scores = new Map<string, number>()
  readonly order: Array<Scored> = []

  get size(): number {
    return this.order.length
  }

  clone(): SortedSet {
    const copy = new SortedSet()
    for (const item of this.order) {
      copy.scores.set(item.member, item.score)
      copy.order.push(item)
    }
    return copy
  }

  /** The index of the first item at or after (score, member). */
  position(score: number, member: string): number {
    const order = this.order
    let low = 0
    let high = order.length
    while (low < high) {
      const middle = (low + high) >>> 1
      const item = order[middle]!
      if (item.score < score || (item.score === score && item.member < member)) low = middle + 1
      else high = middle
    }
    return low
  }

  set(member: string, newScore: number): void {
    // Compact encodings store integer scores as integers, so they have no negative zero.
    const score = newScore === 0 && !isTable(this) ? 0 : newScore
    const old = this.scores.get(member)
    if (old !== undefined) this.order.splice(this.position(old, member), 1)
    this.scores.set(member, score)
    this.order.splice(this.position(score, member), 0, { member, score })
  }

  delete(member: string): boolean {
    const old = this.scores.get(member)
    if (old === undefined) return false
    this.order.splice(this.position(old, member), 1)
    this.scores.delete(member)
    return true
  }

  rank(member: string): number | undefined {
    const score = this.scores.get(member)
    return score === undefined ? undefined : this.position(score, member)
  }

  removeRange(from: number, to: number): number {
    const gone = this.order.splice(from, Math.max(0, to - from))
    for (const item of gone) this.scores.delete(item.member)
    return gone.length
  }
}
