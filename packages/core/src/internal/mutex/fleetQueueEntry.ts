/** One entry of a layer in the fleet's queue, under an id of its own: from the subscription to the grant. */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { LeaseId } from "../../MutexName.ts"
import { type Grant, inboxOf, type Released, type Ticket, type WakeUp } from "../../MutexStore.ts"
import type { BackendError, StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { isRefused, type Refused, retryOutages, send, withAnswer } from "./attempt.ts"
import { type GrantOwner, leaseOfGrant } from "./grantMessage.ts"
import { HeldLease, type Parting } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"
import { lookDelay } from "./lookDelay.ts"

/** The queue that the entry stands for. */
export interface QueueContext extends GrantOwner {
  /** Others may become the first while a request is under way. */
  readonly first: () => LocalWaiter | undefined
  readonly refused: (refused: Refused) => void
  /** The entry has ended with a lease for the first waiter. */
  readonly won: (entry: FleetQueueEntry, lease: HeldLease, isHandOff: boolean) => void
  /** A request is sent, in monotonic milliseconds. `refused`, `won`, `reached` or `outage` follows. */
  readonly asked: (now: number) => void
  readonly reached: () => void
  readonly outage: (error: BackendError) => void
  /** The backend refused the first for good. */
  readonly failed: (error: StoreError) => void
  /** Work of the entry has failed or crashed, unless the entry is over. */
  readonly crashed: (entry: FleetQueueEntry, cause: Cause.Cause<StoreError>) => void
}

/**
 * - `prepared`: subscribes while a fiber of this layer still holds the mutex.
 * - `requeueing`: a release that queues it is under way.
 * - `contending`: asks and waits.
 * - `over`: granted, or given up.
 */
export type State = "prepared" | "requeueing" | "contending" | "over"

/** Plain callbacks: a fiber runs for a request alone, since each turn of a contended mutex begins one entry. */
export class FleetQueueEntry {
  readonly id: LeaseId
  state: State
  /** What it has under way. */
  readonly fibers = new Set<Fiber.Fiber<unknown, unknown>>()
  /** Nobody else had the mutex or waited for it. */
  wasFree = true
  private readonly queue: QueueContext
  private unlisten: (() => void) | undefined
  private isSubscribed = false
  /** Set where gaps cannot be seen. Milliseconds. */
  private bound = Infinity
  private ticket: Ticket | undefined
  /** The last answer, if it was no grant. */
  private refused: Refused | undefined
  private isAsleep = false
  /** Heard since it last woke: the last call, or a gap before any; and when to look, in monotonic milliseconds. */
  private call: Exclude<WakeUp, { readonly _tag: "LookIn" }> | undefined
  private lookAt = Infinity
  private unset: (() => void) | undefined

  constructor(queue: QueueContext, id: LeaseId, state: State) {
    this.queue = queue
    this.id = id
    this.state = state
  }

  /** Whether the backend may have heard of it. */
  get isKnown(): boolean {
    return this.state === "requeueing" || this.state === "contending"
  }

  /** Subscribes, and asks if it is to contend. */
  start(): void {
    const { context: { store }, mutex } = this.queue
    const hear = (wakeUp: WakeUp) => this.hear(wakeUp)
    this.unlisten = store.listen?.(mutex, this.id, hear)
    if (this.unlisten !== undefined) return this.subscribed()
    const subscribing = store.wakeUps(mutex, this.id)
    const listening = Effect.flatMap(
      store.isListening === true ? subscribing : this.persist(subscribing),
      ({ bound, next }) => {
        if (bound !== undefined) this.bound = Duration.toMillis(bound)
        this.subscribed()
        return Effect.forever(Effect.map(next, hear))
      }
    )
    this.fork(Effect.scoped(listening))
  }

  private fork(work: Effect.Effect<unknown, StoreError>): void {
    const { fibers, queue } = this
    const fiber = queue.context.fork(work)
    fibers.add(fiber)
    fiber.addObserver((exit) => {
      fibers.delete(fiber)
      if (Exit.isFailure(exit)) queue.crashed(this, exit.cause)
    })
    // It may have ended the entry by itself
    if (this.state === "over") fiber.interruptUnsafe()
  }

  private subscribed(): void {
    this.isSubscribed = true
    if (this.state === "contending") return this.ask(false)
    // Otherwise a request follows, and its answer tells: a subscription may be there already
    this.queue.reached()
  }

  contend(): void {
    this.state = "contending"
    if (!this.isSubscribed) return
    if (this.refused === undefined) this.ask(false)
    else this.sleep(this.refused)
  }

  end(): void {
    this.state = "over"
    this.unlisten?.()
    this.unset?.()
    for (const fiber of this.fibers) fiber.interruptUnsafe()
  }

  /** Goes along with a release that is sent now, for the first waiter. */
  requeue(waiter: LocalWaiter, sent: Instant): Parting {
    this.wasFree = false
    this.state = "requeueing"
    const isListening = this.isSubscribed
    return {
      requeue: { id: this.id, lease: waiter.attempt.terms.lease },
      settled: (released) => {
        if (this.state === "requeueing") this.settled(waiter, sent, isListening, released)
      }
    }
  }

  /** Without an answer the outcome is not known: the next request finds out. */
  private settled(waiter: LocalWaiter, sent: Instant, isListening: boolean, released: Released | undefined): void {
    const { queue } = this
    const requeued = released?.requeued
    if (requeued !== undefined) {
      this.ticket = requeued.ticket
      if (requeued.token !== undefined && waiter === queue.first()) {
        const lease = new HeldLease(queue.mutex, this.id, requeued.token, waiter.attempt.terms, sent, queue)
        if (lease.left(queue.context.now()) > 0) return queue.won(this, lease, true)
      }
      const { ownership } = released!
      const { position, stamp, ticket } = requeued
      // Another implementation may own the mutex, or take it while it is free: a request finds out
      const isOurs = ownership._tag === "Held" && inboxOf(ownership.owner) !== ""
      if (requeued.token === undefined && position !== undefined && isListening && isOurs) {
        this.refused = { _tag: "Refused", ownership, ticket, position, foreign: false, stamp, sent }
      }
    }
    this.contend()
  }

  /** Repeats a request until it succeeds. The queue decides how long each waiter sits through an outage. */
  private persist<A, R>(request: Effect.Effect<A, StoreError, R>): Effect.Effect<A, StoreError, R> {
    const { context } = this.queue
    const once = Effect.suspend(() => {
      const asked = context.now().monotonic
      const waiter = this.queue.first()
      if (waiter === undefined) return Effect.interrupt
      const { terms } = waiter.attempt
      this.queue.asked(asked)
      return withAnswer(context, terms, asked + terms.leaseMillis, request)
    })
    const goesOn = (error: BackendError) => {
      this.queue.outage(error)
      return this.queue.first() !== undefined
    }
    return retryOutages(once, goesOn).pipe(
      Effect.catch((error) => {
        this.queue.failed(error)
        return this.persist(request)
      })
    )
  }

  /** `isCalled`: a message gave it the turn. */
  private ask(isCalled: boolean, before: Effect.Effect<void> = Effect.void): void {
    const { queue } = this
    let waiter: LocalWaiter
    const request = this.persist(Effect.suspend(() => {
      waiter = queue.first()!
      const { mutex, terms } = waiter.attempt
      return send(queue.context, { mutex, terms, id: this.id }, queue, { mode: "wait", ticket: this.ticket })
    }))
    this.fork(
      Effect.map(Effect.andThen(before, request), (result) => {
        if (this.state === "over") return
        if (isRefused(result)) {
          this.ticket = result.ticket ?? this.ticket
          queue.refused(result)
          this.wasFree = false
          this.sleep(result)
        } // The first may have left meanwhile: asking again confirms the grant with the terms of the next one
        else if (waiter === queue.first()) queue.won(this, result, isCalled)
        else this.ask(isCalled)
      })
    )
  }

  private sleep(refused: Refused): void {
    const { queue } = this
    this.refused = refused
    if (this.call !== undefined) return this.wake()
    const { confirmTimeout: confirm, lease, now, random } = queue.context
    const delay = lookDelay(refused, { confirm, lease, random: random() })
    this.isAsleep = true
    this.lookBy(now().monotonic + Math.min(delay, this.bound))
  }

  private hear(wakeUp: WakeUp): void {
    if (this.state === "over") return
    if (wakeUp._tag === "LookIn") {
      // A key is gone one millisecond after its remaining time has reached zero
      return this.lookBy(this.queue.context.now().monotonic + Duration.toMillis(wakeUp.delay) + 1)
    }
    // H5: a grant that comes after a gap is a hint, until a request has been answered
    if (this.call === undefined || (this.call._tag === "YourTurn" && wakeUp._tag === "YourTurn")) this.call = wakeUp
    if (this.isAsleep) this.wake()
  }

  private lookBy(at: number): void {
    this.lookAt = Math.min(this.lookAt, at)
    if (!this.isAsleep) return
    const { timers } = this.queue.context
    this.unset?.()
    // A closed queue of timers rings at once
    this.unset = timers.pollAt(this.lookAt, () => timers.isClosed() || this.wake())
  }

  private wake(): void {
    const { call } = this
    this.isAsleep = false
    this.call = undefined
    this.lookAt = Infinity
    this.unset?.()
    try {
      // After a gap, or at the end of a lease, all waiters of a layer look again
      if (call?._tag === "YourTurn") this.turn(call.grant)
      else this.ask(false, this.queue.context.tasks.pass)
    } catch (error) {
      // Whoever tells of it has others to tell
      this.queue.crashed(this, Cause.die(error))
    }
  }

  private turn(grant: Grant | undefined): void {
    const { id, queue, refused } = this
    const first = queue.first()
    const lease = grant && first && leaseOfGrant(grant, refused!, first, { id, queue })
    if (lease === undefined) this.ask(true)
    else queue.won(this, lease, true)
  }
}
