/** Many that wait for an instant each: one fiber and one timer for all of them. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import { instant } from "./deadline.ts"
import { IndexedHeap, type Item } from "./indexedHeap.ts"
import { sleepUntil } from "./sleepUntil.ts"
import { supervise } from "./supervise.ts"

export interface TimerQueue {
  /** Rings once, at an instant in monotonic milliseconds, unless what this answers is called before. */
  readonly at: (monotonic: number, ring: () => void) => () => void
  /** Nothing rings any more: what was set has rung at the end. */
  readonly isClosed: () => boolean
}

interface Alarm extends Item {
  readonly ring: () => void
}

export const make: Effect.Effect<TimerQueue, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const heap = new IndexedHeap<Alarm>()
  const changed = Latch.makeUnsafe(false)
  let next = Infinity
  let isClosed = false

  const ring = (until: number) => {
    for (let alarm = heap.first; alarm !== undefined && alarm.key <= until; alarm = heap.first) {
      heap.remove(alarm)
      alarm.ring()
    }
  }

  const loop = Effect.suspend(() => {
    changed.closeUnsafe()
    const now = instant(clock).monotonic
    ring(now)
    next = heap.first?.key ?? Infinity
    return sleepUntil(next, changed)
  })
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      isClosed = true
      ring(Infinity)
    })
  )
  yield* Effect.forkScoped(supervise("The clock of the waiters", Effect.forever(loop)))

  return {
    at: (monotonic, ring) => {
      const alarm: Alarm = { key: monotonic, position: -1, before: undefined, behind: undefined, ring }
      heap.place(alarm, monotonic)
      if (monotonic < next) {
        next = monotonic
        changed.openUnsafe()
      }
      return () => heap.remove(alarm)
    },
    isClosed: () => isClosed
  }
})
