/** Handlers: one fiber per data stream, in which everything happens that concerns its handler. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as tracing from "../../internal/tracing.ts"
import type { HandlerFailure, RunOptions } from "../StreamClient.ts"
import { StreamYielded } from "../StreamError.ts"
import { StreamLease } from "../StreamLease.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { ClientContext } from "./context.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import type { LeaseTaker } from "./leaseTaker.ts"
import { annotations, type OwnedStream } from "./ownedStream.ts"

export type Body<A, E, R> = (lease: StreamLease) => Effect.Effect<A, E, R>

/** A second after the first failure, doubling up to half a minute. It has no end: `maxFailures` is one. */
const defaultRetry: Schedule.Schedule<unknown, HandlerFailure> = Schedule.min([
  Schedule.exponential("1 second"),
  Schedule.spaced("30 seconds")
]).pipe(Schedule.jittered)

const report = ({ cause, failures, ...subject }: HandlerFailure) =>
  Effect.annotateLogs(Effect.logError(`The handler of a data stream failed (${failures})`, cause), annotations(subject))

const isHandBack = (reason: Cause.Reason<unknown>) =>
  Cause.isFailReason(reason) && reason.error instanceof StreamYielded

const isHandedBack = (cause: Cause.Cause<unknown>) =>
  cause.reasons.some(isHandBack) &&
  // When the grace is over as it is given back, it is interrupted besides
  cause.reasons.every((reason) => isHandBack(reason) || Cause.isInterruptReason(reason))

/** From the taking to the end of one holding. Uninterruptible but for the handler and the pauses between its runs. */
export const process = <A, E, R, R2>(
  client: ClientContext,
  taking: LeaseTaker,
  owned: OwnedStream,
  body: Body<A, E, R>,
  options: RunOptions<R2>
): Effect.Effect<void, never, Exclude<R, StreamLease> | R2> => {
  const { config, ending, meter, table } = client
  const lease = new LeaseImpl(client, owned)
  const { onError = report, retry = defaultRetry } = options

  const runOnce = (restore: Restore) =>
    Effect.gen(function*() {
      const began = table.now().monotonic
      if (config.progressTimeout !== undefined) {
        owned.progressed = began
        table.watch(owned)
      }
      const work = tracing.span(
        "simba.streams.handler",
        () => ({ attributes: { "simba.stream": owned.stream, "simba.token": owned.token } }),
        Effect.suspend(() => body(lease))
      )
      const exit = yield* Effect.exit(restore(work))
      owned.progressed = undefined
      const now = table.now()
      const outcome = Exit.isSuccess(exit)
        ? "success"
        : isHandedBack(exit.cause)
        ? "handedBack"
        : owned.isOpen() && !owned.isStopped
        ? "failure"
        : "interrupted"
      meter.update(StreamMetrics.processingTime[outcome], now.monotonic - began)
      table.check(owned, now)
      return exit
    })

  const finish = ending.certain(owned, "Marking a data stream as done", ending.done(owned))

  const giveBack = Effect.suspend(() => {
    if (owned.isFinished) return finish
    taking.rest(owned.entry, config.sweepInterval)
    const { heir } = owned
    return heir === undefined
      ? ending.giveBack(owned)
      : ending.certain(owned, "Handing a data stream over", ending.handOver(owned, heir))
  })

  const bury = (cause: Cause.Cause<unknown>) =>
    ending.certain(owned, "Burying a data stream", ending.bury(owned, Cause.pretty(cause)))

  /**
   * Like the handler, it is interrupted where the data stream is lost or wanted back. Where the handler failed of that, by
   * its finalizers, this fiber is interrupted for good: then it has so much time, in a fiber of its own.
   */
  const observe = (restore: Restore, failure: HandlerFailure) =>
    Effect.catchCause(
      Effect.suspend(() =>
        owned.isStopped ? Effect.timeoutOption(onError(failure), config.releaseTimeout) : restore(onError(failure))
      ),
      (cause) => Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError("onError failed", cause)
    )

  const pause = (delay: Duration.Duration) => Effect.raceFirst(Effect.sleep(delay), lease.revoked)

  const whole = (restore: Restore) =>
    Effect.gen(function*() {
      let step: Effect.Success<ReturnType<typeof Schedule.toStep<unknown, HandlerFailure, never, R2>>> | undefined
      let last = 0
      let attempts = 0
      while (owned.isOpen()) {
        const exit = yield* runOnce(restore)
        if (!owned.isOpen()) return
        if (Exit.isSuccess(exit)) return yield* finish
        const { cause } = exit
        if (isHandedBack(cause)) return yield* giveBack
        if (owned.isStopped && Cause.hasInterruptsOnly(cause)) return yield* giveBack
        const counted = yield* ending.insist(owned, "Counting a failure", ending.fail(owned, ++attempts))
        if (!owned.isOpen()) return
        const failures = Option.getOrElse(counted, () => owned.failures + 1)
        owned.failures = failures
        const { entry, stream, token } = owned
        const failure: HandlerFailure = { stream, entry, token, cause, failures }
        yield* observe(restore, failure)
        if (!owned.isOpen()) return
        if (owned.isFinished) return yield* finish
        if (failures >= config.maxFailures) return yield* bury(cause)
        // A commit in between has set the count back
        if (step === undefined || failures <= last) step = yield* Schedule.toStep(retry)
        last = failures
        const next = yield* Pull.catchDone(
          step(yield* Clock.currentTimeMillis, failure),
          () => Effect.undefined
        )
        if (next === undefined) return yield* bury(cause)
        if (!owned.isAskedBack) yield* Effect.exit(restore(pause(next[1])))
        table.check(owned, table.now())
        if (!owned.isOpen()) return
        if (owned.isAskedBack) return yield* giveBack
      }
    })

  return Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber) => {
      table.workBegan(owned, fiber)
      // For onError and retry, too: what they ask for this data stream comes from inside
      return Effect.ensuring(
        Effect.provideService(whole(restore), StreamLease, lease),
        Effect.sync(() => table.workEnded(owned))
      )
    })
  )
}

type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
