/**
 * All leases of one layer: one table, one loop that renews in batches, one loop that watches the nearest deadline, and
 * the set of background releases that closing the layer waits for.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { BackendError, type LossReason, ProtocolError } from "../Errors.ts"
import type { MutexConfig } from "../MutexConfig.ts"
import * as MutexSchedule from "../MutexSchedule.ts"
import type { GuardResult, MutexStore, ReleaseRequest } from "../MutexStore.ts"
import { type Holding, type Instant, instant } from "./holding.ts"

export interface Leases {
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
const batchSize = 128

/** Renewals that are due within this many milliseconds of one another go out together. */
const window = 50

/** A suspended machine stops monotonic timers, so deadlines are looked at this often at least. Milliseconds. */
const watch = 1000

const annotations = (holding: Holding) => ({ mutex: holding.mutex, contender: holding.id, token: holding.token })

/** Sleeps until `at`, or until the latch opens. Close the latch before you compute `at`. */
const sleepUntil = (at: number, changed: Latch.Latch) =>
  Clock.clockWith((clock) => {
    const millis = at - instant(clock).monotonic
    if (millis <= 0) return Effect.void
    return millis === Infinity
      ? changed.await
      : Effect.raceFirst(Effect.sleep(Duration.millis(Math.ceil(millis * 1e6) / 1e6)), changed.await)
  })

const toFailure = (
  cause: Cause.Cause<BackendError | ProtocolError | Cause.TimeoutError>
): BackendError | ProtocolError => {
  const error = Cause.squash(cause)
  return error instanceof BackendError || error instanceof ProtocolError
    ? error
    : new BackendError({ operation: "guard", retryable: true, cause: error })
}

