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
import type { RenewalGroup } from "./leaseDeadline.ts"
import type { Recorder } from "./metricsRecorder.ts"
import { socketsRead } from "./replyTimeout.ts"
import { noReply, reply, toFailure } from "./storeFailure.ts"
import type { TimerQueue } from "./timerQueue.ts"
import type { Slice } from "./workSlices.ts"

/** The groups that one request renews, and the leases that were in them when it was sent. */
interface Batch<L> {
  readonly leases: ReadonlyArray<L>
  readonly groups: ReadonlyArray<RenewalGroup>
}

/** The reply for one lease. */
type Reply = { readonly _tag: "Renewed" } | { readonly _tag: "Lost" } | {
  readonly _tag: "Failed"
  readonly error: StoreError
}

interface Renewal<L extends AnyLease, A extends Reply> {
  /** The open leases. `place` moves a group whose `nextRenewal` has changed. */
  readonly deadlines: DueLeases<L>
  readonly recorder: Recorder
  /** The name of the request in errors, and the name of its span. */
  readonly operation: string
  readonly span: string
  /** A singular noun for log messages. */
  readonly what: string
  /** Must close before `fibers`: requests that are interrupted while the layer closes have not failed. */
  readonly timers: TimerQueue
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
  /**
   * Calls `done` once, with a reply for each lease. Replies passed to `onReply` count even if the request fails
   * afterwards. Returns a function that abandons the request. `batch` never changes, and is the same list again if it
   * contains a single group that has stayed the same.
   */
  readonly send: (
    batch: ReadonlyArray<L>,
    done: (exit: Exit.Exit<ReadonlyArray<A>, StoreError>) => void,
    onReply: (index: number, reply: A) => void
  ) => () => void
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
  const { metrics, recorder, deadlines, timers, what } = renewal
  const fork = yield* FiberSet.runtime(fibers)()
  const timeoutMillis = Duration.toMillis(renewal.timeout)

  /** Never zero: if a store replied immediately, the loop would never yield to the event loop. */
  const nextStep = Effect.fnUntraced(function*(group: RenewalGroup, now: Instant, outcome: Outcome) {
    const step = group.step ??= yield* Schedule.toStep(renewal.schedule)
    return yield* Pull.matchEffect(step(now.wall, outcome), {
      onSuccess: ([, delay]) => Effect.succeed(Math.max(1, Duration.toMillis(delay))),
      onFailure: Effect.failCause,
      onDone: () => Effect.succeed(Infinity)
    })
  })

  const nextDelay = (group: RenewalGroup, now: Instant) =>
    Effect.map(
      nextStep(group, now, { _tag: "Failed" }),
      (delay) => Number.isFinite(delay) ? delay : pauseMillis
    )

  /** Asks the user's `guard` schedule, after the grant and after each renewal, when to renew next. */
  const setPace = Effect.fnUntraced(function*({ group }: L, ttl: Duration.Duration) {
    const pace = yield* nextStep(group, deadlines.now(), { _tag: "Renewed", ttl })
    // The reply to a renewal in flight decides when the next one is due
    if (!group.isOpen() || group.renewing) return
    group.paceAt(pace)
    deadlines.place(group)
  })

  const paced = (lease: L) => {
    if (renewal.pace === undefined) return
    fork(Effect.catchCause(
      setPace(lease, renewal.pace(lease)),
      (cause) => log.error("The guard crashed; renewing at ttl", cause)
    ))
  }

  const retryAfter = (group: RenewalGroup, now: Instant, delay: number) => {
    // An outage may end shortly before the deadline. A user's schedule is followed unchanged
    const longest = renewal.pace === undefined ? Math.max(leastRetryMillis, group.left(now) / 2) : Infinity
    // Timers have a resolution of one millisecond
    group.nextRenewal = Math.min(group.nextRenewal, Math.ceil(now.monotonic + Math.min(delay, longest)))
    deadlines.place(group)
  }

  /** Retries groups after a pause, because an attempt for them crashed. */
  const recover = (
    groups: ReadonlyArray<RenewalGroup>,
    renewing: boolean,
    cause: Cause.Cause<never>
  ): Effect.Effect<void> => {
    const soon = deadlines.now().monotonic + pauseMillis
    for (const group of groups) {
      // Another attempt has taken over this group
      if (!group.isOpen() || group.renewing !== renewing) continue
      group.renewing = false
      group.nextRenewal = Math.min(group.nextRenewal, soon)
      deadlines.place(group)
    }
    return log.error(`The renewal of a ${what} crashed; retrying`, cause)
  }

