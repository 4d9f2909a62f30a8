/**
 * Divides work on thousands of subjects into slices, so the event loop can run other work between two slices. Timers,
 * renewals and resumed waiters run in slices; the end of a lease does not wait for a slice.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Scheduler from "effect/Scheduler"
import { instant } from "./instant.ts"
import { throwUncaught } from "./observers.ts"

/** Maximum size and duration of a slice, in a process whose event loop turns are short. */
const maxSubjects = 32
const maxMillis = 5

/**
 * A slice may take this share of the time since the previous slice, up to a limit, because the process may have been
 * paused since then.
 */
const share = 0.1
const longestMillis = 100

export class Slice {
  private readonly clock: Clock.Clock
  private readonly end: number
  private readonly size: number
  private subjects = 0
  private endedAt: number | undefined

  /**
   * The limit grows with the time since the previous slice: if other work takes a long time, short slices would never
   * catch up.
   */
  constructor(clock: Clock.Clock, previous?: Slice) {
    this.clock = clock
    const now = instant(clock).monotonic
    const millis = Math.min(longestMillis, Math.max(maxMillis, share * (now - (previous?.endedAt ?? now))))
    this.end = now + millis
    this.size = maxSubjects * millis / maxMillis
  }

  /** Whether the slice has room for another subject. The first one always fits. */
  hasRoom(): boolean {
    const count = this.subjects++
    if (count === 0) return true
    const now = instant(this.clock).monotonic
    if (count < this.size && now < this.end) return true
    this.endedAt ??= now
    return false
  }
}

/**
 * Runs tasks in order: immediately while this turn's slice has room, otherwise in later turns. If a task adds another,
 * that one runs afterwards: nested calls in a long line would overflow the stack.
 */
export class SlicedTasks {
  private readonly clock: Clock.Clock
  /** The layer's dispatcher: the scheduler of a task's fiber may have stopped. */
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private slice: Slice | undefined
  private tasks: Array<() => void> = []
  private done = 0
  private isRunning = false

  constructor(clock: Clock.Clock, dispatcher: Scheduler.SchedulerDispatcher) {
    this.clock = clock
    this.dispatcher = dispatcher
  }

  add(task: () => void): void {
    this.tasks.push(task)
    if (this.slice === undefined) this.begin()
    else if (!this.isRunning) this.run(this.slice)
  }

  private begin(previous?: Slice): void {
    const slice = this.slice = new Slice(this.clock, previous)
    this.run(slice)
    // With priority over the errors that tasks threw, because the scheduler drops what follows an error
    this.dispatcher.scheduleTask(() => {
      this.slice = undefined
      if (this.done < this.tasks.length) this.begin(slice)
    }, -1)
  }

  /** If a task throws, the others still run. */
  private run(slice: Slice): void {
    this.isRunning = true
    while (this.done < this.tasks.length && slice.hasRoom()) {
      try {
        this.tasks[this.done++]!()
      } catch (error) {
        throwUncaught(this.dispatcher, error)
      }
    }
    this.isRunning = false
    if (this.done < this.tasks.length) return
    this.tasks = []
    this.done = 0
  }
}

/** Creates a layer's tasks. */
export const slicedTasks: Effect.Effect<SlicedTasks> = Effect.withFiber((fiber) =>
  Effect.succeed(new SlicedTasks(fiber.getRef(Clock.Clock), fiber.getRef(Scheduler.Scheduler).makeDispatcher()))
)
