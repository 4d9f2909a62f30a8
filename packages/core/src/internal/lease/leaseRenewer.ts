/** Renews leases, in batches, when they are due, and asks those that have a probe of their own before. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Latch from "effect/Latch"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type { MutexConfig } from "../../MutexConfig.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import * as MutexSchedule from "../../MutexSchedule.ts"
import type { GuardResult, MutexStore } from "../../MutexStore.ts"
import type { BackendError, LossReason, ProtocolError } from "../../SimbaError.ts"
import { annotations, type HeldLease } from "../mutex/heldLease.ts"
import * as tracing from "../tracing.ts"
import { type Instant, instant } from "./deadline.ts"
import { IndexedHeap } from "./indexedHeap.ts"
import type { Recorder } from "./metricsRecorder.ts"
import { sleepUntil } from "./sleepUntil.ts"
import { toFailure } from "./storeFailure.ts"
import type { TimerQueue } from "./timerQueue.ts"

export interface LeaseRenewer {
  /** Renews a lease at this instant, in monotonic milliseconds. One that is over stays away. */
  readonly renewAt: (holding: HeldLease, at: number) => void
  readonly remove: (holding: HeldLease) => void
  readonly loop: Effect.Effect<never>
}

/** Keys of one renewing call: enough to share the round trip, few enough not to hold up the server. */
const batchSize = 200

/**
 * How many milliseconds too early a renewal may go out, together with one that is due: it is the waking up that costs, and
 * whoever is renewed together once stays together. What fails keeps its own pace.
 */
const early = ({ failing, ttlMillis }: HeldLease) => failing ? 50 : Math.min(ttlMillis / 8, 1000)

/** When what died is tried again. Milliseconds. */
const pause = 1000

type Answer = Exit.Exit<ReadonlyArray<GuardResult>, BackendError | ProtocolError | Cause.TimeoutError>