  const watch = (groups: ReadonlyArray<RenewalGroup>, renewing: boolean, attempt: Effect.Effect<void>) =>
    fork(Effect.catchCause(attempt, (cause) => recover(groups, renewing, cause)))

  /** Returns the reply for each group. Unless all leases were renewed, the groups are separated first. */
  const repliesOf = (
    { leases, groups }: Batch<L>,
    exit: Exit.Exit<ReadonlyArray<A>, StoreError>,
    replies: ReadonlyArray<A | undefined>
  ): ReadonlyArray<readonly [RenewalGroup, Reply]> => {
    const all: ReadonlyArray<Reply> = Exit.match(exit, {
      onSuccess: (all) => all,
      onFailure: (cause) => {
        const failed: Reply = { _tag: "Failed", error: toFailure(renewal.operation, cause) }
        return leases.map((_, i) => replies[i] ?? failed)
      }
    })
    const [reply] = all
    // With too few replies, the attempt crashes below
    if (reply !== undefined && all.length === leases.length && all.every(({ _tag }) => _tag === "Renewed")) {
      return groups.map((group) => [group, reply])
    }
    const byLease = new Map(leases.map((lease, i) => [lease, all[i]!]))
    return groups.flatMap(deadlines.separate).map((group) => [group, byLease.get(deadlines.leasesOf(group)[0]!)!])
  }

  /** Extends groups that were renewed by the same request, and merges them if their leases allow it. */
  const extend = (groups: ReadonlyArray<RenewalGroup>, sent: Instant) => {
    let shared: RenewalGroup | undefined
    for (const group of groups) {
      group.renewing = false
      group.failure = undefined
      if (renewal.pace === undefined) group.step = undefined
      group.extend(sent)
      if (renewal.pace === undefined && shared !== undefined && deadlines.join(shared, group)) continue
      deadlines.place(shared = group)
    }
    if (renewal.pace !== undefined) { for (const group of groups) paced(deadlines.leasesOf(group)[0]!) }
  }

  const settle = (
    batch: Batch<L>,
    exit: Exit.Exit<ReadonlyArray<A>, StoreError>,
    replies: ReadonlyArray<A | undefined>,
    sent: Instant
  ): void => {
    const now = deadlines.now()
    const renewed: Array<RenewalGroup> = []
    const lost: Array<readonly [RenewalGroup, Extract<A, { readonly _tag: "Lost" }>]> = []
    const failed: Array<RenewalGroup> = []
    const newlyFailing: Array<L> = []
    for (const [group, reply] of repliesOf(batch, exit, replies)) {
      // The lease has ended in the meantime, so the reply no longer matters
      if (!group.isOpen()) continue
      if (reply._tag === "Renewed") renewed.push(group)
      else if (reply._tag === "Lost") lost.push([group, reply as Extract<A, { readonly _tag: "Lost" }>])
      else {
        failed.push(group)
        if (!group.isFailing) newlyFailing.push(...deadlines.leasesOf(group))
        group.failure = reply.error
      }
    }
    const leases = renewed.map(deadlines.leasesOf)
    recorder.count(metrics.renewed, leases.flat())
    recorder.least(metrics.timeLeft, renewed.map((group) => Math.max(0, group.left(now))), leases)
    extend(renewed, sent)
    for (const [group, reply] of lost) {
      const [lease] = deadlines.leasesOf(group) as [L]
      group.renewing = false
      recorder.update(metrics.lost, 1, lease.mutex)
      renewal.lost(lease, reply)
    }
    if (failed.length === 0) return
    recorder.count(metrics.failed, failed.flatMap(deadlines.leasesOf))
    const [first] = newlyFailing
    const warning = first === undefined ? Effect.void : Effect.annotateLogs(
      log.warning(
        `${newlyFailing.length} ${what}(s) could not be renewed; retrying until their deadlines: ` +
          first.group.failure!.message
      ),
      first.annotations
    )
    // A failed group stays marked as renewing until its delay is known, and may end before then. A user's schedule may
    // be slow, so the steps for several groups run concurrently
    const pauses = Effect.forEach(
      failed,
      (group) =>
        Effect.map(nextDelay(group, now), (delay) => {
          group.renewing = false
          if (group.isOpen()) retryAfter(group, now, delay)
        }),
      { concurrency: renewal.pace === undefined ? 1 : "unbounded", discard: true }
    )
    watch(failed, true, Effect.andThen(warning, pauses))
  }

