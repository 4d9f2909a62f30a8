/**
 * A single request to acquire a mutex: sends it, checks the reply, and repeats it during outages. Used by `acquire` and
 * `fleetPlace`.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { AcquireRequest, AcquireResult, MutexStore } from "../../MutexStore.ts"
import { BackendError, type StoreError } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"
import type { Recorder } from "../lease/metricsRecorder.ts"
import { isTransient, noReply } from "../lease/storeFailure.ts"
import { outagePause } from "../lease/storeRetries.ts"
import { limit, type TimerQueue } from "../lease/timerQueue.ts"
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

/**
 * Sends the request. The lease starts just before the request is sent. If the reply is so late that little of the
 * server's lease is left, the request is repeated, and the store recognizes the owner. `maxHold` is not checked here:
 * if the backend took longer than `maxHold` to reply, the request would be repeated forever.
 */
export const send = (
  context: AttemptContext,
  { id, mutex, settings }: Attempt,
  request: Pick<AcquireRequest, "mode" | "ticket">
): Effect.Effect<HeldLease | Refused, StoreError> =>
  Effect.suspend(() => {
    const { confirmTimeout: confirm, now, recorder, store, timers } = context
    const { lease } = settings
    const sent = now()
    return Effect.flatMap(
      store.acquire({ mutex, id, confirm, lease, mode: request.mode, ticket: request.ticket }),
      (result): Effect.Effect<HeldLease | Refused, StoreError> => {
        const hasReplied = now()
        recorder.update(MutexMetrics.mutex.acquireLatency, hasReplied.monotonic - sent.monotonic, mutex)
        if (result._tag === "Refused") return Effect.succeed({ ...result, sent })
        // A closed layer would neither renew the lease nor watch its deadline
        if (timers.isClosed()) return Effect.fail(closed())
        const granted = new HeldLease(mutex, id, result.token, settings, sent)
        return granted.serverLeft(hasReplied) > settings.margin
          ? Effect.succeed(granted)
          : send(context, { id, mutex, settings }, request)
      }
    )
  })

/** If there is no reply by `until`, fails as in an outage, because the store may never reply. */
export const withReply = <A, R>(
  { timers }: AttemptContext,
  { lease }: LeaseSettings,
  until: number,
  request: Effect.Effect<A, StoreError, R>
): Effect.Effect<A, StoreError, R> => limit(timers, until, request, () => Effect.fail(noReply("acquire", lease)))

/** Repeats a request after each outage for which `goesOn` returns true. `pause` takes milliseconds. */
export const retryOutages = <A, R>(
  request: Effect.Effect<A, StoreError, R>,
  goesOn: (outage: BackendError) => boolean,
  pause: (millis: number) => Effect.Effect<void> = Effect.sleep
): Effect.Effect<A, StoreError, R> => {
  const attempt = (failures: number): Effect.Effect<A, StoreError, R> =>
    Effect.catchIf(request, isTransient, (outage) =>
      goesOn(outage)
        ? Effect.andThen(Effect.flatMap(outagePause(failures), pause), Effect.suspend(() => attempt(failures + 1)))
        : Effect.fail(outage))
  return attempt(0)
}
