/**
 * A layer's place in the fleet's queue for one mutex, from the subscription until the place is granted the mutex or
 * gives up. Each place has a separate id. `localQueue` creates a place when fibers wait, and `placePlan` decides what
 * it does. The glossary in CONTRIBUTING.md defines place, turn and ticket.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import { inboxOf, type Released, type WakeUp } from "../../MutexStore.ts"
import type { BackendError, StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { isTransient } from "../lease/storeFailure.ts"
import { outagePause } from "../lease/storeRetries.ts"
import { type AttemptContext, isRefused, type Refused, Request } from "./attempt.ts"
import { leaseOfGrant } from "./grantMessage.ts"
import { HeldLease, type Parting } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"
import * as placePlan from "./placePlan.ts"
import { pollDelay } from "./pollDelay.ts"

/** The line of waiting fibers that a place represents. */
export interface QueueContext {
  readonly mutex: MutexName
  readonly context: AttemptContext
  /** The first waiter. It may change while a request is in flight. */
  readonly first: () => LocalWaiter | undefined
  readonly refused: (refused: Refused) => void
  /** The place has ended with a lease for the first waiter. */
  readonly won: (place: FleetPlace, lease: HeldLease, isHandOff: boolean) => void
  /** A request was sent at `at`, in monotonic milliseconds. `refused`, `won`, `reached` or `outage` follows. */
  readonly asked: (now: number) => void
  readonly reached: () => void
  readonly outage: (error: BackendError) => void
  /** The backend refused the request permanently, so the first waiter fails. */
  readonly failed: (error: StoreError) => void
  /** A request or a callback of the place crashed. Ignored once the place is over. */
  readonly crashed: (place: FleetPlace, cause: Cause.Cause<StoreError>) => void
}

/**
 * Executes the commands from `placePlan`. Each turn of a contended mutex creates a place, so it uses plain callbacks.
 */
export class FleetPlace {
  readonly id: LeaseId
  readonly state = placePlan.make()
  private readonly queue: QueueContext
  private readonly unlisten: () => void
  /** The last request. */
  private request: Request | undefined
  /** Stops the timer for the next poll, or for the end of a pause. */
  private unset: (() => void) | undefined
  /** Ends the pause between two requests in an outage. Set only during such a pause. */
  private endPause: (() => void) | undefined
  /** Whether the place's turn came during a request. If that request fails, it is repeated without a pause. */
  private skipsPause = false

  constructor(queue: QueueContext, id: LeaseId) {
    this.queue = queue
    this.id = id
    this.unlisten = queue.context.inbox.listen(queue.mutex, id, (wakeUp) => this.hear(wakeUp))
  }

  get isOver(): boolean {
    return this.state.phase === "over"
  }

  /** Whether the backend may know this place. */
  get isKnown(): boolean {
    return this.state.phase !== "prepared"
  }

  /** Starts contending: no fiber in this layer holds the mutex, and no release will queue the place. */
  contend(): void {
    this.happens({ _tag: "Contend" })
  }

  private happens(event: Exclude<placePlan.Event, { readonly _tag: "Granted" }>): void {
    switch (placePlan.next(this.state, event)) {
      case "nothing":
        return
      case "ask":
        return this.ask(false)
      case "askNow":
        // Skip one pause: the current one, or the one after the request in flight
        if (this.endPause === undefined) this.skipsPause = true
        else this.endPause()
        return
      case "askAfterOthers":
        // No message announced the place's turn, so all of the layer's places may be polling at the same time
        this.unset?.()
        return this.later(() => this.ask(false))
      case "confirm":
        return this.ask(true)
      case "judge":
        this.unset?.()
        return this.judge()
      case "sleep":
        return this.happens({ _tag: "AskBy", at: this.latest(placePlan.lastRefusal(this.state)) })
      case "setTimer":
        return this.setTimer()
      case "win":
        throw new Error("a place cannot win without a grant")
    }
  }

  /** `waiter` was first in line when the request was sent. `isHandOff`: whether a release granted the mutex. */
  private granted(waiter: LocalWaiter, lease: HeldLease, isHandOff: boolean): void {
    const command = placePlan.next(this.state, { _tag: "Granted", isStillFirst: waiter === this.queue.first() })
    if (command === "win") this.queue.won(this, lease, isHandOff)
    else if (command === "ask") this.ask(isHandOff)
  }

  end(): void {
    this.happens({ _tag: "End" })
    this.unlisten()
    this.unset?.()
    this.request?.cancel()
  }

  /** Queues the place for the first waiter, as part of a release about to be sent. */
  requeue(waiter: LocalWaiter, sent: Instant): Parting {
    this.happens({ _tag: "Requeue" })
    return {
      requeue: { id: this.id, lease: waiter.attempt.settings.lease },
      settled: (released) => this.outside(() => this.settled(waiter, sent, released))
    }
  }

