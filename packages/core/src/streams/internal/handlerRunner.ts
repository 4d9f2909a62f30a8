/**
 * Runs a data stream's handler, with retries, until the lease ends or is lost. `client` forks a fiber for each data
 * stream that it takes under `run`. `leaseEnds` ends the lease.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as log from "../../internal/log.ts"
import * as tracing from "../../internal/tracing.ts"
import type { HandlerFailure, RunOptions } from "../StreamClient.ts"
import { StreamYielded } from "../StreamError.ts"
import { StreamLease } from "../StreamLease.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { ClientContext } from "./context.ts"
import { failureText } from "./failureText.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import { reasonOf } from "./leaseRequests.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import { defaultBackoff } from "./messageAttempts.ts"
import { annotations, type OwnedStream } from "./ownedStream.ts"

const logFailure = ({ cause, failures, lease }: HandlerFailure) =>
  Effect.annotateLogs(log.error(`A data stream's handler failed (${failures})`, cause), annotations(lease))

const isYield = (reason: Cause.Reason<unknown>) => Cause.isFailReason(reason) && reason.error instanceof StreamYielded

const isYielded = (cause: Cause.Cause<unknown>) =>
  cause.reasons.some(isYield) &&
  // The end of the grace period may interrupt a handler that has just yielded
  cause.reasons.every((reason) => isYield(reason) || Cause.isInterruptReason(reason))

/** Only the handler, `onError`, the retry schedule and the pauses between runs are interruptible. */
export const runHandler = <A, E, R, RS, RH>(
  client: ClientContext,
  taking: LeaseTaker,
  owned: OwnedStream,
  body: (lease: StreamLease) => Effect.Effect<A, E, R>,
  options: RunOptions<RS, RH>
): Effect.Effect<void, never, Exclude<R | RS | RH, StreamLease>> => {
  const { config, ends, metrics, table } = client
  const lease = new LeaseImpl(client, owned)
  const { onError = logFailure, retry = defaultBackoff } = options

  const runOnce = (restore: Restore) =>
    Effect.gen(function*() {
      const began = table.now().monotonic
      if (config.progressTimeout !== undefined) {
        owned.progressedAt = began
        table.watch(owned)
      }
      const work = tracing.span(
        "simba.streams.handler",
        () => ({ attributes: { "simba.stream": owned.stream, "simba.token": owned.token } }),
        Effect.suspend(() => body(lease))
      )
      const exit = yield* Effect.exit(restore(work))
      owned.progressedAt = undefined
      const outcome = Exit.isSuccess(exit)
        ? "success"
        : isYielded(exit.cause)
        ? "yielded"
        : owned.isOpen() && !owned.isStopped
        ? "failure"
        : "interrupted"
      metrics.update(StreamMetrics.stream.processingTime[outcome], table.now().monotonic - began)
      return exit
    })

  const markDone = ends.endOrLose(owned, "Marking a data stream as done", ends.done(owned))

  const yieldOrHandOver = Effect.suspend(() => {
    if (owned.isMarkedDone) return markDone
    taking.skipFor(owned.entry, config.sweepInterval)
    const { receiver } = owned
    return receiver === undefined
      ? ends.yield(owned)
      : ends.endOrLose(owned, "Handing a data stream over", ends.handOver(owned, receiver))
  })

  const deadLetter = (cause: Cause.Cause<unknown>) =>
    ends.endOrLose(
      owned,
      "Moving an announcement to the dead letters",
      ends.deadLetter(owned, reasonOf(failureText(cause)))
    )

  /**
   * `onError` is interrupted like the handler: by a loss, or after the grace period. If the handler has already been
   * stopped, `onError` still runs for at most `releaseTimeout`.
   */
  const reportFailure = (restore: Restore, failure: HandlerFailure) =>
    Effect.catchCause(
      Effect.suspend(() =>
        owned.isStopped ? Effect.timeoutOption(onError(failure), config.releaseTimeout) : restore(onError(failure))
      ),
      (cause) => Cause.hasInterruptsOnly(cause) ? Effect.void : log.error("onError failed", cause)
    )

  const runUntilEnd = (restore: Restore) =>
    Effect.gen(function*() {
      let step: Effect.Success<ReturnType<typeof Schedule.toStep<unknown, HandlerFailure, never, RS>>> | undefined
      let last = 0
      let attempts = 0
      while (table.isHeld(owned)) {
        owned.isKept = false
        const exit = yield* runOnce(restore)
        if (!table.isHeld(owned)) return
        if (Exit.isSuccess(exit)) return yield* markDone
        const { cause } = exit
        if (isYielded(cause) && owned.isKept && !owned.isRevoked) continue
        if (isYielded(cause) || (owned.isStopped && Cause.hasInterruptsOnly(cause))) return yield* yieldOrHandOver
        const counted = yield* ends.retry(
          owned,
          "Counting a failure",
          ends.fail(owned, ++attempts),
          "it does not count"
        )
        if (!owned.isOpen()) return
        const failures = Option.match(counted, { onNone: () => owned.failures + 1, onSome: ({ count }) => count })
        owned.failures = failures
        const { entry, stream, token } = owned
        const failure: HandlerFailure = { lease, stream, entry, token, cause, failures }
        yield* reportFailure(restore, failure)
        if (!owned.isOpen()) return
        if (owned.isMarkedDone) return yield* markDone
        const isForLong = Option.exists(
          counted,
          ({ period }) => Duration.isGreaterThanOrEqualTo(period, config.deadLetterAfter)
        )
        if (failures >= config.maxFailures && isForLong) {
          return yield* deadLetter(cause)
        }
        // If the count did not grow, a commit has reset it: start the schedule over
        const isNew = step === undefined || failures <= last
        last = failures
        const decided = yield* Effect.exit(restore(Effect.gen(function*() {
          if (isNew) step = yield* Schedule.toStep(retry)
          return yield* Pull.catchDone(step!(yield* Clock.currentTimeMillis, failure), () => Effect.undefined)
        })))
        if (Exit.isFailure(decided)) {
          if (!Cause.hasInterruptsOnly(decided.cause)) return yield* decided
          return yield* table.isHeld(owned) ? yieldOrHandOver : Effect.void
        }
        const next = decided.value
        if (next === undefined) return yield* deadLetter(cause)
        if (!owned.isRevoked) yield* Effect.exit(restore(Effect.timeoutOption(owned.revoked, next[1])))
        if (!table.isHeld(owned)) return
        if (owned.isRevoked) return yield* yieldOrHandOver
      }
    })

  return Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber) => {
      table.workBegan(owned, fiber)
      // `onError` and `retry` get the lease too: if they call `done` or `release`, these do not wait for this fiber
      return Effect.ensuring(
        Effect.provideService(runUntilEnd(restore), StreamLease, lease),
        Effect.sync(() => table.workEnded(owned))
      )
    })
  )
}

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
