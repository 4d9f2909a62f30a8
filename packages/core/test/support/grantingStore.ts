/**
 * A store with a separate clock. The test replies to `wait` requests and confirmations, and sends messages to waiters.
 * Other requests get fixed replies.
 */
import * as Mutex from "@effect-simba/core/Mutex"
import {
  type AcquireResult,
  type ConfirmRequest,
  type Grant,
  MutexStore,
  type Released,
  type ReleaseRequest,
  type Stamp,
  type WakeUp
} from "@effect-simba/core/MutexStore"
import { BackendError, type StoreError } from "@effect-simba/core/SimbaError"
import { Clock, Context, Duration, Effect, Exit, Layer, Logger, Stream } from "effect"

export const outage = new BackendError({ operation: "test", isRetryable: true, cause: new Error("outage") })

/** A refusal because another contender owns the mutex. `stamp` is the backend's time in the reply. */
export const refusal = (stamp: Stamp | undefined): AcquireResult => ({
  _tag: "Refused",
  ownership: { _tag: "Held", owner: "them", timeLeft: Duration.minutes(10) },
  ticket: undefined,
  position: 0,
  foreign: false,
  stamp
})

export class Backend extends Context.Service<Backend, {
  /** The requests so far, in order: `try`, `wait`, `confirm`, `renew`, `release`. */
  readonly calls: Array<string>
  /** Replies to the latest `wait` request. */
  readonly reply: (exit: Exit.Exit<AcquireResult, StoreError>) => Effect.Effect<void>
  readonly confirmations: Array<{
    readonly request: ConfirmRequest
    readonly done: (exit: Exit.Exit<AcquireResult, StoreError>) => void
  }>
  readonly releases: Array<ReleaseRequest>
  /** Sets what the reply to a release says about the place that it queued. */
  readonly requeue: (requeued: Released["requeued"]) => void
  /** The waiters' listeners. */
  readonly listeners: ReadonlySet<(wakeUp: WakeUp) => void>
  readonly notify: (wakeUp: WakeUp) => void
  /** Returns the backend's time, in microseconds, `millis` milliseconds after the start of the test. */
  readonly micros: (millis: number) => number
}>()("test/Backend") {}

/** A message about a grant, which lasts for the confirm period by default. */
export const turn = (grant: Omit<Grant, "millis">, millis = 1500): WakeUp => ({
  _tag: "YourTurn",
  grant: { ...grant, millis }
})

const store = Layer.effectContext(Effect.gen(function*() {
  const calls: Array<string> = []
  const waiting: Array<(exit: Exit.Exit<AcquireResult, StoreError>) => void> = []
  const confirmations: Array<Backend["Service"]["confirmations"][number]> = []
  const releases: Array<ReleaseRequest> = []
  let requeued: Released["requeued"]
  const listeners = new Set<(wakeUp: WakeUp) => void>()
  // Far from the test's clock, to reveal comparisons between times on different clocks
  const micros = (millis: number) => 1_700_000_000_000_000 + millis * 1000
  return Context.make(
    MutexStore,
    MutexStore.of({
      acquire: ({ mode }, done) => {
        calls.push(mode)
        if (mode === "try") done(Exit.succeed(refusal(undefined)))
        else waiting.push(done)
        return () => {}
      },
      confirm: (request, done) => {
        calls.push("confirm")
        confirmations.push({ request, done })
      },
      guard: (requests, done) => {
        calls.push("renew")
        done(Exit.succeed(requests.map(() => ({ _tag: "Renewed" }))))
        return () => {}
      },
      release: (request, done) => {
        calls.push("release")
        releases.push(request)
        done(Exit.succeed({ requeued }))
      },
      isReady: () => true,
      owner: () => Effect.succeed({ _tag: "Free" } as const),
      changes: () => Effect.succeed({ next: Effect.never, bound: undefined }),
      inbox: () =>
        Effect.succeed({
          listen: (_mutex, _id, listener) => {
            listeners.add(listener)
            return () => listeners.delete(listener)
          },
          bound: undefined
        }),
      inspect: () => Effect.die("not asked"),
      list: Stream.empty,
      forceRelease: () => Effect.die("not asked"),
      jobs: {
        read: () => Effect.die("not asked"),
        claim: () => Effect.die("not asked"),
        end: () => Effect.die("not asked"),
        steer: () => Effect.die("not asked")
      }
    })
  ).pipe(Context.add(Backend, {
    calls,
    reply: (exit) => Effect.sync(() => waiting.pop()!(exit)),
    confirmations,
    releases,
    requeue: (place) => requeued = place,
    listeners,
    notify: (wakeUp) => listeners.forEach((listener) => listener(wakeUp)),
    micros
  }))
}))

export const granting = (options: Mutex.Options = {}) =>
  Mutex.layer({ processName: "us", ...options }).pipe(
    Layer.provideMerge(store),
    Layer.provideMerge(Logger.layer([]))
  )

export const GrantingLive = granting()

/** The test's clock on a machine that was suspended for `state.millis`. Its monotonic time lags behind by that much. */
export const suspending = Effect.map(Clock.Clock, (base) => {
  const state = { millis: 0 }
  const clock: Clock.Clock = {
    ...base,
    monotonicTimeNanosUnsafe: () => base.monotonicTimeNanosUnsafe() - BigInt(state.millis) * 1_000_000n
  }
  return { state, clock }
})