  const sendInSpan: typeof renewal.send = (leases, done, onReply) => {
    const request = Effect.callback<ReadonlyArray<A>, StoreError>((resume) =>
      Effect.sync(renewal.send(leases, resume, onReply))
    )
    const fiber = fork(tracing.span(renewal.span, () => ({
      root: true,
      attributes: { "simba.leases": leases.length, ...(leases.length === 1 ? renewal.attributes(leases[0]!) : {}) }
    }), request))
    fiber.addObserver(done)
    return () => fiber.interruptUnsafe()
  }
  const send = (yield* Effect.withFiber((fiber) => Effect.succeed(tracing.isTracing(fiber))))
    ? sendInSpan
    : renewal.send

  /** Sends a batch without a fiber, unless it has a span. */
  const renew = ({ groups, leases: taken }: Batch<L>): void => {
    const leases = groups.length === 1 ? deadlines.sentOf(groups[0]!, taken) : taken
    const sent = deadlines.now()
    const replies: Array<A | undefined> = []
    let isOver = false
    let abandon: () => void = () => {}
    const end = (exit: Exit.Exit<ReadonlyArray<A>, StoreError>) => {
      if (isOver || timers.isClosed()) return
      isOver = true
      unset()
      try {
        settle({ leases, groups }, exit, replies, sent)
      } catch (error) {
        fork(recover(groups, true, Cause.die(error)))
      }
    }
    const timeOut = () => {
      end(Exit.fail(noReply(renewal.operation, renewal.timeout)))
      abandon()
    }
    const unset = timers.at(
      sent.monotonic + timeoutMillis,
      () => timers.isClosed() ? abandon() : fork(Effect.andThen(socketsRead, Effect.sync(timeOut)))
    )
    const onReply = (index: number, reply: A) => void (replies[index] = reply)
    abandon = reply<ReadonlyArray<A>, () => void>((done) => send(leases, done, onReply), end) ?? abandon
  }

  const ask = Effect.fnUntraced(function*(group: RenewalGroup, probe: Effect.Effect<boolean>) {
    const delay = (yield* probe) ? 0 : yield* nextDelay(group, deadlines.now())
    // If a renewal has started without waiting for the probe, that renewal decides when the next one is due
    if (group.isOpen() && !group.renewing) retryAfter(group, deadlines.now(), delay)
  })

  /**
   * Sends one batch of healthy leases and one of failing leases. To save wake-ups, leases that are due soon join a
   * batch or follow a full one. Returns whether the batch of healthy leases is full.
   */
  const renewSome = (from: number, slice: Slice, isFollowing: boolean): boolean => {
    const healthy = { leases: new Array<L>(), groups: new Array<RenewalGroup>() }
    const failing = { leases: new Array<L>(), groups: new Array<RenewalGroup>() }
    const probes: Array<readonly [RenewalGroup, Effect.Effect<boolean>]> = []
    let isFull = false
    const fits = ({ isFailing, leases: { length } }: RenewalGroup) => {
      const hasRoom = (isFailing ? failing : healthy).leases.length + length <= renewal.batchSize
      if (!hasRoom && !isFailing) isFull = true
      return hasRoom && (probes.length === 0 || slice.hasRoom())
    }
    const take = (group: RenewalGroup) => {
      group.nextRenewal = Infinity
      const leases = deadlines.leasesOf(group)
      // Leases with a probe do not share groups
      const probe = renewal.probe?.(leases[0]!)
      if (probe !== undefined) return probes.push([group, probe])
      group.renewing = true
      const batch = group.isFailing ? failing : healthy
      batch.groups.push(group)
      return batch.leases.push(...leases)
    }
    let group: RenewalGroup | undefined
    while ((group = deadlines.takeDue(fits)) !== undefined) take(group)
    for (let next = deadlines.first; next !== undefined; next = deadlines.first) {
      const [own, other] = next.isFailing ? [failing, healthy] : [healthy, failing]
      const isJoined = own.groups.length > 0 || (isFollowing && !next.isFailing) ||
        (other.groups.length === 0 && probes.length > 0)
      if (!isJoined || next.nextRenewal > from + (next.isFailing ? earlyRetryMillis : next.options.early)) break
      if (!fits(next)) break
      // The heap now orders the group by its end
      take(next)
      deadlines.place(next)
    }
    for (const batch of [healthy, failing]) if (batch.groups.length > 0) renew(batch)
    // An earlier probe, a user's effect, may have ended this lease
    for (const [group, probe] of probes) if (group.isOpen()) watch([group], false, ask(group, probe))
    return isFull
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
