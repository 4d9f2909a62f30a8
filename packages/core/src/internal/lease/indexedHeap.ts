/**
 * A binary heap whose items know their positions, so any item can be removed or moved. Consecutive items with the same
 * key form a chain, and only the first item in a chain is in the heap, so thousands of items due at the same instant
 * cost O(1) each. The heap orders the leases in `dueLeases` and the timers in `timerQueue`.
 */
export interface Item {
  /** Items are sorted by key, smallest first. While an item is in a heap, only `place` changes its key. */
  key: number
  /** The item's index in the heap; -1 if it is in no heap, -2 if it is behind another item in a chain. */
  position: number
  before: Item | undefined
  behind: Item | undefined
}

const outside = -1
const inChain = -2

export class IndexedHeap<I extends Item> {
  private readonly items: Array<I> = []
  /** The last item that was placed, if it is still in the heap: the end of its chain. */
  private newest: Item | undefined

  get first(): I | undefined {
    return this.items[0]
  }

  /** Adds an item, or moves it. */
  place(item: I, key: number): void {
    this.remove(item)
    const { newest } = this
    item.key = key
    this.newest = item
    if (newest !== undefined && newest.key === key) {
      newest.behind = item
      item.before = newest
      item.position = inChain
      return
    }
    item.position = this.items.length
    this.rise(item)
  }

  /** Returns all items, in no particular order. */
  all(): Array<I> {
    const all: Array<I> = []
    for (const head of this.items) {
      for (let item: Item | undefined = head; item !== undefined; item = item.behind) all.push(item as I)
    }
    return all
  }

  remove(item: I): void {
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
    last.position = position
    if (!this.rise(last)) this.sink(last)
  }

  /** Moves the item up until its parent is not larger. Returns whether it moved. */
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
