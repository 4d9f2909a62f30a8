/** All leases of one layer: one table, one guard that renews them, one loop that watches the nearest deadline. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { MutexConfig } from "../../MutexConfig.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { MutexStore, ReleaseRequest } from "../../MutexStore.ts"
import type { LossReason } from "../../SimbaError.ts"
import { annotations, type HeldLease } from "../mutex/heldLease.ts"
import * as releasesOf from "../mutex/releaseSender.ts"
import { type Instant, instant } from "./deadline.ts"
import * as guardOf from "./leaseRenewer.ts"
import * as recorderOf from "./metricsRecorder.ts"
import * as overrunsOf from "./overrunMonitor.ts"
import { sleepUntil } from "./sleepUntil.ts"
import { supervise } from "./supervise.ts"
import * as alarmsOf from "./timerQueue.ts"

export interface LeaseTable {
  readonly now: () => Instant
  readonly recorder: recorderOf.Recorder
  readonly timers: alarmsOf.TimerQueue
  /** Looks after the lease from now on. Once the layer is closed nobody can, and it is lost and given back at once. */
  readonly add: (holding: HeldLease) => void
  /** A hint that this lease was taken away by force: asks at once, and believes the answer. */
  readonly suspect: (id: string) => void
  /** Loses the lease if its deadline has passed by the clock, whatever the timers have done so far. */
  readonly check: (holding: HeldLease, now: Instant) => void
  /** Gives the mutex back, waiting for at most the release timeout. Never fails: what fails is logged, the key expires. */
  readonly release: (holding: HeldLease) => Effect.Effect<void>
  /** Undoes an attempt, or a grant that nobody waits for any more, without waiting. */
  readonly undo: (request: Omit<ReleaseRequest, "confirm">, holding?: HeldLease) => Effect.Effect<void>
}

/** A suspended machine stops monotonic timers, so deadlines are looked at this often at least. Milliseconds. */
const watch = 1000

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<LeaseTable, never, Scope.Scope> {
  const table = new Set<HeldLease>()
  const releases = yield* releasesOf.make(store, config)
  const watchChanged = Latch.makeUnsafe(false)
  let nextWatch = Infinity
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(context)
  const recorder = recorderOf.make(context, config.metricsByMutex)
  const releaseMillis = Duration.toMillis(config.releaseTimeout)
  const overruns = overrunsOf.make({ onOverrun: config.onOverrun, recorder, run })

  /** Out of the table, whatever it ended by. */
  const drop = (holding: HeldLease, now: Instant): boolean => {
    if (!table.delete(holding)) return false
    guard.remove(holding)
    recorder.modify(MutexMetrics.held, -1, holding.mutex)
    recorder.update(MutexMetrics.holdTime, now.monotonic - holding.since.monotonic, holding.mutex)
    return true
  }

  const lose = (holding: HeldLease, reason: Exclude<LossReason, "Released">, owner?: string) => {
    const now = instant(clock)
    if (!drop(holding, now)) return
    try {
      const loss = holding.lose(reason, owner)
      recorder.update(MutexMetrics.losses[reason], 1, holding.mutex)
      if (holding.hasWork() && overruns.watch(holding, loss, now) < nextWatch) watchChanged.openUnsafe()
      run(Effect.logWarning(loss.message).pipe(Effect.annotateLogs(annotations(holding))))
    } finally {
      // Whatever those who listen for the loss do, others are in line
      holding.place?.lost(holding)
    }
  }

  const check = (holding: HeldLease, now: Instant) => {
    if (holding.isOpen() && holding.left(now) <= 0) {
      lose(holding, !holding.dead && (holding.failing || holding.renewing) ? "BackendGone" : "Expired")
    }
  }

  // What comes later ends earlier: those who wait are told first, and what still renews finds no lease any more
  const fibers = yield* FiberSet.make()
  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      for (const holding of [...table]) lose(holding, "BackendGone")
      return Effect.void
    })
  )
  const alarms = yield* alarmsOf.make
  const guard = yield* guardOf.make({ store, config, alarms, recorder, fibers, check, lose })

  const watchDeadlines = Effect.forever(Clock.clockWith((clock) => {
    watchChanged.closeUnsafe()
    const now = instant(clock)
    let nearest = Infinity
    for (const holding of table) {
      check(holding, now)
      if (holding.isOpen()) nearest = Math.min(nearest, holding.left(now), watch)
    }
    nextWatch = now.monotonic + Math.min(nearest, overruns.sweep(now))
    return sleepUntil(nextWatch, watchChanged)
  }))

  /** Out of the table before anything is sent. Answers what is to be sent, unless the lease stays in this process. */
  const part = (holding: HeldLease, now: Instant): releasesOf.Request | undefined => {
    holding.state = "released"
    drop(holding, now)
    const { id, mutex, place, unfair } = holding
    if (place === undefined) return holding
    return place.pass(holding, now) ? undefined : { mutex, id, unfair, ...place.parting(holding, now) }
  }

  const undo: LeaseTable["undo"] = (request, holding) =>
    Effect.suspend(() => {
      const parted = holding === undefined ? request : part(holding, instant(clock))
      return parted === undefined ? Effect.void : releases.later(parted)
    })

  const release: LeaseTable["release"] = (holding) =>
    Effect.suspend(() => {
      const works = holding.endWorks()
      return works === undefined ? giveBack(holding) : Effect.andThen(works, giveBack(holding))
    })

  const giveBack = (holding: HeldLease) =>
    Clock.clockWith((clock) => {
      const now = instant(clock)
      check(holding, now)
      if (holding.isOpen()) {
        // Before the command is sent: a renewal under way can no longer report a loss
        const parted = part(holding, now)
        if (parted === undefined) return Effect.void
        return releases.now(parted, Math.min(releaseMillis, holding.left(now)))
      }
      const reason = holding.loss?.reason
      return reason === "Expired" || reason === "BackendGone" ? undo(holding) : Effect.void
    })

  yield* Effect.forkScoped(supervise("The guard", guard.loop))
  yield* Effect.forkScoped(supervise("The watch over deadlines", watchDeadlines))

  return {
    now: () => instant(clock),
    recorder,
    timers: alarms,
    add: (holding) => {
      table.add(holding)
      recorder.modify(MutexMetrics.held, 1, holding.mutex)
      if (alarms.isClosed()) {
        lose(holding, "BackendGone")
        return void run(undo(holding))
      }
      guard.renewAt(holding, holding.key)
      if (holding.deadline() < nextWatch) watchChanged.openUnsafe()
    },
    suspect: (id) => {
      for (const holding of table) {
        if (holding.id !== id) continue
        holding.forcedAt = instant(clock).monotonic
        // One that is being renewed or probed comes back when that has ended
        if (holding.position !== -1) guard.renewAt(holding, -Infinity)
      }
    },
    check,
    release,
    undo
  }
})