export const make = Effect.fnUntraced(function*(options: {
  readonly store: MutexStore["Service"]
  readonly config: MutexConfig
  readonly alarms: TimerQueue
  readonly recorder: Recorder
  /** Fibers that renew or ask, ended after all leases have been. */
  readonly fibers: FiberSet.FiberSet
  readonly check: (holding: HeldLease, now: Instant) => void
  readonly lose: (holding: HeldLease, reason: Exclude<LossReason, "Released">, owner?: string) => void
}): Effect.fn.Return<LeaseRenewer> {
  const { alarms, check, config, fibers, lose, recorder, store } = options
  /** Those that are not being renewed or probed at this moment, by when they are to be renewed. */
  const renewable = new IndexedHeap<HeldLease>()
  const changed = Latch.makeUnsafe(false)
  let next = Infinity
  const clock = yield* Clock.Clock
  const commandMillis = Duration.toMillis(config.commandTimeout)
  const late = `no answer within ${Duration.format(config.commandTimeout)}`

  const renewAt = (holding: HeldLease, at: number) => {
    if (!holding.isOpen()) return
    renewable.place(holding, at)
    if (at < next) changed.openUnsafe()
  }

  /** When the guard comes back to a lease. */
  const plan = Effect.fnUntraced(
    function*(holding: HeldLease, outcome: Schedule.Input<typeof MutexSchedule.guard>, from: Instant) {
      holding.step ??= yield* Schedule.toStep(MutexSchedule.guard)
      const [delay] = yield* Pull.catchDone(
        holding.step(clock.currentTimeMillisUnsafe(), outcome),
        () => Effect.succeed([holding.ttl, holding.ttl] as [Duration.Duration, Duration.Duration])
      )
      renewAt(holding, holding.renewal(from.monotonic + Duration.toMillis(delay)))
    }
  )

  /** A holder that is not alive is treated like a backend that does not answer: asked again until the deadline. */
  const probe = Effect.fnUntraced(function*(holding: HeldLease, alive: Effect.Effect<boolean, unknown>) {
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

  /** What is left to do, where there is more to it than the next renewal. */
  const settleRenewed = (holding: HeldLease, sent: Instant, now: Instant) => {
    // A renewal that was sent before the word came may have been done before the force
    const isSuspect = holding.forcedAt !== undefined && holding.forcedAt > sent.monotonic
    if (!isSuspect) holding.forcedAt = undefined
    holding.failing = false
    recorder.update(MutexMetrics.timeLeftAtRenewal, holding.left(now), holding.mutex)
    holding.extend(sent)
    if (isSuspect) {
      renewAt(holding, -Infinity)
    } else if (holding.step !== undefined) {
      return plan(holding, { _tag: "Renewed", ttl: holding.ttl }, sent)
    } else {
      // What the schedule says where nothing has failed
      renewAt(holding, holding.renewal(sent.monotonic + holding.ttlMillis))
    }
    return undefined
  }

  const settleLost = (holding: HeldLease, { ownership }: Extract<GuardResult, { readonly _tag: "Lost" }>) => {
    recorder.update(MutexMetrics.guards.lost, 1, holding.mutex)
    const isForced = holding.forcedAt !== undefined
    if (ownership._tag === "Held") lose(holding, isForced ? "ForcedRelease" : "TakenOver", ownership.owner)
    else lose(holding, isForced ? "ForcedRelease" : "Vanished")
  }

  const settle = Effect.fnUntraced(function*(
    batch: ReadonlyArray<HeldLease>,
    answer: Answer,
    told: ReadonlyArray<GuardResult | undefined>,
    sent: Instant
  ) {
    const now = instant(clock)
    const all: GuardResult | undefined = Exit.isFailure(answer)
      ? { _tag: "Failed", error: toFailure(answer.cause) }
      : undefined
    const renewed: Array<HeldLease> = []
    const failed: Array<HeldLease> = []
    let error: BackendError | ProtocolError | undefined
    for (let i = 0; i < batch.length; i++) {
      const holding = batch[i]!
      holding.renewing = false
      holding.probe = "unasked"
      // A reply for a lease that was released or lost meanwhile says nothing any more
      if (!holding.isOpen()) continue
      const result = told[i] ?? all ?? (answer as Exit.Success<ReadonlyArray<GuardResult>>).value[i]!
      if (result._tag === "Renewed") {
        renewed.push(holding)
        const rest = settleRenewed(holding, sent, now)
        if (rest !== undefined) yield* rest
      } else if (result._tag === "Lost") {
        settleLost(holding, result)
      } else {
        recorder.update(MutexMetrics.guards.failed, 1, holding.mutex)
        if (!holding.failing) {
          holding.failing = true
          failed.push(holding)
          error = result.error
        }
        yield* plan(holding, { _tag: "Failed" }, now)
      }
    }
    recorder.count(MutexMetrics.guards.renewed, renewed)
    if (error !== undefined) {
      yield* Effect.logWarning(
        `${failed.length} lease(s) could not be renewed; trying again until their deadlines: ${error.message}`
      ).pipe(Effect.annotateLogs(annotations(failed[0]!)))
    }
  })

  const traced = (batch: ReadonlyArray<HeldLease>, told: Array<GuardResult | undefined>) =>
    tracing.span("simba.guard", () => ({
      root: true,
      attributes: { "simba.leases": batch.length, ...(batch.length === 1 ? tracing.attributes(batch[0]!) : {}) }
    }), store.guard(batch, (index, result) => void (told[index] = result)))

  /** What was taken out comes back, even if the attempt dies. */
  const surely = (holdings: ReadonlyArray<HeldLease>, attempt: Effect.Effect<void>) =>
    Effect.tapCause(attempt, (cause) =>
      Effect.suspend(() => {
        const soon = instant(clock).monotonic + pause
        for (const holding of holdings) {
          if (holding.position !== -1) continue
          holding.renewing = false
          holding.probe = "unasked"
          renewAt(holding, soon)
        }
        return Effect.logError("A renewal died, and is tried again", cause)
      }))

  /** With an alarm for its timeout instead of a timer and a race of its own: there may be thousands of leases. */
  const renew = (batch: ReadonlyArray<HeldLease>) =>
    Effect.withFiber((fiber) => {
      const sent = instant(clock)
      const told: Array<GuardResult | undefined> = []
      let isLate = false
      const cancel = alarms.at(sent.monotonic + commandMillis, () => {
        // When the layer ends, its leases do before their renewals
        if (alarms.isClosed()) return
        isLate = true
        fiber.interruptUnsafe()
      })
      return Effect.ignoreCause(Effect.onExit(Effect.suspend(() => traced(batch, told)), (exit) => {
        cancel()
        const answer: Answer = isLate && Exit.isFailure(exit) ? Exit.fail(new Cause.TimeoutError(late)) : exit
        return surely(batch, settle(batch, answer, told, sent))
      }))
    })

  /** Takes out what is due soon, as far as it goes into one call. What fails does not take along what does not. */
  const takeDue = (from: number) => {
    const now = instant(clock)
    const due: Array<HeldLease> = []
    const asked: Array<Effect.Effect<void>> = []
    for (let holding = renewable.first; holding !== undefined; holding = renewable.first) {
      if (holding.key > from + early(holding) || due.length === batchSize) break
      if (due.length > 0 && holding.failing !== due[0]!.failing) break
      renewable.remove(holding)
      // After a stall the deadline counts, not a renewal that would come too late
      check(holding, now)
      if (!holding.isOpen()) continue
      if (holding.isAlive === undefined || holding.probe === "alive" || holding.forcedAt !== undefined) {
        holding.renewing = true
        due.push(holding)
      } else {
        holding.probe = "asking"
        asked.push(surely([holding], probe(holding, holding.isAlive)))
      }
    }
    return { due, asked }
  }

  const loop = Effect.forever(Effect.gen(function*() {
    changed.closeUnsafe()
    const now = instant(clock).monotonic
    const first = renewable.first?.key ?? Infinity
    if (first > now) {
      next = first
      yield* sleepUntil(first, changed)
      next = -Infinity
      return
    }
    for (;;) {
      const { asked, due } = takeDue(now)
      for (const asking of asked) yield* FiberSet.run(fibers, asking)
      if (due.length > 0) yield* FiberSet.run(fibers, renew(due))
      if (due.length < batchSize) return
      // Thousands of leases are no reason to keep everybody else waiting
      yield* Effect.yieldNow
    }
  }))

  return { renewAt, remove: (holding) => renewable.remove(holding), loop }
})
