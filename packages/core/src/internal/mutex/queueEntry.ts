/** One wait of a place in the fleet's queue, under a wire id of its own: from the subscription to the grant. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type { ContenderId, MutexName } from "../../MutexName.ts"
import * as MutexSchedule from "../../MutexSchedule.ts"
import type { MutexStore, Released, Ticket } from "../../MutexStore.ts"
import type { BackendError } from "../../SimbaError.ts"
import type { LeaseTable } from "../lease/leaseTable.ts"
import { awaitWakeUp, isRefused, type Refused, send, type StoreError } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { Waiter } from "./waiter.ts"

/** What a turn is part of. */
export interface QueueContext {
  readonly mutex: MutexName
  readonly store: MutexStore["Service"]
  readonly leases: LeaseTable
  readonly confirmTimeout: Duration.Duration
  /** Whom the turn is for, at this moment. Others may come to be the first while a request is under way. */
  readonly first: () => Waiter | undefined
  readonly refused: (refused: Refused) => void
  /** The turn has ended with a lease for this waiter, who is still the first. */
  readonly won: (turn: QueueEntry, holding: HeldLease, handedOff: boolean) => void
  /** Nothing has come through since, in monotonic milliseconds; or something has. */
  readonly outage: (error: BackendError, since: number) => void
  readonly reached: () => void
  /** The backend refused the first. */
  readonly failed: (error: StoreError) => void
}

/**
 * - `prepared`: subscribes while the mutex is still held by a fiber of this layer.
 * - `requeueing`: a release that queues it is under way.
 * - `contending`: asks and waits.
 * - `over`: granted, or given up.
 */
export type State = "prepared" | "requeueing" | "contending" | "over"

/** Of a release by which nobody learnt how many are ahead: not among the first who look one after the other. */
const unknownPosition = 8

export class QueueEntry {
  readonly id: ContenderId
  state: State
  fiber: Fiber.Fiber<void, StoreError> | undefined
  /** Nobody else had the mutex or waited for it. */
  wasFree = true
  private readonly gate = Latch.makeUnsafe(false)
  private readonly seat: QueueContext
  private isSubscribed = false
  private ticket: Ticket | undefined
  /** Whom the requeueing release asked for, when it was sent, and whether messages could reach us then. */
  private requeued: { readonly waiter: Waiter; readonly sent: HeldLease["since"]; readonly heard: boolean } | undefined
  /** What is known from the requeueing release, where that makes a request needless. */
  private known: Refused | undefined

  constructor(seat: QueueContext, id: ContenderId, state: State) {
    this.seat = seat
    this.id = id
    this.state = state
  }

  get isOver(): boolean {
    return this.state === "over"
  }

  /** Whether the backend may have heard of it. */
  get isKnown(): boolean {
    return this.state === "requeueing" || this.state === "contending"
  }

  requeueing(waiter: Waiter, sent: HeldLease["since"]): void {
    this.wasFree = false
    this.state = "requeueing"
    this.requeued = { waiter, sent, heard: this.isSubscribed }
  }

  contend(): void {
    this.state = "contending"
    this.gate.openUnsafe()
  }

  /** The answer to the requeueing release; `undefined` if there is none, so that the outcome is not known. */
  settled(released: Released | undefined, now: HeldLease["since"]): HeldLease | undefined {
    if (this.state !== "requeueing") return undefined
    const { heard, sent, waiter } = this.requeued!
    const requeued = released?.requeued
    if (requeued !== undefined) {
      this.ticket = requeued.ticket
      if (requeued.token !== undefined && waiter === this.seat.first()) {
        const holding = waiter.holdingOf(this.id, requeued.token, sent)
        if (holding.left(now) > 0) return holding
      }
      const { ownership } = released!
      // Longer than a waiter has to confirm: an owner that this release did not choose, maybe of another implementation
      const isNew = ownership._tag === "Held" && ownership.remaining !== undefined &&
        Duration.isLessThanOrEqualTo(ownership.remaining, this.seat.confirmTimeout)
      if (requeued.token === undefined && heard && isNew) {
        this.known = {
          _tag: "Refused",
          ownership,
          ticket: requeued.ticket,
          position: unknownPosition,
          foreign: false
        }
      }
    }
    this.contend()
    return undefined
  }