  /** Handles the reply to the release. If there is no reply, the next request finds out what happened. */
  private settled(waiter: LocalWaiter, sent: Instant, released: Released | undefined): void {
    const { queue } = this
    if (released?.requeued === undefined) return this.happens({ _tag: "Settled" })
    const { requeued } = released
    if (requeued.token !== undefined && waiter === queue.first()) {
      const lease = new HeldLease(queue.mutex, this.id, requeued.token, waiter.attempt.settings, sent)
      if (lease.left(queue.context.now()) > 0) return this.granted(waiter, lease, true)
    }
    this.happens({ _tag: "Settled", ticket: requeued.ticket, refused: refusedBy(requeued, sent) })
  }

  /**
   * Sends a request for the first waiter, and repeats it during an outage. The queue decides how long each waiter keeps
   * waiting. `isCalled`: whether a message announced the place's turn.
   */
  private ask(isCalled: boolean, failures = 0): void {
    const { id, queue, state: { ticket } } = this
    const waiter = queue.first()
    if (waiter === undefined || this.isOver) return
    if (failures === 0) this.skipsPause = false
    const { mutex, settings } = waiter.attempt
    const asked = queue.context.now().monotonic
    queue.asked(asked)
    const request = new Request(
      queue.context,
      { mutex, settings, id },
      { mode: "wait", ticket },
      (exit) =>
        this.outside(() => {
          if (Exit.isFailure(exit)) return this.failed(exit.cause, isCalled, failures)
          if (!isRefused(exit.value)) return this.granted(waiter, exit.value, isCalled)
          queue.refused(exit.value)
          this.happens({ _tag: "Refused", refused: exit.value })
        })
    )
    this.request = request
    this.outside(() => request.start(asked + settings.leaseMillis))
  }

  private failed(cause: Cause.Cause<StoreError>, isCalled: boolean, failures: number): void {
    const { queue } = this
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    if (error === undefined) return queue.crashed(this, cause)
    if (isTransient(error)) {
      queue.outage(error)
      if (this.isOver) return
      return this.pause(outagePause(failures, queue.context.random()), () => this.ask(isCalled, failures + 1))
    }
    queue.failed(error)
    this.later(() => this.ask(isCalled))
  }

  /** Pauses between two requests in an outage. `askNow` ends the pause, or skips the next one. */
  private pause(millis: number, then: () => void): void {
    if (this.skipsPause) {
      this.skipsPause = false
      return then()
    }
    const { now, timers } = this.queue.context
    const end = () => {
      this.endPause = undefined
      this.outside(then)
    }
    this.endPause = () => {
      this.unset?.()
      end()
    }
    this.unset = timers.at(now().monotonic + millis, end)
  }

  /** Runs a step after the process's other work, if too much of it has run in this turn of the event loop. */
  private later(step: () => void): void {
    this.queue.context.tasks.add(() => this.outside(step))
  }

  /**
   * When to poll if no message arrives, in monotonic milliseconds. Subtracts the age of the reply, because the owner's
   * lease kept running while this process was paused or suspended. Ignores an age of up to one confirm period: the
   * request took time too, and a poll before the lease ends is wasted.
   */
  private latest(refused: Refused): number {
    const { confirmTimeout: confirm, inbox: { bound }, lease, now, random } = this.queue.context
    const { monotonic, wall } = now()
    const age = Math.max(monotonic - refused.sent.monotonic, wall - refused.sent.wall)
    const delay = pollDelay(refused, { confirm, lease, random: random() })
    return monotonic + Math.max(
      0,
      Math.min(delay, bound === undefined ? Infinity : Duration.toMillis(bound)) -
        Math.max(0, age - Duration.toMillis(confirm))
    )
  }

  private hear(wakeUp: WakeUp): void {
    this.outside(() =>
      this.happens(
        wakeUp._tag === "PollAfter"
          // A key disappears one millisecond after its remaining time has reached zero
          ? { _tag: "AskBy", at: this.queue.context.now().monotonic + Duration.toMillis(wakeUp.delay) + 1 }
          : { _tag: "Heard", wakeUp }
      )
    )
  }

  /** Keeps a defect in this place from the caller, which still has other waiters to notify. */
  private outside(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.queue.crashed(this, Cause.die(error))
    }
  }

  private setTimer(): void {
    const { timers } = this.queue.context
    this.unset?.()
    // A closed timer queue rings immediately
    this.unset = timers.pollAt(
      this.state.askAt,
      () => timers.isClosed() || this.outside(() => this.happens({ _tag: "Rang" }))
    )
  }

  private judge(): void {
    const { id, queue, state } = this
    const first = queue.first()
    const lease = state.grant && first &&
      leaseOfGrant(state.grant, placePlan.lastRefusal(state), first, { id, now: queue.context.now() })
    if (first === undefined || lease === undefined) this.happens({ _tag: "Doubted" })
    else this.granted(first, lease, true)
  }
}

/**
 * Converts the reply to a release into the refusal of the place that it queued. Undefined if the place cannot sleep on
 * it.
 */
const refusedBy = (
  { ownership, position, stamp, ticket, token }: NonNullable<Released["requeued"]>,
  sent: Instant
): Refused | undefined =>
  // A Simba contender may own the mutex, or take it while it is free: only a request finds out
  token !== undefined || position === undefined || ownership._tag === "Free" || inboxOf(ownership.owner) === ""
    ? undefined
    : { _tag: "Refused", ownership, ticket, position, foreign: false, stamp, sent }
