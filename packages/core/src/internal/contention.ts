/** From asking for a mutex to being granted it: one attempt when it is free, a place in the queue when it is not. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import { AcquireTimeout, type BackendError, type ProtocolError } from "../Errors.ts"
import * as MutexSchedule from "../MutexSchedule.ts"
import type { AcquireRequest, AcquireResult, MutexStore, WakeUps } from "../MutexStore.ts"
import type { MutexName, WireId } from "../Names.ts"
import type { Ticket } from "../Ownership.ts"
import { Holding, instant } from "./holding.ts"
import type { Leases } from "./leases.ts"

export interface Attempt {
  readonly mutex: MutexName
  readonly id: WireId
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly confirm: Duration.Duration
}

type Refused = Extract<AcquireResult, { readonly _tag: "Refused" }>
type StoreError = BackendError | ProtocolError

const isRefused = (result: Holding | Refused): result is Refused => "_tag" in result

/**
 * One request. The lease counts from the instant before it is sent; an answer so late that nothing is left of it is asked
 * for again, and the store recognises the owner.
 */
const ask = (
  store: MutexStore["Service"],
  attempt: Attempt,
  request: Pick<AcquireRequest, "mode" | "ticket">
): Effect.Effect<Holding | Refused, StoreError> =>
  Clock.clockWith((clock) => {
    const sent = instant(clock)
    const { confirm, id, mutex, transition, ttl } = attempt
    return Effect.flatMap(
      store.acquire({ mutex, id, confirm, lease: Duration.sum(ttl, transition), ...request }),
      (result): Effect.Effect<Holding | Refused, StoreError> => {
        if (result._tag === "Refused") return Effect.succeed(result)
        const holding = new Holding({ mutex, id, token: result.token, ttl, transition, sent })
        return holding.left(instant(clock)) > 0 ? Effect.succeed(holding) : ask(store, attempt, request)
      }
    )
  })

/** Tries again through an outage of the backend, until one has lasted as long as a lease does. */
const throughOutages = <A, R>(
  attempt: Attempt,
  effect: Effect.Effect<A, StoreError, R>
): Effect.Effect<A, StoreError, R> =>
  Effect.retry(effect, {
    schedule: MutexSchedule.outage.pipe(Schedule.upTo({ duration: Duration.sum(attempt.ttl, attempt.transition) })),
    while: (error) => error._tag === "BackendError" && error.retryable
  })

/** Sleeps until a wake-up says otherwise or the delay is over. Wake-ups are hints: what follows is another request. */
const awaitTurn = Effect.fnUntraced(function*(wakeUps: WakeUps, delay: Duration.Duration) {
  const clock = yield* Clock.Clock
  const bounded = wakeUps.bound === undefined ? delay : Duration.min(delay, wakeUps.bound)
  let until = instant(clock).monotonic + Duration.toMillis(bounded)
  for (;;) {
    const left = until - instant(clock).monotonic
    if (left <= 0) return
    const wakeUp = yield* Effect.timeoutOption(wakeUps.next, Duration.millis(left))
    if (Option.isNone(wakeUp) || wakeUp.value._tag !== "LookIn") return
    // The key is gone one millisecond after its remaining time has reached zero
    until = Math.min(until, instant(clock).monotonic + Duration.toMillis(wakeUp.value.delay) + 1)
  }
})

/** Subscribes first and queues afterwards, so that no hand-off can fall between the two. */
const wait = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  attempt: Attempt,
  onRefused: (refused: Refused) => void
) {
  const wakeUps = yield* throughOutages(attempt, store.wakeUps(attempt.mutex, attempt.id))
  const lease = Duration.sum(attempt.ttl, attempt.transition)
  const step = yield* Schedule.toStep(MutexSchedule.contend({ confirm: attempt.confirm, lease }))
  let ticket: Ticket | undefined
  for (;;) {
    const result = yield* throughOutages(attempt, Effect.suspend(() => ask(store, attempt, { mode: "wait", ticket })))
    if (!isRefused(result)) return result
    onRefused(result)
    ticket = result.ticket ?? ticket
    const now = yield* Clock.currentTimeMillis
    const [delay] = yield* Pull.catchDone(step(now, result), () => Effect.succeed([lease, lease] as const))
    yield* awaitTurn(wakeUps, delay)
  }
}, Effect.scoped)

/**
 * Runs `granting` so that nothing is left behind: whatever was granted or queued is given back in the background when
 * it ends otherwise than with a lease in the caller's hands.
 */
const undone = <A, E, R>(
  leases: Leases,
  attempt: Attempt,
  granting: (onGrant: (holding: Holding) => void) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    let granted: Holding | undefined
    return Effect.onExit(
      granting((holding) => {
        granted = holding
        leases.add(holding)
      }),
      (exit) => Exit.isSuccess(exit) ? Effect.void : leases.undo(attempt, granted)
    )
  })

/** One request that never queues. Call it uninterruptibly, with what restores interruption. */
export const tryAcquire = (
  store: MutexStore["Service"],
  leases: Leases,
  attempt: Attempt,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<Option.Option<Holding>, StoreError> =>
  undone(leases, attempt, (onGrant) =>
    Effect.map(restore(ask(store, attempt, { mode: "try" })), (result) => {
      if (isRefused(result)) return Option.none()
      onGrant(result)
      return Option.some(result)
    }))

/** Waits for the mutex, for at most `timeout`. Call it uninterruptibly, with what restores interruption. */
export const acquire = (
  store: MutexStore["Service"],
  leases: Leases,
  attempt: Attempt,
  timeout: Duration.Duration | undefined,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<Holding, StoreError | AcquireTimeout> =>
  undone(leases, attempt, (onGrant) => {
    let owner: string | undefined
    const onRefused = (refused: Refused) => {
      owner = refused.ownership._tag === "Held" ? refused.ownership.owner : undefined
    }
    const granted = throughOutages(attempt, ask(store, attempt, { mode: "try" })).pipe(
      Effect.flatMap((result) => {
        if (!isRefused(result)) return Effect.succeed(result)
        onRefused(result)
        return wait(store, attempt, onRefused)
      }),
      Effect.tap((holding) => Effect.sync(() => onGrant(holding)))
    )
    if (timeout === undefined) return restore(granted)
    return restore(Effect.timeoutOrElse(granted, {
      duration: timeout,
      orElse: () =>
        Effect.fail(
          new AcquireTimeout({ mutex: attempt.mutex, timeout, ...(owner === undefined ? {} : { owner }) })
        )
    }))
  })
