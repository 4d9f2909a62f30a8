/** All leases of one layer: one table, one loop that renews in batches, one loop that watches the nearest deadline. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { BackendError, LossReason, ProtocolError } from "../Errors.ts"
import type { MutexConfig } from "../MutexConfig.ts"
import * as MutexMetrics from "../MutexMetrics.ts"
import * as MutexSchedule from "../MutexSchedule.ts"
import type { GuardResult, MutexStore, ReleaseRequest } from "../MutexStore.ts"
import * as alarmsOf from "./alarms.ts"
import { Heap } from "./heap.ts"
import { annotations, type Holding } from "./holding.ts"
import { type Instant, instant } from "./instant.ts"
import { keepOn } from "./keepOn.ts"
import * as overrunsOf from "./overruns.ts"
import * as recorderOf from "./recorder.ts"
import * as releasesOf from "./releases.ts"
import { sleepUntil } from "./sleepUntil.ts"
import { toFailure } from "./toFailure.ts"
import * as tracing from "./tracing.ts"

export interface Leases {
  readonly now: () => Instant
  readonly recorder: recorderOf.Recorder
  readonly alarms: alarmsOf.Alarms
  readonly add: (holding: Holding) => void
  /** A hint that this lease was taken away by force: asks at once, and believes the answer. */
  readonly suspect: (id: string) => void
  /** Loses the lease if its deadline has passed by the clock, whatever the timers have done so far. */
  readonly check: (holding: Holding, now: Instant) => void
  /** Gives the mutex back, waiting for at most the release timeout. Never fails: what fails is logged, the key expires. */
  readonly release: (holding: Holding) => Effect.Effect<void>
  /** Undoes an attempt, or a grant that nobody waits for any more, without waiting. */
  readonly undo: (request: Omit<ReleaseRequest, "confirm">, holding?: Holding) => Effect.Effect<void>
}

/** Keys of one renewing call: enough to share the round trip, few enough not to hold up the server. */
const batchSize = 200

/** Renewals that are due within this many milliseconds of one another go out together. */
const window = 50

