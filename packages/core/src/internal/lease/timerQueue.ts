/**
 * Calls functions at set times, in slices, with one fiber and one sleep for all timers in a layer. Used by waiters,
 * timeouts and polls. Leases must end on time, without waiting for a slice, so `dueLeases` has a separate loop.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import * as log from "../log.ts"
import { sleepUntil, supervise } from "./backgroundLoop.ts"
import { IndexedHeap, type Item } from "./indexedHeap.ts"
import { ClockComparison, comparePeriodMillis, instant } from "./instant.ts"
import { Slice } from "./workSlices.ts"

export interface TimerQueue {
  /** Calls `ring` once, at an instant in monotonic milliseconds, unless the returned function is called first. */
  readonly at: (monotonic: number, ring: () => void) => () => void
  /**
   * Like `at`, for a poll. Time during which the machine is suspended counts, so an overdue poll rings within a second
   * after the machine resumes.
   */
  readonly pollAt: (monotonic: number, ring: () => void) => () => void
  /** Whether the layer has closed. Closing rings all remaining timers, and timers set later ring immediately. */
  readonly isClosed: () => boolean
}

interface Timer extends Item {
  readonly ring: () => void
}

export const make: Effect.Effect<TimerQueue, never, Scope.Scope> = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const exact = new IndexedHeap<Timer>()
  const polls = new IndexedHeap<Timer>()
  const changed = Latch.makeUnsafe(false)
  /** Detects suspensions after the first poll was added. */
  let clocks = new ClockComparison(instant(clock))
  let next = Infinity
  let isClosed = false

  const ring = (until: number, slice?: Slice) => {
    for (const heap of [exact, polls]) {
      for (let timer = heap.first; timer !== undefined && timer.key <= until; timer = heap.first) {
        if (slice?.hasRoom() === false) return
        heap.remove(timer)
        timer.ring()
      }
    }
  }

  let previous: Slice | undefined
  const loop = Effect.suspend(() => {
    changed.closeUnsafe()
    const now = instant(clock)
    const slice = previous = new Slice(clock, previous)
    const suspended = clocks.shift(now)
    // If the clock was set back, leave the polls unchanged
    if (suspended > 0) { for (const poll of polls.all()) polls.place(poll, poll.key - suspended) }
    ring(now.monotonic, slice)
    const poll = polls.first === undefined ? Infinity : Math.min(polls.first.key, now.monotonic + comparePeriodMillis)
    next = Math.min(exact.first?.key ?? Infinity, poll)
    return sleepUntil(next, changed)
  })
  const ringAll: Effect.Effect<void> = Effect.catchCause(
    Effect.sync(() => ring(Infinity)),
    (cause) => Effect.andThen(log.error("A timer crashed while its layer closed; calling the others", cause), ringAll)
  )
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      isClosed = true
      return ringAll
    })
  )
  yield* Effect.forkScoped(supervise("The timer queue", Effect.forever(loop)))

  /** Adds a timer. Returns a function that removes it. */
  const place = (heap: IndexedHeap<Timer>, monotonic: number, ring: () => void) => {
    if (isClosed) {
      ring()
      return () => {}
    }
    const timer: Timer = { key: monotonic, position: -1, before: undefined, behind: undefined, ring }
    heap.place(timer, monotonic)
    if (monotonic < next) changed.openUnsafe()
    return () => heap.remove(timer)
  }

  return {
    at: (monotonic, ring) => place(exact, monotonic, ring),
    pollAt: (monotonic, ring) => {
      if (polls.first === undefined) clocks = new ClockComparison(instant(clock))
      return place(polls, monotonic, ring)
    },
    isClosed: () => isClosed
  }
})
