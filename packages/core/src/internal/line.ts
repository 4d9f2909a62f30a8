/** The fibers of one layer that wait for one mutex, first come, first served. */
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"
import type { BackendError, ProtocolError } from "../Errors.ts"
import type { WireId } from "../Names.ts"
import type { FencingToken } from "../Ownership.ts"
import type { Attempt } from "./contention.ts"
import { Holding } from "./holding.ts"
import type { Instant } from "./instant.ts"

type End = Exit.Exit<Holding, BackendError | ProtocolError>

export class Waiter {
  readonly attempt: Attempt
  /** Monotonic milliseconds. */
  readonly since: number
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private resume: ((end: Effect.Effect<Holding, BackendError | ProtocolError>) => void) | undefined
  private end: End | undefined
  /** What it was granted, whether or not its fiber has taken notice. */
  holding: Holding | undefined
  isInLine = true
  next: Waiter | undefined
  previous: Waiter | undefined

  constructor(attempt: Attempt, since: number, dispatcher: Scheduler.SchedulerDispatcher) {
    this.attempt = attempt
    this.since = since
    this.dispatcher = dispatcher
  }

  /** The lease as this waiter wants it. */
  holdingOf(id: WireId, token: FencingToken, sent: Instant): Holding {
    return new Holding(this.attempt.mutex, id, token, this.attempt.terms, sent)
  }

  /** Waits until it is served, or fails. Whoever leaves says so to the place. */
  readonly outcome: Effect.Effect<Holding, BackendError | ProtocolError> = Effect.callback((resume) => {
    if (this.end === undefined) this.resume = resume
    else resume(this.end)
  })

  /** By its own fiber, on that fiber's scheduler: in a long line one hand-over must not run inside the other. */
  conclude(end: End): void {
    this.end = end
    if (this.resume !== undefined) this.dispatcher.scheduleTask(this.wake, 0)
  }

  private readonly wake = () => this.resume!(this.end!)
}

export class Line {
  first: Waiter | undefined
  last: Waiter | undefined

  push(waiter: Waiter): void {
    waiter.previous = this.last
    if (this.last === undefined) this.first = waiter
    else this.last.next = waiter
    this.last = waiter
  }

  unshift(waiter: Waiter): void {
    waiter.next = this.first
    if (this.first === undefined) this.last = waiter
    else this.first.previous = waiter
    this.first = waiter
  }

  remove(waiter: Waiter): void {
    const { next, previous } = waiter
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.last = previous
    else next.previous = previous
    waiter.next = waiter.previous = undefined
    waiter.isInLine = false
  }
}
