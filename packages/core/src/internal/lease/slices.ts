/** Work on thousands of subjects at once goes in slices, so that the event loop has its turns in between. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scheduler from "effect/Scheduler"
import { instant } from "./instant.ts"
import { throwUncaught } from "./observers.ts"

/** Subjects of one slice, and its milliseconds. */
const maxSubjects = 32
const maxMillis = 5

export class Slice {
  private readonly clock: Clock.Clock
  private readonly end: number
  private subjects = 0

  constructor(clock: Clock.Clock) {
    this.clock = clock
    this.end = instant(clock).monotonic + maxMillis
  }

  /** Whether one subject more belongs to the slice; the first always does. */
  hasRoom(): boolean {
    const count = this.subjects++
    return count === 0 || (count < maxSubjects && instant(this.clock).monotonic < this.end)
  }
}

/**
 * Tasks that run in their order: at once while the slice of this turn has room, else in further
 * turns. One never runs inside the other: a stack would not hold a long line.
 */
export class SlicedTasks {
  private readonly clock: Clock.Clock
  /** Of the layer: the fiber of a task may have a scheduler that never runs again. */
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

  /** Lets the fiber go on when its slice has come. */
  readonly pass: Effect.Effect<void> = Effect.callback((resume) => this.add(() => resume(Effect.void)))

  private begin(): void {
    const slice = this.slice = new Slice(this.clock)
    this.dispatcher.scheduleTask(() => {
      this.slice = undefined
      if (this.done < this.tasks.length) this.begin()
    }, 0)
    this.run(slice)
  }

  /** A task that throws holds up no other. */
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
