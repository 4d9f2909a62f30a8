/**
 * A fiber that wants a mutex, and the list of waiting fibers. `acquire` creates a waiter, `localQueue` serves it, and
 * `linePlan` decides its phase.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"
import type { StoreError } from "../../SimbaError.ts"
import type { SlicedTasks } from "../lease/workSlices.ts"
import type { Attempt } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { FiberPhase, LineFiber } from "./linePlan.ts"

type End = Exit.Exit<HeldLease, StoreError>

export class LocalWaiter implements LineFiber {
  readonly attempt: Attempt
  phase: FiberPhase = "new"
  /** When the fiber joined the line, in monotonic milliseconds. */
  since = 0
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private readonly tasks: SlicedTasks
  private resume: ((end: End) => void) | undefined
  private end: End | undefined
  private granted: HeldLease | undefined
  next: LocalWaiter | undefined
  previous: LocalWaiter | undefined

  constructor(attempt: Attempt, tasks: SlicedTasks, dispatcher: Scheduler.SchedulerDispatcher) {
    this.attempt = attempt
    this.tasks = tasks
    this.dispatcher = dispatcher
  }

  /** The lease of a `granted` fiber. */
  get lease(): HeldLease {
    if (this.granted === undefined) throw new Error(`a fiber that is ${this.phase} has no lease`)
    return this.granted
  }

  set lease(lease: HeldLease) {
    this.granted = lease
  }

  /** Waits for the result, which `conclude` sets. */
  await(): Effect.Effect<HeldLease, StoreError> {
    return Effect.callback((resume) => {
      if (this.end === undefined) this.resume = resume
      else resume(this.end)
    })
  }

  /**
   * Sets the result. A fiber that is granted the mutex resumes before `conclude` returns, unless too many fibers have
   * already done so in this turn of the event loop.
   */
  conclude(end: End): void {
    this.end = end
    const { resume } = this
    if (resume === undefined) return
    const task = () => this.tasks.add(() => resume(end))
    if (Exit.isSuccess(end)) task()
    else this.dispatcher.scheduleTask(task, 0)
  }
}

/** The fibers in line. A doubly linked list, because any fiber may leave. */
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
    const { next, previous } = waiter
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.last = previous
    else next.previous = previous
    waiter.next = waiter.previous = undefined
  }
}
