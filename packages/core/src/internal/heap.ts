/** A binary heap whose items know their places in it, so that any of them can leave or change. */
export interface Item {
  /** What it is ordered by, the least first. While it is in a heap, only `place` changes it. */
  key: number
  /** Its index, or -1 outside. */
  position: number
}

export class Heap<I extends Item> {
  private readonly items: Array<I> = []

  get first(): I | undefined {
    return this.items[0]
  }

  /** Puts an item in, or moves it to where it belongs now. */
  place(item: I, key: number): void {
    item.key = key
    if (item.position === -1) {
      item.position = this.items.length
      this.items.push(item)
    }
    if (!this.rise(item)) this.sink(item)
  }

  remove(item: I): void {
    const { position } = item
    if (position === -1) return
    item.position = -1
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