/** A suspended machine stops monotonic timers, so deadlines are looked at this often at least. Milliseconds. */
const watch = 1000

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<Leases, never, Scope.Scope> {
  const table = new Set<Holding>()
  /** Those that are not being renewed or probed at this moment, by when they are to be renewed. */
  const renewable = new Heap<Holding>()
  const releases = yield* releasesOf.make(store, config)
  const renewals = yield* FiberSet.make()
  const guardChanged = Latch.makeUnsafe(false)
  const watchChanged = Latch.makeUnsafe(false)
  let nextGuard = Infinity
  let nextWatch = Infinity
  const context = yield* Effect.context<never>()
  const clock = yield* Clock.Clock
  const run = Effect.runForkWith(context)
  const recorder = recorderOf.make(context, config.metricsByMutex)
  const releaseMillis = Duration.toMillis(config.releaseTimeout)
  const overruns = overrunsOf.make({ onOverrun: config.onOverrun, recorder, run })

  /** Out of the table, whatever it ended by. */
  const drop = (holding: Holding, now: Instant): boolean => {
    if (!table.delete(holding)) return false
    renewable.remove(holding)
    recorder.modify(MutexMetrics.held, -1, holding.mutex)
    recorder.update(MutexMetrics.holdTime, now.monotonic - holding.since.monotonic, holding.mutex)
    return true
  }

  const lose = (holding: Holding, reason: Exclude<LossReason, "Released">, owner?: string) => {
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

  const check = (holding: Holding, now: Instant) => {
    if (holding.isOpen() && holding.left(now) <= 0) {
      lose(holding, !holding.dead && (holding.failing || holding.renewing) ? "BackendGone" : "Expired")
    }
  }

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

  const renewAt = (holding: Holding, at: number) => {
    if (!holding.isOpen()) return
    renewable.place(holding, at)
    if (at < nextGuard) guardChanged.openUnsafe()
  }

  /** When the guard comes back to a lease. */
  const plan = Effect.fnUntraced(function*(holding: Holding, outcome: MutexSchedule.GuardOutcome, from: Instant) {
    holding.step ??= yield* Schedule.toStep(MutexSchedule.guard)
    const [delay] = yield* Pull.catchDone(
      holding.step(clock.currentTimeMillisUnsafe(), outcome),
      () => Effect.succeed([holding.ttl, holding.ttl] as [Duration.Duration, Duration.Duration])
    )
    renewAt(holding, holding.renewal(from.monotonic + Duration.toMillis(delay)))
  })

  /** A holder that is not alive is treated like a backend that does not answer: asked again until the deadline. */
  const probe = Effect.fnUntraced(function*(holding: Holding, alive: Effect.Effect<boolean, unknown>) {
    const exit = yield* Effect.exit(Effect.timeout(alive, config.commandTimeout))
    const isAlive = Exit.isSuccess(exit) && exit.value === true
    holding.probe = isAlive ? "alive" : "unasked"
    if (!holding.isOpen()) return
    if (isAlive) {
      holding.dead = false
      return renewAt(holding, instant(clock).monotonic)
    }
    recorder.update(MutexMetrics.guards.notAlive, 1, holding.mutex)
    if (!holding.dead) {
      holding.dead = true
      yield* Effect.logWarning(
        "The holder of a lease is not alive by its own probe; the lease is not renewed and ends at its deadline",
        Exit.isFailure(exit) ? exit.cause : Cause.empty
      ).pipe(Effect.annotateLogs(annotations(holding)))
    }
    yield* plan(holding, { _tag: "Failed" }, instant(clock))
  })

  const settle = (holding: Holding, result: GuardResult, sent: Instant, now: Instant) => {
    // A reply for a lease that was released or lost meanwhile says nothing any more
    if (!holding.isOpen()) return undefined
    if (result._tag === "Lost") {
      recorder.update(MutexMetrics.guards.lost, 1, holding.mutex)
      const { ownership } = result
      const isForced = holding.forcedAt !== undefined
      return Effect.sync(() =>
        ownership._tag === "Held"
          ? lose(holding, isForced ? "ForcedRelease" : "TakenOver", ownership.owner)
          : lose(holding, isForced ? "ForcedRelease" : "Vanished")
      )
    }
    const renewed = result._tag === "Renewed"
    // A renewal that was sent before the word came may have been done before the force
    const isSuspect = holding.forcedAt !== undefined && holding.forcedAt > sent.monotonic
    if (renewed && !isSuspect) holding.forcedAt = undefined
    holding.failing = !renewed
    recorder.update(MutexMetrics.guards[renewed ? "renewed" : "failed"], 1, holding.mutex)
    if (!renewed) return plan(holding, { _tag: "Failed" }, now)
    recorder.update(MutexMetrics.timeLeftAtRenewal, holding.left(now), holding.mutex)
    holding.extend(sent)
    if (isSuspect) {
      renewAt(holding, -Infinity)
      return undefined
    }
    if (holding.step !== undefined) return plan(holding, { _tag: "Renewed", ttl: holding.ttl }, sent)
    // What the schedule says where nothing has failed
    renewAt(holding, holding.renewal(sent.monotonic + Duration.toMillis(holding.ttl)))
    return undefined
  }

  const traced = (batch: ReadonlyArray<Holding>) =>
    tracing.span("simba.guard", () => ({
      root: true,
      attributes: { "simba.leases": batch.length, ...(batch.length === 1 ? tracing.attributes(batch[0]!) : {}) }
    }), store.guard(batch))

  const renew = Effect.fnUntraced(function*(batch: ReadonlyArray<Holding>) {
    const sent = instant(clock)
    const exit = yield* Effect.exit(Effect.timeout(traced(batch), config.commandTimeout))
    const now = instant(clock)
    const failed: Array<Holding> = []
    let error: BackendError | ProtocolError | undefined
    for (let i = 0; i < batch.length; i++) {
      const holding = batch[i]!
      holding.renewing = false
      holding.probe = "unasked"
      const result: GuardResult = Exit.isFailure(exit)
        ? { _tag: "Failed", error: toFailure(exit.cause) }
        : exit.value[i]!
      if (result._tag === "Failed" && !holding.failing) {
        failed.push(holding)
        error = result.error
      }
      const settling = settle(holding, result, sent, now)
      if (settling !== undefined) yield* settling
    }
    if (error !== undefined) {
      yield* Effect.logWarning(
        `${failed.length} lease(s) could not be renewed; trying again until their deadlines: ${error.message}`
      ).pipe(Effect.annotateLogs(annotations(failed[0]!)))
    }
  })

  /** What was taken out comes back, even if the attempt dies. */
  const surely = (holdings: ReadonlyArray<Holding>, attempt: Effect.Effect<void>) =>
    Effect.tapCause(attempt, (cause) =>
      Effect.suspend(() => {
        const soon = instant(clock).monotonic + watch
        for (const holding of holdings) {
          if (holding.position !== -1) continue
          holding.renewing = false
          holding.probe = "unasked"
          renewAt(holding, soon)
        }
        return Effect.logError("A renewal died, and is tried again", cause)
      }))

  /** Takes out what is due, and what will be within the window. */
  const takeDue = (now: Instant) => {
    const due: Array<Holding> = []
    const asked: Array<Effect.Effect<void>> = []
    const soon = now.monotonic + window
    for (let holding = renewable.first; holding !== undefined && holding.key <= soon; holding = renewable.first) {
      renewable.remove(holding)
      // After a stall the deadline counts, not a renewal that would come too late
      check(holding, now)
      if (!holding.isOpen()) continue
      if (holding.alive === undefined || holding.probe === "alive" || holding.forcedAt !== undefined) {
        holding.renewing = true
        due.push(holding)
      } else {
        holding.probe = "asking"
        asked.push(surely([holding], probe(holding, holding.alive)))
      }
    }
    return { due, asked }
  }

  const guard = Effect.forever(Effect.gen(function*() {
    guardChanged.closeUnsafe()
    const now = instant(clock)
    const next = renewable.first?.key ?? Infinity
    if (next > now.monotonic) {
      nextGuard = next
      yield* sleepUntil(next, guardChanged)
      nextGuard = -Infinity
      return
    }
    const { asked, due } = takeDue(now)
    for (const asking of asked) yield* FiberSet.run(renewals, asking)
    for (let i = 0; i < due.length; i += batchSize) {
      const batch = due.slice(i, i + batchSize)
      yield* FiberSet.run(renewals, surely(batch, renew(batch)))
      // Thousands of leases are no reason to keep everybody else waiting
      if (i + batchSize < due.length) yield* Effect.yieldNow
    }
  }))

  /** Out of the table before anything is sent. Answers what is to be sent, unless the lease stays in this process. */
  const part = (holding: Holding, now: Instant): releasesOf.Request | undefined => {
    holding.state = "released"
    drop(holding, now)
    const { id, mutex, place, unfair } = holding
    if (place === undefined) return holding
    return place.pass(holding, now) ? undefined : { mutex, id, unfair, ...place.parting(holding, now) }
  }

  const undo: Leases["undo"] = (request, holding) =>
    Effect.suspend(() => {
      const parted = holding === undefined ? request : part(holding, instant(clock))
      return parted === undefined ? Effect.void : releases.later(parted)
    })

  const release: Leases["release"] = (holding) =>
    Effect.suspend(() => {
      const works = holding.endWorks()
      return works === undefined ? giveBack(holding) : Effect.andThen(works, giveBack(holding))
    })

  const giveBack = (holding: Holding) =>
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

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      for (const holding of [...table]) lose(holding, "BackendGone")
      return Effect.void
    })
  )
  yield* Effect.forkScoped(keepOn("The guard", guard))
  yield* Effect.forkScoped(keepOn("The watch over deadlines", watchDeadlines))

  return {
    now: () => instant(clock),
    recorder,
    alarms: yield* alarmsOf.make,
    add: (holding) => {
      table.add(holding)
      recorder.modify(MutexMetrics.held, 1, holding.mutex)
      renewAt(holding, holding.key)
      if (holding.deadline() < nextWatch) watchChanged.openUnsafe()
    },
    suspect: (id) => {
      for (const holding of table) {
        if (holding.id !== id) continue
        holding.forcedAt = instant(clock).monotonic
        // One that is being renewed or probed comes back when that has ended
        if (holding.position !== -1) renewAt(holding, -Infinity)
      }
    },
    check,
    release,
    undo
  }
})
