/** One timer for many ends: it rings at the earliest. */
import type { TimerQueue } from "./timerQueue.ts"

export class EarliestTimer {
  private end = Infinity
  private cancel: (() => void) | undefined
  private readonly timers: TimerQueue
  private readonly ring: (end: number) => void

  constructor(timers: TimerQueue, ring: (end: number) => void) {
    this.timers = timers
    this.ring = ring
  }

  /** In monotonic milliseconds. */
  at(end: number): void {
    if (end >= this.end) return
    this.stop()
    this.end = end
    this.cancel = this.timers.at(end, () => {
      this.end = Infinity
      if (!this.timers.isClosed()) this.ring(end)
    })
  }

  stop(): void {
    this.end = Infinity
    this.cancel?.()
    this.cancel = undefined
  }
}
