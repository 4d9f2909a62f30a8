/** From asking for a mutex to being granted it: one attempt when it is free, a place in the queue when it is not. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { ContenderId, MutexName } from "../../MutexName.ts"
import * as MutexSchedule from "../../MutexSchedule.ts"
import type { AcquireRequest, AcquireResult, MutexStore, Ticket, WakeUp } from "../../MutexStore.ts"
import { AcquireTimeout, BackendError, type ProtocolError } from "../../SimbaError.ts"
import type { Subscription } from "../../Subscriber.ts"
import { instant } from "../lease/deadline.ts"
import type { LeaseTable } from "../lease/leaseTable.ts"
import * as tracing from "../tracing.ts"
import { annotations, HeldLease, type Terms } from "./heldLease.ts"
import type { Checked } from "./leaseOptions.ts"

export interface Attempt extends Checked {
  readonly mutex: MutexName
  readonly id: ContenderId
  readonly confirmTimeout: Duration.Duration
  readonly terms: Terms
}

export type Refused = Extract<AcquireResult, { readonly _tag: "Refused" }>
export type StoreError = BackendError | ProtocolError

export const isRefused = (result: HeldLease | Refused): result is Refused => "_tag" in result

/**
 * One request. The lease counts from the instant before it is sent; an answer so late that nothing is left of it is asked
 * for again, and the store recognises the owner. What is over by `maxHold` alone would be again, and is handed out.
 */
export const send = (
  store: MutexStore["Service"],
  leases: LeaseTable,
  attempt: Attempt,
  request: Pick<AcquireRequest, "mode" | "ticket">
): Effect.Effect<HeldLease | Refused, StoreError> =>
  Effect.suspend(() => {
    const sent = leases.now()
    const { confirmTimeout: confirm, id, maxLocalHandOffs, mutex, terms } = attempt
    const { mode, ticket } = request
    return Effect.flatMap(
      store.acquire({
        mutex,
        id,
        confirm,
        lease: terms.lease,
        mode,
        ticket,
        unfair: terms.unfair,
        reserve: maxLocalHandOffs
      }),
      (result): Effect.Effect<HeldLease | Refused, StoreError> => {
        const now = leases.now()
        leases.recorder.update(MutexMetrics.acquireLatency, now.monotonic - sent.monotonic, mutex)
        if (result._tag === "Refused") return Effect.succeed(result)
        // Nobody would renew it or watch its deadline
        if (leases.timers.isClosed()) return Effect.fail(closed())
        const holding = new HeldLease(mutex, id, result.token, terms, sent)
        return holding.serverLeft(now) > holding.margin
          ? Effect.succeed(holding)
          : send(store, leases, attempt, request)
      }
    )
  })

export const closed = () =>
  new BackendError({
    operation: "acquire",
    retryable: false,
    cause: new Error("the layer of the mutex is closed")
  })

const isTransient = (error: StoreError): error is BackendError => error._tag === "BackendError" && error.retryable

/** Tries again through an outage of the backend, until one has lasted as long as a lease does. Others may see it, too. */
export const retryOutages = <A, R>(
  attempt: Attempt,
  effect: Effect.Effect<A, StoreError, R>,
  behind?: { readonly outage: (error: BackendError) => void }
): Effect.Effect<A, StoreError, R> =>
  Effect.catchIf(effect, isTransient, (first) => {
    // A schedule costs more than what it is for, which is rare
    let isFirst = true
    const again = Effect.suspend(() => {
      if (!isFirst) return effect
      isFirst = false
      return Effect.fail(first)
    })
    return Effect.retry(
      behind === undefined ? again : Effect.tapError(again, (error) =>
        Effect.sync(() => {
          if (isTransient(error)) behind.outage(error)
        })),
      {
        schedule: MutexSchedule.outage.pipe(Schedule.upTo({ duration: attempt.terms.lease })),
        while: isTransient
      }
    )
  })

/**
 * Sleeps until a wake-up says otherwise or the delay is over. Wake-ups are hints: what follows is another request.
 * Answers whether it was told that it is its turn. Without a timer or a race of its own: who is told asks at once.
 */
