/** The fibers of one layer that wait for one mutex, first come, first served. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"
import type { StoreError } from "../../SimbaError.ts"
import { instant } from "../lease/instant.ts"
import { throwUncaught } from "../lease/observers.ts"
import type { Attempt } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"

type End = Exit.Exit<HeldLease, StoreError>

export class LocalWaiter {
  readonly attempt: Attempt
  readonly clock: Clock.Clock
  /** Monotonic milliseconds. */
  readonly since: number
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private resume: ((end: End) => void) | undefined
  private end: End | undefined
  /** The lease that it was granted, even before its fiber has taken notice. */
  granted: HeldLease | undefined
  isInLine = true
  next: LocalWaiter | undefined
  previous: LocalWaiter | undefined

  constructor(attempt: Attempt, clock: Clock.Clock, dispatcher: Scheduler.SchedulerDispatcher) {
    this.attempt = attempt
    this.clock = clock
    this.since = instant(clock).monotonic
    this.dispatcher = dispatcher
  }

  readonly outcome: Effect.Effect<HeldLease, StoreError> = Effect.callback((resume) => {
    if (this.end === undefined) this.resume = resume
    else resume(this.end)
  })

  /** A fiber that is granted continues before this returns, unless others are being woken already. */
  conclude(end: End): void {
    this.end = end
    if (this.resume === undefined) return
    if (Exit.isSuccess(end)) wake(this)
    else this.continueLater()
  }

  continueNow(): void {
    try {
      this.resume!(this.end!)
    } catch (error) {
      throwUncaught(this.dispatcher, error)
    }
  }

  continueLater(): void {
    this.dispatcher.scheduleTask(() => this.continueNow(), 0)
  }
}

/** Fibers that run in a row before the event loop has its turn, and for how many milliseconds. */
const maxInRow = 32
const maxMillis = 5

let woken: Array<LocalWaiter> | undefined

/** One after the other, never one inside the other: a stack would not hold a long line. */
const wake = (waiter: LocalWaiter): void => {
  if (woken !== undefined) return void woken.push(waiter)
  woken = [waiter]
  const { clock } = waiter
  const end = instant(clock).monotonic + maxMillis
  for (let i = 0; i < woken.length; i++) {
    if (i < maxInRow && (i === 0 || instant(clock).monotonic < end)) woken[i]!.continueNow()
    else woken[i]!.continueLater()
  }
  woken = undefined
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
