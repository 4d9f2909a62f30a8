/** One entry of a layer in the fleet's queue, under an id of its own: from the subscription to the grant. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Schedule from "effect/Schedule"
import type { ContenderId } from "../../MutexName.ts"
import type { Released, Ticket } from "../../MutexStore.ts"
import type { BackendError, StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import { awaitWakeUp, isRefused, type Refused, retryOutages, send, withAnswer } from "./attempt.ts"
import { type GrantOwner, leaseOfGrant } from "./grantMessage.ts"
import { HeldLease, type Parting } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"
import { lookSchedule } from "./lookSchedule.ts"

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
}

/**
 * - `prepared`: subscribes while a fiber of this layer still holds the mutex.
 * - `requeueing`: a release that queues it is under way.
 * - `contending`: asks and waits.
 * - `over`: granted, or given up.
 */
export type State = "prepared" | "requeueing" | "contending" | "over"

/** After a release that did not say how many are ahead: not among the first who look one after the other. */
const unknownPosition = 8

export class FleetQueueEntry {
  readonly id: ContenderId
  state: State
  fiber: Fiber.Fiber<void, StoreError> | undefined
  /** Nobody else had the mutex or waited for it. */
  wasFree = true
  private readonly gate = Latch.makeUnsafe(false)
  private readonly queue: QueueContext
  private isSubscribed = false
  private ticket: Ticket | undefined
  /** A refusal by the requeueing release, which makes the first request needless. */
  private known: Refused | undefined

  constructor(queue: QueueContext, id: ContenderId, state: State) {
    this.queue = queue
    this.id = id
    this.state = state
  }

  /** Whether the backend may have heard of it. */
  get isKnown(): boolean {
    return this.state === "requeueing" || this.state === "contending"
  }

  contend(): void {
    this.state = "contending"
    this.gate.openUnsafe()
  }

  /** Goes along with a release that is sent now, for the first waiter. */
  requeue(waiter: LocalWaiter, sent: Instant): Parting {
    this.wasFree = false
    this.state = "requeueing"
    const isListening = this.isSubscribed
    const { lease, maxLocalHandOffs } = waiter.attempt.terms
    return {
      requeue: { id: this.id, lease, reserve: maxLocalHandOffs },
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
      // Longer than a waiter has to confirm: this release did not choose the owner, or it is of another implementation
      const isChosen = ownership._tag === "Held" && ownership.remaining !== undefined &&
        Duration.isLessThanOrEqualTo(ownership.remaining, queue.context.confirmTimeout)
      if (requeued.token === undefined && isListening && isChosen) {
        const { stamp, ticket } = requeued
        this.known = { _tag: "Refused", ownership, ticket, position: unknownPosition, foreign: false, stamp, sent }
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

  readonly run: Effect.Effect<void, StoreError> = Effect.scoped(Effect.gen({ self: this }, function*() {
    const { queue } = this
    const { confirmTimeout: confirm, store } = queue.context
    const subscribing = store.wakeUps(queue.mutex, this.id)
    const wakeUps = yield* (store.isListening === true ? subscribing : this.persist(subscribing))
    this.isSubscribed = true
    if (this.state !== "contending") {
      // Otherwise a request follows, and its answer tells: a subscription may be there already
      queue.reached()
      yield* this.gate.await
    }
    const { lease } = queue.first()!.attempt.terms
    const step = yield* Schedule.toStep(lookSchedule({ confirm, lease }))
    const sleep = Effect.fnUntraced(function*(refused: Refused) {
      const { wall } = queue.context.now()
      // The schedule does not end
      const [delay] = yield* Effect.orDie(step(wall, refused))
      const wakeUp = yield* awaitWakeUp(wakeUps, queue.context, delay)
      if (wakeUp?._tag === "YourTurn") return wakeUp
      // After a gap, or at the end of a lease, all waiters of a layer look again
      return yield* queue.context.tasks.pass
    })
    let waiter: LocalWaiter | undefined
    const ask = this.persist(Effect.suspend(() => {
      waiter = queue.first()!
      const { mutex, terms } = waiter.attempt
      return send(queue.context, { mutex, terms, id: this.id }, queue, { mode: "wait", ticket: this.ticket })
    }))
    let isCalled = false
    for (let refused = this.known;;) {
      if (refused !== undefined) {
        const call = yield* sleep(refused)
        isCalled = call !== undefined
        const first = queue.first()
        const lease = call?.grant && first && leaseOfGrant(call.grant, refused, first, { id: this.id, queue })
        if (lease !== undefined) return queue.won(this, lease, true)
      }
      const result = yield* ask
      if (!isRefused(result)) {
        // The first may have left meanwhile: asking again confirms the grant with the terms of the next one
        if (waiter === queue.first()) return queue.won(this, result, isCalled)
        refused = undefined
        continue
      }
      this.ticket = result.ticket ?? this.ticket
      queue.refused(result)
      this.wasFree = false
      refused = result
    }
  }))
}
