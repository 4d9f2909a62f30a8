/** The fibers of one layer that wait for one mutex, first come, first served. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"
import type { StoreError } from "../../SimbaError.ts"
import type { SlicedTasks } from "../lease/slices.ts"
import type { Attempt } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"

type End = Exit.Exit<HeldLease, StoreError>

export class LocalWaiter {
  readonly attempt: Attempt
  /** Monotonic milliseconds. */
  readonly since: number
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private readonly tasks: SlicedTasks
  private resume: ((end: End) => void) | undefined
  private end: End | undefined
  /** The lease that it was granted, even before its fiber has resumed. */
  granted: HeldLease | undefined
  isInLine = true
  next: LocalWaiter | undefined
  previous: LocalWaiter | undefined

  constructor(attempt: Attempt, since: number, tasks: SlicedTasks, dispatcher: Scheduler.SchedulerDispatcher) {
    this.attempt = attempt
    this.since = since
    this.tasks = tasks
    this.dispatcher = dispatcher
  }

  readonly outcome: Effect.Effect<HeldLease, StoreError> = Effect.callback((resume) => {
    if (this.end === undefined) this.resume = resume
    else resume(this.end)
  })

  /**
   * A fiber that is granted the mutex continues before this returns, unless many do so in this turn of the event loop.
   */
  conclude(end: End): void {
    this.end = end
    if (this.resume === undefined) return
    if (Exit.isSuccess(end)) this.continue()
    else this.dispatcher.scheduleTask(() => this.continue(), 0)
  }

  private continue(): void {
    this.tasks.add(() => this.resume!(this.end!))
  }
}

export class LocalWaiterList {
  first: LocalWaiter | undefined
  last: LocalWaiter | undefined

  push(waiter: LocalWaiter): void {
    waiter.previous = this.last
    if (this.last === undefined) this.first = waiter
    else this.last.next = waiter
    this.last = waiter
  }

  unshift(waiter: LocalWaiter): void {
    waiter.next = this.first
    if (this.first === undefined) this.last = waiter
    else this.first.previous = waiter
    this.first = waiter
  }

  remove(waiter: LocalWaiter): void {
    if (!waiter.isInLine) return
    const { next, previous } = waiter
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.last = previous
    else next.previous = previous
    waiter.next = waiter.previous = undefined
    waiter.isInLine = false
  }
}