  /** Through outages, which are judged by how long each waiter has seen of them. */
  private persist<A, R>(effect: Effect.Effect<A, StoreError, R>): Effect.Effect<A, StoreError, R> {
    return Effect.suspend(() => {
      const asked = this.seat.leases.now().monotonic
      return Effect.matchCauseEffect(effect, {
        onSuccess: (value) => this.reached(value),
        onFailure: (cause) => this.again(effect, cause, asked)
      })
    })
  }

  private reached<A>(value: A): Effect.Effect<A> {
    this.seat.reached()
    return Effect.succeed(value)
  }

  private again<A, R>(effect: Effect.Effect<A, StoreError, R>, first: Cause.Cause<StoreError>, since: number) {
    const { seat } = this
    return Effect.gen({ self: this }, function*() {
      const step = yield* Schedule.toStep(MutexSchedule.outage)
      let cause = first
      let asked = since
      for (;;) {
        const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
        if (failure === undefined) return yield* Effect.failCause(cause)
        if (failure._tag === "BackendError" && failure.retryable) {
          seat.outage(failure, asked)
          const [, delay] = yield* Pull.catchDone(
            step(yield* Clock.currentTimeMillis, undefined),
            () => Effect.succeed([Duration.zero, Duration.seconds(1)] as [Duration.Duration, Duration.Duration])
          )
          yield* Effect.sleep(delay)
        } else seat.failed(failure)
        // Nobody is left in line: this fiber has been interrupted, and notices now
        if (seat.first() === undefined) return yield* Effect.interrupt
        asked = seat.leases.now().monotonic
        const exit = yield* Effect.exit(effect)
        if (Exit.isSuccess(exit)) return yield* this.reached(exit.value)
        cause = exit.cause
      }
    })
  }

  readonly run: Effect.Effect<void, StoreError> = Effect.scoped(Effect.gen({ self: this }, function*() {
    const { leases, store } = this.seat
    const wakeUps = yield* this.persist(store.wakeUps(this.seat.mutex, this.id))
    this.isSubscribed = true
    if (this.state !== "contending") yield* this.gate.await
    const { attempt: { transition, ttl } } = this.seat.first()!
    const lease = Duration.sum(ttl, transition)
    let step: Effect.Success<ReturnType<typeof paceOf>> | undefined
    const delayBehind = Effect.fnUntraced(function*(this: QueueEntry, refused: Refused) {
      step ??= yield* paceOf(this.seat.confirmTimeout, lease)
      const now = yield* Clock.currentTimeMillis
      const [delay] = yield* Pull.catchDone(step(now, refused), () => Effect.succeed([lease, lease] as const))
      return delay
    })
    const sleep = (refused: Refused) =>
      Effect.flatMap(delayBehind.call(this, refused), (delay) => awaitWakeUp(wakeUps, leases, delay))
    let waiter: Waiter | undefined
    const asking = Effect.suspend(() => {
      waiter = this.seat.first()!
      return send(store, leases, { ...waiter.attempt, id: this.id }, { mode: "wait", ticket: this.ticket })
    })
    let called = this.known !== undefined && (yield* sleep(this.known))
    for (;;) {
      const result = yield* this.persist(asking)
      if (!isRefused(result)) {
        // Whoever was asked for may have left meanwhile: asking again confirms the grant, as the next one wants it
        if (waiter === this.seat.first()) return this.seat.won(this, result, called)
        continue
      }
      this.ticket = result.ticket ?? this.ticket
      this.seat.refused(result)
      this.wasFree = false
      called = yield* sleep(result)
    }
  }))
}

const paceOf = (confirm: Duration.Duration, lease: Duration.Duration) =>
  Schedule.toStep(MutexSchedule.contend({ confirm, lease }))