export const make = Effect.fnUntraced(function*(
  store: MutexStore["Service"],
  config: MutexConfig
): Effect.fn.Return<Leases, never, Scope.Scope> {
  const table = new Set<Holding>()
  const background = yield* FiberSet.make()
  const renewals = yield* FiberSet.make()
  const guardChanged = Latch.makeUnsafe(false)
  const watchChanged = Latch.makeUnsafe(false)
  let nextGuard = Infinity
  let nextWatch = Infinity
  const run = Effect.runForkWith(yield* Effect.context<never>())

  const lose = (holding: Holding, reason: LossReason, owner?: string) => {
    if (!table.delete(holding)) return
    const loss = holding.lose(reason, owner)
    run(Effect.logWarning(loss.message).pipe(Effect.annotateLogs(annotations(holding))))
  }

  const check = (holding: Holding, now: Instant) => {
    if (holding.isOpen() && holding.left(now) <= 0) {
      lose(holding, holding.failing || holding.renewing ? "BackendGone" : "Expired")
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
    nextWatch = now.monotonic + nearest
    return sleepUntil(nextWatch, watchChanged)
  }))

  const settle = (holding: Holding, result: GuardResult, sent: Instant) => {
    // A reply for a lease that was released or lost meanwhile says nothing any more
    if (!holding.isOpen()) return Effect.void
    if (result._tag === "Lost") {
      const { ownership } = result
      return Effect.sync(() =>
        ownership._tag === "Held"
          ? lose(holding, holding.forced ? "ForcedRelease" : "TakenOver", ownership.owner)
          : lose(holding, holding.forced ? "ForcedRelease" : "Vanished")
      )
    }
    const renewed = result._tag === "Renewed"
    if (renewed) holding.forced = false
    holding.failing = !renewed
    if (renewed) holding.extend(sent)
    return Effect.gen(function*() {
      const clock = yield* Clock.Clock
      holding.step ??= yield* Schedule.toStep(MutexSchedule.guard)
      const outcome: MutexSchedule.GuardOutcome = renewed ? { _tag: "Renewed", ttl: holding.ttl } : { _tag: "Failed" }
      const [delay] = yield* Pull.catchDone(
        holding.step(clock.currentTimeMillisUnsafe(), outcome),
        () => Effect.succeed([holding.ttl, holding.ttl] as [Duration.Duration, Duration.Duration])
      )
      const from = renewed ? sent : instant(clock)
      holding.nextRenewal = from.monotonic + Duration.toMillis(delay)
      if (holding.nextRenewal < nextGuard) guardChanged.openUnsafe()
    })
  }

  const renew = Effect.fnUntraced(function*(batch: ReadonlyArray<Holding>) {
    const sent = instant(yield* Clock.Clock)
    const exit = yield* Effect.exit(Effect.timeout(store.guard(batch), config.commandTimeout))
    const failed: Array<Holding> = []
    let error: BackendError | ProtocolError | undefined
    for (let i = 0; i < batch.length; i++) {
      const holding = batch[i]!
      holding.renewing = false
      const result: GuardResult = Exit.isFailure(exit)
        ? { _tag: "Failed", error: toFailure(exit.cause) }
        : exit.value[i]!
      if (result._tag === "Failed" && !holding.failing) {
        failed.push(holding)
        error = result.error
      }
      yield* settle(holding, result, sent)
    }
    if (error !== undefined) {
      yield* Effect.logWarning(
        `${failed.length} lease(s) could not be renewed; trying again until their deadlines: ${error.message}`
      ).pipe(Effect.annotateLogs(annotations(failed[0]!)))
    }
  })

  const guard = Effect.forever(Effect.gen(function*() {
    guardChanged.closeUnsafe()
    const now = instant(yield* Clock.Clock)
    const due: Array<Holding> = []
    let next = Infinity
    for (const holding of table) {
      if (holding.renewing) continue
      if (holding.nextRenewal <= now.monotonic) next = -Infinity
      else next = Math.min(next, holding.nextRenewal)
    }
    if (next === -Infinity) {
      for (const holding of table) {
        if (holding.renewing || holding.nextRenewal > now.monotonic + window) continue
        // After a stall the deadline counts, not a renewal that would come too late
        check(holding, now)
        if (!holding.isOpen()) continue
        holding.renewing = true
        due.push(holding)
      }
      for (let i = 0; i < due.length; i += batchSize) {
        yield* FiberSet.run(renewals, renew(due.slice(i, i + batchSize)))
      }
      return
    }
    nextGuard = next
    yield* sleepUntil(next, guardChanged)
    nextGuard = -Infinity
  }))

  const sendRelease = (request: Omit<ReleaseRequest, "confirm">, within: Duration.Duration) =>
    store.release({ ...request, confirm: config.confirm }).pipe(
      Effect.timeout(within),
      Effect.catchCause((cause) =>
        Effect.logWarning("A release did not come through; the mutex becomes free when its lease expires", cause).pipe(
          Effect.annotateLogs({ mutex: request.mutex, contender: request.id })
        )
      )
    )

  const undo: Leases["undo"] = (request, holding) =>
    Effect.suspend(() => {
      if (holding !== undefined) {
        holding.state = "released"
        table.delete(holding)
      }
      return Effect.asVoid(FiberSet.run(background, sendRelease(request, config.releaseTimeout)))
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
        // Out of the table before the command is sent: a renewal under way can no longer report a loss
        holding.state = "released"
        table.delete(holding)
        const within = Duration.min(config.releaseTimeout, Duration.millis(holding.left(now)))
        return Effect.flatMap(
          FiberSet.run(background, sendRelease(holding, within)),
          (fiber) => Effect.asVoid(Fiber.await(fiber))
        )
      }
      const reason = holding.loss?.reason
      return reason === "Expired" || reason === "BackendGone" ? undo(holding) : Effect.void
    })

  yield* Effect.addFinalizer(() =>
    Effect.suspend(() => {
      for (const holding of [...table]) lose(holding, "BackendGone")
      return Effect.asVoid(Effect.timeoutOption(FiberSet.awaitEmpty(background), config.releaseTimeout))
    })
  )
  yield* Effect.forkScoped(guard)
  yield* Effect.forkScoped(watchDeadlines)

  return {
    add: (holding) => {
      table.add(holding)
      if (holding.nextRenewal < nextGuard) guardChanged.openUnsafe()
      if (holding.deadline() < nextWatch) watchChanged.openUnsafe()
    },
    suspect: (id) => {
      for (const holding of table) {
        if (holding.id !== id) continue
        holding.forced = true
        holding.nextRenewal = -Infinity
        guardChanged.openUnsafe()
      }
    },
    check,
    release,
    undo
  }
})
