/**
 * Runs callbacks at specific times of a monotonic clock. Callbacks for the same instant run in the order in which they
 * were set.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"

export interface Timer {
  readonly cancel: () => void
}

export interface Timers {
  /** Monotonic time in milliseconds. */
  readonly now: () => number
  readonly at: (time: number, run: () => void) => Timer
}

/** Larger than rounding errors in instants, and smaller than any intended delay. */
export const tolerance = 1e-6

interface Node {
  readonly time: number
  readonly order: number
  run: (() => void) | undefined
}

const before = (a: Node, b: Node): boolean => a.time < b.time || (a.time === b.time && a.order < b.order)

export class TimerHeap {
  private readonly nodes: Array<Node> = []
  private order = 0
  private live = 0

  /** The number of timers that are set and have not been cancelled. */
  get size(): number {
    return this.live
  }

  add(time: number, run: () => void): Timer {
    const node: Node = { time, order: this.order++, run }
    const { nodes } = this
    let i = nodes.length
    nodes.push(node)
    while (i > 0) {
      const parent = (i - 1) >> 1
      if (!before(node, nodes[parent]!)) break
      nodes[i] = nodes[parent]!
      i = parent
    }
    nodes[i] = node
    this.live++
    return {
      cancel: () => {
        if (node.run === undefined) return
        node.run = undefined
        this.live--
      }
    }
  }

  /** When the earliest timer is due; Infinity if there are no timers. */
  next(): number {
    while (this.nodes.length > 0 && this.nodes[0]!.run === undefined) this.pop()
    return this.nodes[0]?.time ?? Infinity
  }

  /** Removes the earliest timer and returns its callback. */
  take(): (() => void) | undefined {
    if (this.next() === Infinity) return undefined
    const node = this.pop()
    const run = node.run
    node.run = undefined
    this.live--
    return run
  }

  private pop(): Node {
    const { nodes } = this
    const top = nodes[0]!
    const last = nodes.pop()!
    if (nodes.length === 0) return top
    let i = 0
    for (;;) {
      let child = i * 2 + 1
      if (child >= nodes.length) break
      if (child + 1 < nodes.length && before(nodes[child + 1]!, nodes[child]!)) child++
      if (!before(nodes[child]!, last)) break
      nodes[i] = nodes[child]!
      i = child
    }
    nodes[i] = last
    return top
  }
}

/** Timers on the caller's `Clock`. While the scope is open, a single fiber sleeps until the next timer is due. */
export const make: Effect.Effect<Timers, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const heap = new TimerHeap()
  const changed = Latch.makeUnsafe(false)
  const now = () => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
  let next = Infinity
  yield* Effect.forkScoped(Effect.forever(Effect.suspend(() => {
    changed.closeUnsafe()
    while (heap.next() <= now() + tolerance) heap.take()!()
    next = heap.next()
    const left = next - now()
    if (left === Infinity) return changed.await
    if (left <= tolerance) return Effect.void
    return Effect.raceFirst(Effect.sleep(Duration.millis(left)), changed.await)
  })))
  return {
    now,
    at: (time, run) => {
      const timer = heap.add(time, run)
      if (time < next) {
        next = time
        changed.openUnsafe()
      }
      return timer
    }
  }
})
