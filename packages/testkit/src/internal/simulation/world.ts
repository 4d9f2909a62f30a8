/**
 * Virtual time: a heap of timers, and a queue of tasks that must be empty before time advances. Everything runs
 * synchronously and in a fixed order, so the same input always gives the same history.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Scheduler from "effect/Scheduler"
import { type Timer, TimerHeap, type Timers, tolerance } from "./timers.ts"

/** A clock whose sleeps are timers. `wall` is in milliseconds. */
export const clockOf = (timers: Timers, wall: () => number): Clock.Clock => {
  const currentTimeMillisUnsafe = () => Math.floor(wall() + tolerance)
  const currentTimeNanosUnsafe = () => BigInt(Math.round(wall() * 1000)) * 1000n
  const monotonicTimeNanosUnsafe = () => BigInt(Math.round(timers.now() * 1e6))
  return {
    currentTimeMillisUnsafe,
    currentTimeMillis: Effect.sync(currentTimeMillisUnsafe),
    currentTimeNanosUnsafe,
    currentTimeNanos: Effect.sync(currentTimeNanosUnsafe),
    monotonicTimeNanosUnsafe,
    monotonicTimeNanos: Effect.sync(monotonicTimeNanosUnsafe),
    sleep: (duration) => {
      const millis = Duration.toMillis(duration)
      if (millis <= 0) return Effect.void
      return Effect.callback<void>((resume) => {
        if (millis === Infinity) return
        const timer = timers.at(timers.now() + millis, () => resume(Effect.void))
        return Effect.sync(timer.cancel)
      })
    }
  }
}

interface Bucket {
  readonly priority: number
  readonly tasks: Array<() => void>
}

/** The maximum number of task rounds within one instant. Only a busy loop exceeds this. */
const busy = 100_000

/** Thrown if a program is in a busy loop. */
export class Restless extends Error {
  constructor(at: number) {
    super(`the program is still busy at ${at.toFixed(3)} ms: it has a busy loop`)
  }
}

export class World implements Timers {
  private time = 0
  private readonly heap = new TimerHeap()
  private buckets: Array<Bucket> = []
  private running = false
  readonly clock: Clock.Clock
  readonly scheduler: Scheduler.Scheduler

  constructor() {
    this.clock = clockOf(this, this.now)
    this.scheduler = this.makeScheduler((task) => task)
  }

  readonly now = (): number => this.time

  readonly at = (time: number, run: () => void): Timer => this.heap.add(time, run)

  /** The number of timers that are set. */
  get timers(): number {
    return this.heap.size
  }

  readonly enqueue = (task: () => void, priority = 0): void => {
    const { buckets } = this
    let i = buckets.length
    while (i > 0 && buckets[i - 1]!.priority > priority) i--
    if (i > 0 && buckets[i - 1]!.priority === priority) buckets[i - 1]!.tasks.push(task)
    else buckets.splice(i, 0, { priority, tasks: [task] })
  }

  /** Creates a scheduler that passes each task through `wrap` when the task is scheduled. */
  makeScheduler(wrap: (task: () => void) => () => void): Scheduler.Scheduler {
    const dispatcher: Scheduler.SchedulerDispatcher = {
      scheduleTask: (task, priority) => this.enqueue(wrap(task), priority),
      flush: () => this.settle()
    }
    return {
      executionMode: "async",
      shouldYield: (fiber) => fiber.currentOpCount >= 2048,
      makeDispatcher: () => dispatcher
    }
  }

  /** Runs tasks until none are left. */
  settle(): void {
    if (this.running) return
    this.running = true
    try {
      let count = 0
      while (this.buckets.length > 0) {
        const { buckets } = this
        this.buckets = []
        for (const { tasks } of buckets) for (const task of tasks) task()
        if ((count += buckets.length) > busy) throw new Restless(this.time)
      }
    } finally {
      this.running = false
    }
  }

  /** Lets time pass until `end`. */
  runUntil(end: number): void {
    this.settle()
    for (;;) {
      const next = this.heap.next()
      if (next > end) break
      if (next > this.time) this.time = next
      this.heap.take()!()
      this.settle()
    }
    this.time = Math.max(this.time, end)
  }
}