export const awaitWakeUp = (
  { bound, next }: Subscription<WakeUp>,
  { timers: alarms, now }: LeaseTable,
  delay: Duration.Duration
): Effect.Effect<boolean, BackendError> =>
  Effect.withFiber((parent) =>
    Effect.callback((resume) => {
      const fork = Effect.runForkWith(parent.context)
      let until = now().monotonic + Duration.toMillis(bound === undefined ? delay : Duration.min(delay, bound))
      let stop = () => {}
      const listen = () => {
        if (now().monotonic >= until) return resume(Effect.succeed(false))
        if (alarms.isClosed()) return resume(Effect.fail(closed()))
        const listening = fork(next)
        const cancel = alarms.at(until, () => {
          // First: whatever it ends by is not told after this
          resume(Effect.succeed(false))
          listening.interruptUnsafe()
        })
        stop = () => {
          cancel()
          listening.interruptUnsafe()
        }
        listening.addObserver((exit) => {
          cancel()
          if (Exit.isFailure(exit)) return resume(Effect.failCause(exit.cause))
          if (exit.value._tag !== "LookIn") return resume(Effect.succeed(exit.value._tag === "YourTurn"))
          // The key is gone one millisecond after its remaining time has reached zero
          until = Math.min(until, now().monotonic + Duration.toMillis(exit.value.delay) + 1)
          listen()
        })
      }
      listen()
      return Effect.sync(() => stop())
    })
  )

/** A waiter, until its scope closes. */
const counted = ({ recorder }: LeaseTable, { mutex }: Attempt) =>
  Effect.acquireRelease(
    Clock.clockWith((clock) =>
      Effect.sync(() => {
        recorder.modify(MutexMetrics.waiters, 1, mutex)
        return instant(clock).monotonic
      })
    ),
    (since) =>
      Clock.clockWith((clock) =>
        Effect.sync(() => {
          recorder.modify(MutexMetrics.waiters, -1, mutex)
          recorder.update(MutexMetrics.waitTime, instant(clock).monotonic - since, mutex)
        })
      )
  )

/** Subscribes first and queues afterwards, so that no hand-off can fall between the two. */
const wait = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  leases: LeaseTable,
  attempt: Attempt,
  onRefused: (refused: Refused) => void
) {
  yield* counted(leases, attempt)
  const wakeUps = yield* retryOutages(attempt, store.wakeUps(attempt.mutex, attempt.id))
  const lease = Duration.sum(attempt.ttl, attempt.transition)
  const step = yield* Schedule.toStep(MutexSchedule.contend({ confirm: attempt.confirmTimeout, lease }))
  let ticket: Ticket | undefined
  let called = false
  for (;;) {
    const result = yield* retryOutages(
      attempt,
      Effect.suspend(() => send(store, leases, attempt, { mode: "wait", ticket }))
    )
    if (!isRefused(result)) {
      if (called) leases.recorder.update(MutexMetrics.handOffs, 1, attempt.mutex)
      return result
    }
    onRefused(result)
    ticket = result.ticket ?? ticket
    const now = yield* Clock.currentTimeMillis
    const [delay] = yield* Pull.catchDone(step(now, result), () => Effect.succeed([lease, lease] as const))
    called = yield* awaitWakeUp(wakeUps, leases, delay)
  }
}, Effect.scoped)

const outcomeOf = (exit: Exit.Exit<unknown, StoreError | AcquireTimeout>): keyof typeof MutexMetrics.attempts => {
  if (Exit.isSuccess(exit)) return "refused"
  const error = Exit.findErrorOption(exit)
  return Option.isSome(error)
    ? error.value._tag === "AcquireTimeout" ? "timeout" : "error"
    : Cause.hasInterruptsOnly(exit.cause)
    ? "interrupted"
    : "error"
}

/**
 * Says so where somebody listens; otherwise it costs no more than to see that nobody does. A logger or a span that
 * throws is no reason to keep the lease from the caller, who alone can give it back.
 */
