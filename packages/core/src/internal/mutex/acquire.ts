/**
 * A single acquire: sends a request if the mutex may be free, otherwise waits in line. Cleans up if it fails or is
 * interrupted. Called by `service`, uninterruptibly. `localQueue` contains the state shared by the layer's fibers.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as MutexMetrics from "../../MutexMetrics.ts"
import { AcquireTimeout, type BackendError, type LeaseLost, type StoreError } from "../../SimbaError.ts"
import { isTransient } from "../lease/storeFailure.ts"
import { outagePause } from "../lease/storeRetries.ts"
import * as log from "../log.ts"
import * as tracing from "../tracing.ts"
import { type Attempt, closed, isRefused, type Refused, Request } from "./attempt.ts"
import type { HeldLease } from "./heldLease.ts"
import type { LocalQueue } from "./localQueue.ts"
import type { LocalQueues } from "./localQueues.ts"
import { LocalWaiter } from "./localWaiter.ts"

export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Returns the attempt's outcome, as counted in the metric. */
const outcomeOf = (
  exit: Exit.Exit<HeldLease | undefined, StoreError | AcquireTimeout | LeaseLost>
): keyof typeof MutexMetrics.mutex.attempts => {
  if (Exit.isSuccess(exit)) return exit.value === undefined ? "refused" : "granted"
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  if (error === undefined) return Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "error"
  // `acquireAll` stops waiting when it loses a lease that it already held
  if (error._tag === "LeaseLost") return "interrupted"
  return error._tag === "AcquireTimeout" ? "timeout" : "error"
}

/** Adds the lease to the span and to the debug log, if either is enabled. */
const report = (lease: HeldLease, fiber: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> => {
  const logged = LogLevel.isGreaterThan(fiber.cache.minimumLogLevel, "Debug")
    ? Effect.void
    : Effect.annotateLogs(log.debug("Mutex acquired"), lease.annotations)
  return tracing.isTracing(fiber) ? Effect.andThen(tracing.annotate(lease), logged) : logged
}

/**
 * Applies the timeout, if there is one. If an outage makes it impossible to know whether the mutex is taken, a timeout
 * fails with the outage instead of `AcquireTimeout`. With a timeout of zero, `granting` is at most one request, and its
 * reply is awaited.
 */
const withTimeout = (
  { mutex }: Attempt,
  timeout: Duration.Duration | undefined,
  granting: Effect.Effect<HeldLease | undefined, StoreError>,
  queue: () => LocalQueue | undefined
): Effect.Effect<HeldLease | undefined, StoreError | AcquireTimeout> => {
  if (timeout === undefined) return granting
  const busy = () => Effect.fail(new AcquireTimeout({ mutex, timeout, ...queue()?.holder }))
  if (Duration.isZero(timeout)) return Effect.filterOrElse(granting, Predicate.isNotUndefined, busy)
  const orElse = (): Effect.Effect<never, AcquireTimeout | BackendError> => {
    const outage = queue()?.problemOf(timeout)
    return outage === undefined ? busy() : Effect.fail(outage)
  }
  return Effect.timeoutOrElse(granting, { duration: timeout, orElse })
}

/**
 * Sends one request if no fiber in this layer holds the mutex or waits for it. In `wait` mode, the caller joins the
 * line if it is refused or cannot send a request.
 */
const grantTo = (
  waiter: LocalWaiter,
  queue: LocalQueue,
  { context, isClosed }: LocalQueues,
  mode: "try" | "wait"
): Effect.Effect<HeldLease | undefined, StoreError> => {
  const { attempt } = waiter
  if (mode === "try" && !queue.isOpen()) return Effect.undefined
  if (mode === "wait" && !queue.comesFirst()) return queue.join(waiter)
  const asked = context.now().monotonic
  queue.ask(waiter, asked)
  // After this time, a request without a reply counts as an outage
  const until = asked + attempt.settings.leaseMillis
  const once = Effect.callback<HeldLease | Refused, StoreError>((resume) => {
    if (isClosed()) return resume(Effect.fail(closed()))
    const request = new Request(context, attempt, { mode: "try" }, resume)
    request.start(until)
    return Effect.sync(() => request.cancel())
  })
  const persist = (failures: number): typeof once =>
    Effect.catchIf(once, isTransient, (outage) => {
      queue.outage(outage)
      if (context.now().monotonic >= until) return Effect.fail(outage)
      return Effect.flatMap(Effect.sleep(outagePause(failures, context.random())), () => persist(failures + 1))
    })
  return Effect.flatMap(
    mode === "try" ? once : persist(0),
    (result): Effect.Effect<HeldLease | undefined, StoreError> => {
      if (!isRefused(result)) {
        queue.granted(waiter, result)
        return Effect.succeed(result)
      }
      queue.refused(result)
      if (mode === "wait") return queue.join(waiter)
      queue.abandon(waiter)
      return Effect.undefined
    }
  )
}

/**
 * Acquires the mutex or reports why not, with a span and a metric for the attempt. After a failure or an interruption,
 * the fiber leaves the line.
 */
const obtain = (
  queues: LocalQueues,
  attempt: Attempt,
  mode: "try" | "wait",
  timeout: Duration.Duration | undefined,
  restore: Restore
): Effect.Effect<HeldLease | undefined, StoreError | AcquireTimeout> =>
  Effect.withFiber((fiber) => {
    if (queues.isClosed()) return Effect.fail(closed())
    const { context } = queues
    // `tasks` resumes many waiters in slices. Errors are delivered by the waiting fiber's own scheduler
    const waiter = new LocalWaiter(attempt, context.tasks, fiber.currentDispatcher)
    let queue: LocalQueue | undefined
    const granting = Effect.suspend(() => grantTo(waiter, queue = queues.at(attempt.mutex), queues, mode))
    const reported = Effect.tap(
      restore(withTimeout(attempt, timeout, granting, () => queue)),
      (lease) => lease === undefined ? Effect.void : report(lease, fiber)
    )
    const attributes = () => ({ attributes: tracing.attributes(attempt) })
    // Undo outside the span: if the tracer fails, no waiter or lease must be left behind
    return Effect.onExit(tracing.spanOn(fiber, "simba.acquire", attributes, reported), (exit) => {
      context.recorder.update(MutexMetrics.mutex.attempts[outcomeOf(exit)], 1, attempt.mutex)
      return Exit.isSuccess(exit) || queue === undefined ? Effect.void : queue.giveUp(waiter)
    })
  })

/**
 * Waits for the mutex, for at most `timeout`. A timeout of zero works like `acquireIfAvailable`: it does not use a
 * timer, which would race with the reply. Must be called uninterruptibly; `restore` restores interruptibility.
 */
export const acquire = (
  queues: LocalQueues,
  attempt: Attempt,
  timeout: Duration.Duration | undefined,
  restore: Restore
) => {
  const mode = timeout !== undefined && Duration.isZero(timeout) ? "try" : "wait"
  return obtain(queues, attempt, mode, timeout, restore) as Effect.Effect<HeldLease, StoreError | AcquireTimeout>
}

/**
 * Sends one request that never queues, or none if a fiber in this layer holds the mutex or waits for it. Call it like
 * `acquire`.
 */
export const acquireIfAvailable = (queues: LocalQueues, attempt: Attempt, restore: Restore) =>
  obtain(queues, attempt, "try", undefined, restore) as Effect.Effect<HeldLease | undefined, StoreError>
