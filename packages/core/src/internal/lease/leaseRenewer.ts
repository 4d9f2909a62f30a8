/**
 * Renews the leases in a layer or a stream client in batches, with retries, before their deadlines. Started by
 * `heldLeases` and `streamTable`, which define how to send a batch and how to handle each reply.
 */
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type * as Metric from "effect/Metric"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { MutexSchedule, Renewal as Outcome } from "../../MutexSchedule.ts"
import type { StoreError } from "../../SimbaError.ts"
import * as log from "../log.ts"
import * as tracing from "../tracing.ts"
import { supervise } from "./backgroundLoop.ts"
import type { AnyLease, DueLeases } from "./dueLeases.ts"
import type { Instant } from "./instant.ts"
import type { Recorder } from "./metricsRecorder.ts"
import { storeTimeout } from "./replyTimeout.ts"
import { toFailure } from "./storeFailure.ts"
import type { Slice } from "./workSlices.ts"

/** The reply for one lease. */
type Reply = { readonly _tag: "Renewed" } | { readonly _tag: "Lost" } | {
  readonly _tag: "Failed"
  readonly error: StoreError
}

interface Renewal<L extends AnyLease, A extends Reply> {
  /** The open leases. `place` moves a lease whose `nextRenewal` has changed. */
  readonly deadlines: DueLeases<L>
  readonly recorder: Recorder
  /** The name of the request in errors, and the name of its span. */
  readonly operation: string
  readonly span: string
  /** A singular noun for log messages. */
  readonly what: string
  readonly timeout: Duration.Duration
  /** Maximum number of leases per request: enough to share a round trip, too few to block the server. */
  readonly batchSize: number
  /** The delays after failed attempts. */
  readonly schedule: MutexSchedule
  /** Returns a lease's ttl. Set only if the schedule also decides the delays between renewals. */
  readonly pace?: ((lease: L) => Duration.Duration) | undefined
  readonly metrics: {
    readonly renewed: Metric.Counter<number>
    readonly failed: Metric.Counter<number>
    readonly lost: Metric.Counter<number>
    readonly timeLeft: Metric.Histogram<number>
  }
  /** Returns a reply for each lease. Replies passed to `onReply` count even if the request fails afterwards. */
  readonly send: (
    batch: ReadonlyArray<L>,
    onReply: (index: number, reply: A) => void
  ) => Effect.Effect<ReadonlyArray<A>, StoreError>
  readonly attributes: (lease: L) => Record<string, unknown>
  readonly lost: (lease: L, reply: Extract<A, { readonly _tag: "Lost" }>) => void
  /** Returns an effect that decides whether to renew the lease, or undefined to renew it unconditionally. */
  readonly probe?: (lease: L) => Effect.Effect<boolean> | undefined
}

/** The pause before retrying a renewal that crashed. */
const pauseMillis = 1000

/** The smallest margin of any lease. */
const leastMarginMillis = 100

/** Minimum time between two warnings about late timers. */
const warnEveryMillis = 60_000

/** Minimum pause before a retry when the deadline is near. */
const leastRetryMillis = 100

/** How early a retry may be sent together with others. */
const earlyRetryMillis = 50

