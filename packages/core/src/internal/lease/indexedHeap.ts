/**
 * A binary heap whose items know their places in it, so that any of them can leave or change. Items that come one after
 * another with the same key stand in a row, of which only the first is in the heap: thousands that are due at one
 * instant cost no more than a step each.
 */
export interface Item {
  /** What it is ordered by, the least first. While it is in a heap, only `place` changes it. */
  key: number
  /** Its index, -1 outside, or -2 behind another in a row. */
  position: number
  before: Item | undefined
  behind: Item | undefined
}

const outside = -1
const inRow = -2

export class IndexedHeap<I extends Item> {
  private readonly items: Array<I> = []
  /** What came last, if it is still here: the last of its row. */
  private newest: Item | undefined

  get first(): I | undefined {
    return this.items[0]
  }

  /** Puts an item in, or moves it to where it belongs now. */
  place(item: I, key: number): void {
    this.take(item)
    const { newest } = this
    item.key = key
    this.newest = item
    if (newest !== undefined && newest.key === key) {
      newest.behind = item
      item.before = newest
      item.position = inRow
      return
    }
    item.position = this.items.length
    this.items.push(item)
    this.rise(item)
  }

  remove(item: I): void {
    this.take(item)
  }

  private take(item: I): void {
    const { before, behind, position } = item
    if (position === outside) return
    item.position = outside
    item.before = undefined
    item.behind = undefined
    if (this.newest === item) this.newest = before
    if (behind !== undefined) behind.before = before
    if (before !== undefined) {
      before.behind = behind
    } else if (behind !== undefined) {
      this.items[position] = behind as I
      behind.position = position
    } else {
      this.leave(item, position)
    }
  }

  private leave(item: I, position: number): void {
    const last = this.items.pop()!
    if (last === item) return
    this.items[position] = last
    last.position = position
    if (!this.rise(last)) this.sink(last)
  }

  private rise(item: I): boolean {
    const { items } = this
    const start = item.position
    let at = start
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = items[above]!
      if (parent.key <= item.key) break
      items[at] = parent
      parent.position = at
      at = above
    }
    items[at] = item
    item.position = at
    return at !== start
  }

  private sink(item: I): void {
    const { items } = this
    let at = item.position
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      if (below + 1 < items.length && items[below + 1]!.key < items[below]!.key) below++
      const child = items[below]!
      if (child.key >= item.key) break
      items[at] = child
      child.position = at
      at = below
    }
    items[at] = item
    item.position = at
  }
}