const announce = (holding: HeldLease, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> => {
  const logged = LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
    ? Effect.void
    : Effect.ignoreCause(Effect.annotateLogs(Effect.logDebug("Mutex acquired"), annotations(holding)))
  return tracing.isTracing(fiber)
    ? Effect.andThen(Effect.ignoreCause(Effect.annotateCurrentSpan(tracing.attributes(holding))), logged)
    : logged
}

/**
 * Runs `granting` so that nothing is left behind: `giveBack` follows, in the background, when it ends otherwise than with
 * an answer in the caller's hands.
 */
export const withUndo = <A, E extends StoreError | AcquireTimeout, R>(
  leases: LeaseTable,
  attempt: Attempt,
  granting: Effect.Effect<A, E, R>,
  granted: () => HeldLease | undefined,
  giveBack: () => Effect.Effect<void>
): Effect.Effect<A, E, R> =>
  Effect.withFiber((fiber) => {
    const done = Effect.onExit(granting, (exit) => {
      const holding = Exit.isSuccess(exit) ? granted() : undefined
      const outcome = holding === undefined ? outcomeOf(exit) : "granted"
      leases.recorder.update(MutexMetrics.attempts[outcome], 1, attempt.mutex)
      if (holding !== undefined) return announce(holding, fiber)
      return Exit.isSuccess(exit) ? Effect.void : giveBack()
    })
    return tracing.spanOn(fiber, "simba.acquire", () => ({ attributes: tracing.attributes(attempt) }), done)
  })

/** For at most `timeout`, if there is one. `owner` is whom the mutex is known to be owned by in the end. */
export const withTimeout = <A, E, R>(
  { mutex }: Attempt,
  timeout: Duration.Duration | undefined,
  granted: Effect.Effect<A, E, R>,
  owner: () => string | undefined
): Effect.Effect<A, E | AcquireTimeout, R> =>
  timeout === undefined ? granted : Effect.timeoutOrElse(granted, {
    duration: timeout,
    orElse: () => {
      const known = owner()
      return Effect.fail(new AcquireTimeout({ mutex, timeout, ...(known === undefined ? {} : { owner: known }) }))
    }
  })

/** One request that never queues. Call it uninterruptibly, with what restores interruption. */
export const tryAcquire = (
  store: MutexStore["Service"],
  leases: LeaseTable,
  attempt: Attempt,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<Option.Option<HeldLease>, StoreError> =>
  Effect.suspend(() => {
    let granted: HeldLease | undefined
    return withUndo(
      leases,
      attempt,
      Effect.map(restore(send(store, leases, attempt, { mode: "try" })), (result) => {
        if (isRefused(result)) return Option.none()
        leases.add(granted = result)
        return Option.some(result)
      }),
      () => granted,
      () => leases.undo(attempt, granted)
    )
  })

/** Waits for the mutex, for at most `timeout`. Call it uninterruptibly, with what restores interruption. */
export const acquire = (
  store: MutexStore["Service"],
  leases: LeaseTable,
  attempt: Attempt,
  timeout: Duration.Duration | undefined,
  restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.Effect<HeldLease, StoreError | AcquireTimeout> =>
  Effect.suspend(() => {
    let owner: string | undefined
    let granted: HeldLease | undefined
    const onRefused = (refused: Refused) => {
      owner = refused.ownership._tag === "Held" ? refused.ownership.owner : undefined
    }
    const granting = retryOutages(attempt, send(store, leases, attempt, { mode: "try" })).pipe(
      Effect.flatMap((result) => {
        if (!isRefused(result)) return Effect.succeed(result)
        onRefused(result)
        return wait(store, leases, attempt, onRefused)
      }),
      Effect.tap((holding) => Effect.sync(() => leases.add(granted = holding)))
    )
    return withUndo(
      leases,
      attempt,
      restore(withTimeout(attempt, timeout, granting, () => owner)),
      () => granted,
      () => leases.undo(attempt, granted)
    )
  })
