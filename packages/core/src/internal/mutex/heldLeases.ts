/**
 * The leases held by one layer. They are renewed until they are lost or released. `localQueue` adds leases and is
 * notified when they end. `leaseRenewer` renews them, `dueLeases` orders their deadlines, and `releaseSender` sends
 * releases.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import type { MutexConfig } from "../../MutexConfig.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import * as MutexSchedule from "../../MutexSchedule.ts"
import type { Ownership } from "../../MutexState.ts"
import type { AcquireResult, GuardResult, MutexStore, ReleaseRequest } from "../../MutexStore.ts"
import type { Instant } from "../lease/instant.ts"
import * as leaseRenewer from "../lease/leaseRenewer.ts"
import { LeaseTable } from "../lease/leaseTable.ts"
import * as metricsRecorder from "../lease/metricsRecorder.ts"
import { storeTimeout } from "../lease/replyTimeout.ts"
import { reply } from "../lease/storeFailure.ts"
import * as timerQueue from "../lease/timerQueue.ts"
import { type SlicedTasks, slicedTasks } from "../lease/workSlices.ts"
import * as log from "../log.ts"
import * as tracing from "../tracing.ts"
import type { HeldLease, Parting } from "./heldLease.ts"
import { LatestNames } from "./latestNames.ts"
import * as overrunMonitor from "./overrunMonitor.ts"
import * as releaseSender from "./releaseSender.ts"

/** Notified when leases end, on behalf of the fibers that wait for the same mutexes. */
export interface Lines {
  readonly lost: (lease: HeldLease) => void
  /** Returns undefined if the lease stays in this process. */
  readonly released: (lease: HeldLease, now: Instant) => Parting | undefined
}

export interface HeldLeases {
  /** Sets the listener for ended leases. */
  readonly follow: (lines: Lines) => void
  readonly now: () => Instant
  readonly recorder: metricsRecorder.Recorder
  readonly timers: timerQueue.TimerQueue
  readonly tasks: SlicedTasks
  /** Starts renewing the lease. If the layer is closed, the lease is lost and released immediately. */
  readonly add: (lease: HeldLease) => void
  /** Sends the confirmation of a grant before it returns. The reply extends or ends the lease. */
  readonly confirm: (lease: HeldLease) => void
  /**
   * Handles a report of a forced release of this lease, which may arrive before the grant. Renews the lease immediately
   * to find out.
   */
  readonly suspect: (id: string) => void
  /** Marks the lease as lost if its deadline has passed. Its timer may be late. */
  readonly check: (lease: HeldLease, now: Instant) => void
  /** Releases the mutex, and waits for at most the release timeout. Never fails: a key that is not released expires. */
  readonly release: (lease: HeldLease) => Effect.Effect<void>
  /** Releases a lease without waiting for the reply. */
  readonly giveUp: (lease: HeldLease) => Effect.Effect<void>
  /** Undoes an attempt with an unknown outcome, without waiting for the reply. */
  readonly undo: (request: Omit<ReleaseRequest, "confirm" | "lease">) => Effect.Effect<void>
}

