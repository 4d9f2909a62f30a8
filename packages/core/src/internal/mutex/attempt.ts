/**
 * A single request to acquire a mutex: sends it and checks the reply. Used by `acquire` and `fleetPlace`, which repeat
 * it during outages.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { AcquireRequest, AcquireResult, MutexStore } from "../../MutexStore.ts"
import { BackendError, type StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import type { Recorder } from "../lease/metricsRecorder.ts"
import { socketsRead } from "../lease/replyTimeout.ts"
import { noReply } from "../lease/storeFailure.ts"
import type { TimerQueue } from "../lease/timerQueue.ts"
import type { SlicedTasks } from "../lease/workSlices.ts"
import { HeldLease } from "./heldLease.ts"
import type { LeaseSettings } from "./leaseOptions.ts"

/** One caller's request, under an id that is never reused. */
export interface Attempt {
  readonly mutex: MutexName
  readonly id: LeaseId
  readonly settings: LeaseSettings
}

/** The parts of the layer that requests need. */
export interface AttemptContext {
  readonly store: MutexStore["Service"]
  /** Delivers messages to the layer's places. */
  readonly inbox: Effect.Success<ReturnType<MutexStore["Service"]["inbox"]>>
  readonly confirmTimeout: Duration.Duration
  /** The layer's ttl plus its transition. */
  readonly lease: Duration.Duration
  readonly now: () => Instant
  readonly recorder: Recorder
  readonly timers: TimerQueue
  readonly tasks: SlicedTasks
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Returns a random number from 0 to 1. */
  readonly random: () => number
}

export type Refused = Extract<AcquireResult, { readonly _tag: "Refused" }> & {
  /** The time just before the request was sent. */
  readonly sent: Instant
}

export const isRefused = (result: HeldLease | Refused): result is Refused => "_tag" in result

export const closed = (operation = "acquire") =>
  new BackendError({
    operation,
    isRetryable: false,
    cause: new Error("the mutex's layer is closed")
  })

type Query = Pick<AcquireRequest, "mode" | "ticket">

type Done = (exit: Exit.Exit<HeldLease | Refused, StoreError>) => void

/**
 * A request in flight. The lease starts just before the request is sent. If the reply is so late that little of the
 * server's lease is left, the request is repeated, and the store recognizes the owner. `maxHold` is not checked here:
 * if the backend took longer than `maxHold` to reply, the request would be repeated forever.
 *
 * Each acquire sends one, so it uses callbacks instead of a fiber and its timeout.
 */
export class Request {
  private readonly context: AttemptContext
  private readonly attempt: Attempt
  private readonly query: Query
  private readonly done: Done
  private isOver = false
  private unset: (() => void) | undefined
  private abandon: (() => void) | undefined

  /** `done` is called once, unless the request is cancelled. */
  constructor(context: AttemptContext, attempt: Attempt, query: Query, done: Done) {
    this.context = context
    this.attempt = attempt
    this.query = query
    this.done = done
  }

  /**
   * Sends the request. If there is no reply by `until`, in monotonic milliseconds, fails as in an outage, because the
   * store may never reply. If the timer is late, a reply that has arrived still counts.
   */
  start(until: number): void {
    const { fork, timers } = this.context
    const expire = () => {
      if (this.isOver) return
      this.cancel()
      this.done(Exit.fail(timers.isClosed() ? closed() : noReply("acquire", this.attempt.settings.lease)))
    }
    this.unset = timers.at(until, () => {
      if (timers.isClosed()) expire()
      else fork(Effect.andThen(socketsRead, Effect.sync(expire)))
    })
    if (!this.isOver) this.send()
  }

  cancel(): void {
    this.isOver = true
    this.unset?.()
    this.abandon?.()
  }

  private end(exit: Parameters<Done>[0]): void {
    this.isOver = true
    this.unset?.()
    this.done(exit)
  }

  private send(): void {
    const { attempt: { id, mutex, settings: { lease } }, context: { confirmTimeout: confirm, now, store } } = this
    const { mode, ticket } = this.query
    const sent = now()
    this.abandon = store.acquire({ mutex, id, confirm, lease, mode, ticket }, (exit) => {
      if (!this.isOver) this.replied(exit, sent)
    })
  }

  private replied(exit: Exit.Exit<AcquireResult, StoreError>, sent: Instant): void {
    if (Exit.isFailure(exit)) return this.end(Exit.failCause(exit.cause))
    const { attempt: { id, mutex, settings }, context: { now, recorder } } = this
    const repliedAt = now()
    recorder.update(MutexMetrics.mutex.acquireLatency, repliedAt.monotonic - sent.monotonic, mutex)
    if (exit.value._tag === "Refused") return this.end(Exit.succeed({ ...exit.value, sent }))
    const granted = new HeldLease(mutex, id, exit.value.token, settings, sent)
    if (granted.serverLeft(repliedAt) > settings.margin) this.end(Exit.succeed(granted))
    else this.send()
  }
}
