/**
 * Runs a handler on messages, retries it if it fails, and finally dead-letters the message. `messageLoop` calls it for
 * each batch, and `concurrentLoop` for each message.
 */
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import * as log from "../../internal/log.ts"
import { AcquireTimeout, BackendError, LeaseLost, ProtocolError, StaleToken } from "../../SimbaError.ts"
import { StreamYielded } from "../StreamError.ts"
import type { StreamLease } from "../StreamLease.ts"
import * as StreamMetrics from "../StreamMetrics.ts"
import type { RawMessage } from "../StreamState.ts"
import { failureText } from "./failureText.ts"
import { LeaseImpl } from "./leaseHandle.ts"
import { type LeaseError, reasonOf, retryOutages } from "./leaseRequests.ts"

/** One second, doubling up to 30 seconds, indefinitely, with jitter. */
export const defaultBackoff: Schedule.Schedule<unknown, unknown> = Schedule.min([
  Schedule.exponential("1 second"),
  Schedule.spaced("30 seconds")
]).pipe(Schedule.jittered)

/** Errors that concern the lease or the backend, not the message. */
const own = [StreamYielded, LeaseLost, StaleToken, BackendError, ProtocolError, AcquireTimeout]

const isOwn = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && own.some((type) => reason.error instanceof type))

/**
 * Runs the handler on messages until they are processed or, for a single message, dead-lettered. Returns false if all
 * attempts at a batch failed. The caller then tries the messages one by one.
 */
export type Attempts = <M extends RawMessage, E, R>(
  messages: NonEmptyReadonlyArray<M>,
  handler: (messages: NonEmptyReadonlyArray<M>) => Effect.Effect<unknown, E, R>
) => Effect.Effect<boolean, E | LeaseError | StreamYielded, R>

interface AttemptOptions {
  readonly attempts?: number | undefined
  readonly backoff?: Schedule.Schedule<unknown, Cause.Cause<unknown>> | undefined
}

type Step = Effect.Success<ReturnType<typeof Schedule.toStep<unknown, Cause.Cause<unknown>, never, never>>>

/** `meanwhile` runs during the pauses between attempts. */
export const make = (
  lease: StreamLease,
  { attempts = 10, backoff = defaultBackoff }: AttemptOptions,
  meanwhile: Effect.Effect<never, LeaseError>
): Attempts => {
  const subjectOf = ([first]: NonEmptyReadonlyArray<RawMessage>) => ({
    stream: lease.stream,
    token: lease.token,
    message: first.id
  })

  // Reporting progress would reset the failure count. After a failure, progress is therefore not reported, because the
  // next attempt may kill this process. Other implementations of the `StreamLease` service have only `progress`
  const pausing = <A, E>(pause: Effect.Effect<A, E>) =>
    lease instanceof LeaseImpl
      ? lease.pausing(pause)
      : Effect.andThen(lease.failures === 0 ? lease.progress : Effect.void, pause)

  /** Returns undefined after a success, or the last cause if all attempts failed. */
  const trying = <E, R>(messages: NonEmptyReadonlyArray<RawMessage>, work: Effect.Effect<unknown, E, R>) =>
    Effect.gen(function*() {
      let step: Step | undefined
      for (let count = 1;; count++) {
        const exit = yield* Effect.exit(work)
        if (Exit.isSuccess(exit)) return undefined
        const { cause } = exit
        if (attempts === Infinity || isOwn(cause)) return yield* Effect.failCause(cause)
        // A failure after the lease has ended says nothing about the message
        yield* lease.ensure
        if (count >= attempts) return { cause, count }
        step ??= yield* Schedule.toStep(backoff)
        const next = yield* Pull.catchDone(step(yield* Clock.currentTimeMillis, cause), () => Effect.undefined)
        if (next === undefined) return { cause, count }
        yield* log.warning(
          `${messages.length === 1 ? "A message" : `A batch of ${messages.length} messages`} failed ` +
            `(attempt ${count} of ${attempts}); retrying in ` +
            Duration.format(Duration.millis(Math.round(Duration.toMillis(next[1])))),
          cause
        ).pipe(Effect.annotateLogs(subjectOf(messages)))
        yield* pausing(
          Effect.raceAllFirst([Effect.sleep(next[1]), Effect.andThen(lease.revoked, lease.yield), meanwhile])
        )
        yield* lease.ensure
      }
    })

  const bury = Effect.fnUntraced(function*(message: RawMessage, cause: Cause.Cause<unknown>, count: number) {
    yield* log.error(`A message failed ${count} time(s); moving it to the dead letters`, cause).pipe(
      Effect.annotateLogs(subjectOf([message]))
    )
    yield* retryOutages(lease.deadLetter(message, reasonOf(failureText(cause))))
    yield* Metric.update(StreamMetrics.stream.deadMessages.failed, 1)
  })

  return (messages, handler) =>
    Effect.gen(function*() {
      const failed = yield* trying(messages, Effect.suspend(() => handler(messages)))
      if (failed === undefined) return true
      if (messages.length === 1) {
        yield* bury(messages[0], failed.cause, failed.count)
        return true
      }
      yield* log.warning(
        `A batch of ${messages.length} messages failed ${failed.count} time(s); retrying them one by one`
      )
        .pipe(Effect.annotateLogs(subjectOf(messages)))
      return false
    })
}