type LossTag = keyof typeof MutexMetrics.mutex.losses

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig,
  onOverrun?: overrunMonitor.OnOverrun
): Effect.fn.Return<HeldLeases, never, Scope.Scope> {
  let lines: Lines | undefined
  const releases = yield* releaseSender.make(store, config)
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  const recorder = metricsRecorder.make(context, config.metricsByMutex, [
    ...Object.values(MutexMetrics.mutex.losses),
    MutexMetrics.mutex.overruns
  ])
  const releaseMillis = Duration.toMillis(config.releaseTimeout)

  const tasks = yield* slicedTasks

  /** Stops renewing the lease. */
  const drop = (lease: HeldLease, now: Instant) => {
    deadlines.remove(lease)
    recorder.modify(MutexMetrics.mutex.held, -1, lease.mutex)
    recorder.update(MutexMetrics.mutex.holdTime, now.monotonic - lease.since.monotonic, lease.mutex)
  }

  const table = new class extends LeaseTable<HeldLease, LossTag> {
    protected overdue(lease: HeldLease) {
      return lease.expiry()
    }

    /** Reports in slices, because each report resumes the next fiber in line. */
    protected override endOverdue(ended: ReadonlyArray<HeldLease>, now: Instant) {
      for (const lease of this.loseAll(ended, (lease) => lease.expiry())) tasks.add(() => this.report(lease, now))
    }

    protected reportLoss(lease: HeldLease, reason: LossTag, now: Instant) {
      const { over } = lease
      try {
        drop(lease, now)
        recorder.update(MutexMetrics.mutex.losses[reason], 1, lease.mutex)
        watchOverrun(lease, over, now)
        recorder.run(Effect.annotateLogs(log.warning(over.message), lease.annotations))
      } finally {
        lines?.lost(lease)
      }
    }
  }(clock, tasks)
  const { deadlines } = table

  const loseTo = (lease: HeldLease, ownership: Ownership) => {
    const owner = ownership._tag === "Held" ? ownership.owner : undefined
    const reason = lease.isSuspected ? "ForcedRelease" : owner === undefined ? "Vanished" : "TakenOver"
    table.lose(lease, reason, owner)
  }

  /**
   * Marks all leases as lost. Leases with protected work are released here, after their work has ended (L4,
   * docs/protocol.md). Holders release the other leases.
   */
  const close = Effect.suspend(() => {
    const open = deadlines.all()
    const working = open.filter((lease) => lease.hasWork)
    for (const lease of table.loseAll(open, () => "BackendGone")) table.report(lease, deadlines.now())
    const releasing = Effect.forEach(
      working,
      (lease) => Effect.andThen(lease.endWork() ?? Effect.void, giveUp(lease)),
      { concurrency: "unbounded", discard: true }
    )
    return Effect.timeoutOption(releasing, config.releaseTimeout)
  })

  // Finalizers run in reverse order, so leases are lost before renewals in progress are interrupted
  const fibers = yield* FiberSet.make()
  yield* Effect.addFinalizer(() => close)
  const timers = yield* timerQueue.make
  const watchOverrun = yield* overrunMonitor.make(onOverrun, recorder, timers)

  /**
   * Probes the holder before a renewal. If the holder is not alive, the probe is retried until the deadline, just as a
   * failed renewal is. If a forced release has been reported, the lease is renewed without a probe.
   */
  const probe = (lease: HeldLease) => {
    const { isAlive } = lease.options
    const isReady = lease.isProbed || lease.isSuspected
    lease.isProbed = false
    if (isAlive === undefined || isReady) return undefined
    return Effect.flatMap(Effect.exit(storeTimeout(isAlive, "isAlive", config.commandTimeout)), (exit) => {
      const wasDead = lease.dead
      const isProbed = lease.isProbed = Exit.isSuccess(exit) && exit.value === true
      lease.dead = !isProbed
      if (isProbed || !lease.isOpen()) return Effect.succeed(isProbed)
      recorder.update(MutexMetrics.mutex.renewals.notAlive, 1, lease.mutex)
      return wasDead ? Effect.succeed(false) : Effect.as(
        log.warning(
          "isAlive did not return true for the holder of a lease; the lease is not renewed and ends at its deadline",
          Exit.isFailure(exit) ? exit.cause : Cause.empty
        ).pipe(Effect.annotateLogs(lease.annotations)),
        false
      )
    })
  }

  const renewer = yield* leaseRenewer.start<HeldLease, GuardResult>({
    deadlines,
    recorder,
    timers,
    operation: "guard",
    span: "simba.renew",
    what: "lease",
    timeout: config.commandTimeout,
    // A batch of this size keeps Redis busy for about a millisecond
    batchSize: 500,
    schedule: config.guard,
    pace: config.guard === MutexSchedule.guard ? undefined : ({ options }) => options.ttl,
    metrics: { ...MutexMetrics.mutex.renewals, timeLeft: MutexMetrics.mutex.timeLeftAtRenewal },
    send: store.guard,
    attributes: tracing.attributes,
    lost: (lease, { ownership }) => loseTo(lease, ownership),
    probe
  }, fibers)

  /** Stops renewing the lease. Returns the release request, unless the lease stays in this process. */
  const releaseRequestOf = (lease: HeldLease, now: Instant): releaseSender.Request | undefined => {
    table.report(lease, now)
    if (lease.isOpen()) drop(lease, now)
    lease.state = "released"
    const { id, mutex } = lease
    const parting = lines === undefined ? {} : lines.released(lease, now)
    return parting === undefined ? undefined : { mutex, id, ...parting }
  }

  const giveUp: HeldLeases["giveUp"] = (lease) =>
    Effect.suspend(() => {
      // Already released when the layer closed
      if (lease.state === "released") return Effect.void
      const request = releaseRequestOf(lease, deadlines.now())
      return request === undefined ? Effect.void : releases.later(request)
    })

  const sendRelease = (lease: HeldLease) =>
    Effect.suspend(() => {
      const now = deadlines.now()
      table.check(lease, now)
      if (lease.isOpen()) {
        // End the lease before sending: a renewal in flight can then no longer report a loss
        const request = releaseRequestOf(lease, now)
        if (request === undefined) return Effect.void
        return releases.now(request, Math.min(releaseMillis, lease.left(now)))
      }
      const reason = lease.loss?.reason._tag
      // For these two reasons, the lease may still exist in the backend
      return reason === "Expired" || reason === "BackendGone" ? giveUp(lease) : Effect.void
    })

  /** The ids of leases for which a forced release was reported before the reply with the grant arrived. */
  const forced = new LatestNames()

  /** Renews the lease immediately. The reply decides whether the mutex was taken by force. */
  const renewNow = (lease: HeldLease) => {
    lease.suspect(deadlines.now())
    deadlines.place(lease.group)
  }

  return {
    follow: (followers) => {
      lines = followers
    },
    now: () => deadlines.now(),
    recorder,
    timers,
    tasks,
    add: (lease) => {
      deadlines.place(lease.group)
      recorder.modify(MutexMetrics.mutex.held, 1, lease.mutex)
      if (timers.isClosed()) {
        table.lose(lease, "BackendGone")
        recorder.run(giveUp(lease))
        return
      }
      renewer.paced(lease)
      if (forced.delete(lease.id)) renewNow(lease)
    },
    confirm: (lease) => {
      const { id, mutex, options, token } = lease
      const sent = deadlines.now()
      reply<AcquireResult>((done) => store.confirm({ mutex, id, token, lease: options.lease }, done), (exit) => {
        if (!lease.isOpen()) return
        if (Exit.isSuccess(exit) && exit.value._tag === "Refused") return loseTo(lease, exit.value.ownership)
        // The confirmation counts unless a renewal has already extended the lease
        const { group } = lease
        if (Exit.isSuccess(exit)) { if (lease.isUnconfirmed) group.extend(sent) }
        else group.nextRenewal = deadlines.now().monotonic
        deadlines.place(group)
      })
    },
    suspect: (id) => {
      const lease = deadlines.all().find((lease) => lease.id === id)
      if (lease === undefined) forced.add(id)
      else renewNow(lease)
    },
    check: (lease, now) => table.check(lease, now),
    release: (lease) =>
      Effect.suspend(() => {
        const ending = lease.endWork()
        return ending === undefined ? sendRelease(lease) : Effect.andThen(ending, sendRelease(lease))
      }),
    giveUp,
    undo: releases.later
  }
})
