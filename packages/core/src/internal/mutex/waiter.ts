/** The fibers of one layer that wait for one mutex, first come, first served. */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scheduler from "effect/Scheduler"
import type { FencingToken } from "../../FencingToken.ts"
import type { ContenderId } from "../../MutexName.ts"
import type { BackendError, ProtocolError } from "../../SimbaError.ts"
import { type Instant, instant } from "../lease/deadline.ts"
import { throwUncaught } from "../lease/observers.ts"
import type { Attempt } from "./attempt.ts"
import { HeldLease } from "./heldLease.ts"

type End = Exit.Exit<HeldLease, BackendError | ProtocolError>

export class Waiter {
  readonly attempt: Attempt
  /** Monotonic milliseconds. */
  readonly since: number
  readonly clock: Clock.Clock
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private resume: ((end: Effect.Effect<HeldLease, BackendError | ProtocolError>) => void) | undefined
  private end: End | undefined
  /** What it was granted, whether or not its fiber has taken notice. */
  holding: HeldLease | undefined
  isInLine = true
  next: Waiter | undefined
  previous: Waiter | undefined

  constructor(attempt: Attempt, clock: Clock.Clock, dispatcher: Scheduler.SchedulerDispatcher) {
    this.attempt = attempt
    this.clock = clock
    this.since = instant(clock).monotonic
    this.dispatcher = dispatcher
  }

  /** The lease as this waiter wants it. */
  holdingOf(id: ContenderId, token: FencingToken, sent: Instant): HeldLease {
    return new HeldLease(this.attempt.mutex, id, token, this.attempt.terms, sent)
  }

  /** Waits until it is served, or fails. Whoever leaves says so to the place. */
  readonly outcome: Effect.Effect<HeldLease, BackendError | ProtocolError> = Effect.callback((resume) => {
    if (this.end === undefined) this.resume = resume
    else resume(this.end)
  })

  /** A fiber that is granted goes on before this returns, unless others are being woken already. */
  conclude(end: End): void {
    this.end = end
    if (this.resume === undefined) return
    if (Exit.isSuccess(end)) wake(this)
    else this.goOnLater()
  }

  goOn(): void {
    try {
      this.resume!(this.end!)
    } catch (error) {
      throwUncaught(this.dispatcher, error)
    }
  }

  goOnLater(): void {
    this.dispatcher.scheduleTask(() => this.goOn(), 0)
  }
}

/** Fibers that run in a row before the event loop has its turn, and for how many milliseconds. */
const atOnce = 32
const atMost = 5

let woken: Array<Waiter> | undefined

/** One after the other, never one inside the other: a stack would not hold a long line. */
const wake = (waiter: Waiter): void => {
  if (woken !== undefined) return void woken.push(waiter)
  woken = [waiter]
  const { clock } = waiter
  const end = instant(clock).monotonic + atMost
  for (let i = 0; i < woken.length; i++) {
    if (i < atOnce && (i === 0 || instant(clock).monotonic < end)) woken[i]!.goOn()
    else woken[i]!.goOnLater()
  }
  woken = undefined
}

export class WaiterList {
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