/** Renews the leases while the scope is open. */
export const start = Effect.fnUntraced(function*<L extends AnyLease, A extends Reply>(
  renewal: Renewal<L, A>,
  fibers: FiberSet.FiberSet
): Effect.fn.Return<{ readonly paced: (lease: L) => void }, never, Scope.Scope> {
  const { metrics, recorder, deadlines, what } = renewal
  const fork = yield* FiberSet.runtime(fibers)()

  /** Never zero: if a store replied immediately, the loop would never yield to the event loop. */
  const nextStep = Effect.fnUntraced(function*(lease: L, now: Instant, outcome: Outcome) {
    const step = lease.step ??= yield* Schedule.toStep(renewal.schedule)
    return yield* Pull.matchEffect(step(now.wall, outcome), {
      onSuccess: ([, delay]) => Effect.succeed(Math.max(1, Duration.toMillis(delay))),
      onFailure: Effect.failCause,
      onDone: () => Effect.succeed(Infinity)
    })
  })

  const nextDelay = (lease: L, now: Instant) =>
    Effect.map(
      nextStep(lease, now, { _tag: "Failed" }),
      (delay) => Number.isFinite(delay) ? delay : pauseMillis
    )

  /** Asks the user's `guard` schedule, after the grant and after each renewal, when to renew next. */
  const setPace = Effect.fnUntraced(function*(lease: L, ttl: Duration.Duration) {
    const pace = yield* nextStep(lease, deadlines.now(), { _tag: "Renewed", ttl })
    // The reply to a renewal in flight decides when the next one is due
    if (!lease.isOpen() || lease.renewing) return
    lease.paceAt(pace)
    deadlines.place(lease)
  })

  const paced = (lease: L) => {
    if (renewal.pace === undefined) return
    fork(Effect.catchCause(
      setPace(lease, renewal.pace(lease)),
      (cause) => Cause.hasInterruptsOnly(cause) ? Effect.void : log.error("The guard crashed; renewing at ttl", cause)
    ))
  }

  const retryAfter = (lease: L, now: Instant, delay: number) => {
    // An outage may end shortly before the deadline. A user's schedule is followed unchanged
    const longest = renewal.pace === undefined ? Math.max(leastRetryMillis, lease.left(now) / 2) : Infinity
    // Timers have a resolution of one millisecond
    lease.nextRenewal = Math.min(lease.nextRenewal, Math.ceil(now.monotonic + Math.min(delay, longest)))
    deadlines.place(lease)
  }

  /** Forks an attempt. If it crashes, its leases are retried after a pause. */
  const watch = (leases: ReadonlyArray<L>, renewing: boolean, attempt: Effect.Effect<void>) =>
    fork(Effect.catchCause(attempt, (cause) => {
      const soon = deadlines.now().monotonic + pauseMillis
      for (const lease of leases) {
        // Another attempt has taken over this lease
        if (!lease.isOpen() || lease.renewing !== renewing) continue
        lease.renewing = false
        lease.nextRenewal = Math.min(lease.nextRenewal, soon)
        deadlines.place(lease)
      }
      return Cause.hasInterruptsOnly(cause)
        ? Effect.void
        : log.error(`The renewal of a ${what} crashed; retrying`, cause)
    }))

  const settle = Effect.fnUntraced(function*(
    batch: ReadonlyArray<L>,
    exit: Exit.Exit<ReadonlyArray<A>, StoreError>,
    replies: ReadonlyArray<A | undefined>,
    sent: Instant
  ) {
    const now = deadlines.now()
    const failure = Exit.isFailure(exit) ? toFailure(renewal.operation, exit.cause) : undefined
    const renewed: Array<L> = []
    const timesLeft: Array<number> = []
    const failed: Array<L> = []
    let failing: L | undefined
    let newlyFailing = 0
    let error: StoreError | undefined
    for (let i = 0; i < batch.length; i++) {
      const lease = batch[i]!
      // The lease has ended in the meantime, so the reply no longer matters
      if (!lease.isOpen()) continue
      const reply: Reply = replies[i] ?? (Exit.isSuccess(exit) ? exit.value[i]! : { _tag: "Failed", error: failure! })
      if (reply._tag === "Failed") {
        recorder.update(metrics.failed, 1, lease.mutex)
        failed.push(lease)
        const wasFailing = lease.isFailing
        lease.failure = reply.error
        if (wasFailing) continue
        newlyFailing++
        failing ??= lease
        error = reply.error
        continue
      }
      lease.renewing = false
      if (reply._tag === "Renewed") {
        renewed.push(lease)
        timesLeft.push(Math.max(0, lease.left(now)))
        lease.failure = undefined
        if (renewal.pace === undefined) lease.step = undefined
        lease.extend(sent)
        deadlines.place(lease)
      } else {
        recorder.update(metrics.lost, 1, lease.mutex)
        renewal.lost(lease, reply as Extract<A, { readonly _tag: "Lost" }>)
      }
    }
    for (const lease of renewed) paced(lease)
    recorder.count(metrics.renewed, renewed)
    recorder.least(metrics.timeLeft, timesLeft, renewed)
    if (error !== undefined) {
      yield* log.warning(
        `${newlyFailing} ${what}(s) could not be renewed; retrying until their deadlines: ${error.message}`
      ).pipe(Effect.annotateLogs(failing!.annotations))
    }
    // A failed lease stays marked as renewing until its delay is known, and may end before then. A user's schedule may
    // be slow, so the steps for several leases run concurrently
    yield* Effect.forEach(
      failed,
      (lease) =>
        Effect.map(nextDelay(lease, now), (delay) => {
          lease.renewing = false
          if (lease.isOpen()) retryAfter(lease, now, delay)
        }),
      { concurrency: renewal.pace === undefined ? 1 : "unbounded", discard: true }
    )
  })

  const renew = (batch: ReadonlyArray<L>) =>
    Effect.suspend(() => {
      const sent = deadlines.now()
      const replies: Array<A | undefined> = []
      const request = tracing.span(renewal.span, () => ({
        root: true,
        attributes: { "simba.leases": batch.length, ...(batch.length === 1 ? renewal.attributes(batch[0]!) : {}) }
      }), Effect.suspend(() => renewal.send(batch, (index, reply) => void (replies[index] = reply))))
      return Effect.flatMap(
        Effect.exit(storeTimeout(request, renewal.operation, renewal.timeout)),
        (exit) => settle(batch, exit, replies, sent)
      )
    })

  const ask = Effect.fnUntraced(function*(lease: L, probe: Effect.Effect<boolean>) {
    const delay = (yield* probe) ? 0 : yield* nextDelay(lease, deadlines.now())
    // If a renewal has started without waiting for the probe, that renewal decides when the next one is due
    if (lease.isOpen() && !lease.renewing) retryAfter(lease, deadlines.now(), delay)
  })

  /**
   * Sends one batch of healthy leases and one of failing leases. To save wake-ups, leases that are due soon join a
   * batch or follow a full one. Returns whether the batch of healthy leases is full.
   */
  const renewSome = (from: number, slice: Slice, isFollowing: boolean): boolean => {
    const healthy: Array<L> = []
    const failing: Array<L> = []
    const probes: Array<readonly [L, Effect.Effect<boolean>]> = []
    const take = (lease: L) => {
      lease.nextRenewal = Infinity
      const probe = renewal.probe?.(lease)
      if (probe !== undefined) return probes.push([lease, probe])
      lease.renewing = true
      return (lease.isFailing ? failing : healthy).push(lease)
    }
    const hasRoom = () =>
      healthy.length < renewal.batchSize && failing.length < renewal.batchSize &&
      (probes.length === 0 || slice.hasRoom())
    let lease: L | undefined
    while (hasRoom() && (lease = deadlines.takeDue()) !== undefined) take(lease)
    for (let next = deadlines.first; next !== undefined && hasRoom(); next = deadlines.first) {
      const [own, other] = next.isFailing ? [failing, healthy] : [healthy, failing]
      const isJoined = own.length > 0 || (isFollowing && !next.isFailing) || (other.length === 0 && probes.length > 0)
      if (!isJoined || next.nextRenewal > from + (next.isFailing ? earlyRetryMillis : next.options.early)) break
      // The heap now orders the lease by its end
      take(next)
      deadlines.place(next)
    }
    for (const batch of [healthy, failing]) if (batch.length > 0) watch(batch, true, renew(batch))
    // An earlier probe, a user's effect, may have ended this lease
    for (const [lease, probe] of probes) if (lease.isOpen()) watch([lease], false, ask(lease, probe))
    return healthy.length === renewal.batchSize
  }

  /** Sends as many requests as fit into the slice: if turns are long, leases may end before the next turn. */
  const renewDue = (from: number, slice: Slice): boolean => {
    let isFull = false
    do isFull = renewSome(from, slice, isFull)
    while ((deadlines.hasDue || isFull) && slice.hasRoom())
    return deadlines.hasDue
  }

  let warnedAt = -Infinity
  /** Warns about late timers. Overdue work is interrupted up to one turn late, so long turns use up the margin. */
  const late = (millis: number) => {
    if (millis < leastMarginMillis / 2) return
    const margin = deadlines.all().reduce((least, { options }) => Math.min(least, options.margin), Infinity)
    const { monotonic } = deadlines.now()
    if (millis < margin / 2 || monotonic < warnedAt + warnEveryMillis) return
    warnedAt = monotonic
    recorder.run(log.warning(
      `This process was paused or too busy: timers fire ${Math.round(millis)} ms late. Leases have a margin of ` +
        `${Math.round(margin)} ms: work may continue after its ${what} has another owner. Avoid pauses, ` +
        "split long computations, or use longer leases"
    ))
  }

  yield* Effect.forkScoped(supervise(`The renewal of ${what}s`, deadlines.loop({ late, renew: renewDue })))
  return { paced }
})
