/** Tries a message again when its handler fails, and sends it to the dead letters of its data stream in the end. */
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
import type { RawMessage } from "../StreamStore.ts"
import { type LeaseError, reasonOf, retryOutages } from "./leaseRequests.ts"

/** One second, doubling up to half a minute. It does not end. */
export const defaultBackoff: Schedule.Schedule<unknown, unknown> = Schedule.min([
  Schedule.exponential("1 second"),
  Schedule.spaced("30 seconds")
]).pipe(Schedule.jittered)

/** These say something about a lease or a backend, and nothing about the message. */
const own = [StreamYielded, LeaseLost, StaleToken, BackendError, ProtocolError, AcquireTimeout]

const isOwn = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && own.some((type) => reason.error instanceof type))

export type Attempts = <E, R>(
  message: RawMessage,
  work: Effect.Effect<unknown, E, R>
) => Effect.Effect<void, E | LeaseError | StreamYielded, R>

interface AttemptOptions {
  readonly attempts?: number | undefined
  readonly backoff?: Schedule.Schedule<unknown, Cause.Cause<unknown>> | undefined
}

/** `meanwhile` runs in the pauses. */
export const make = (
  lease: StreamLease,
  { attempts = 10, backoff = defaultBackoff }: AttemptOptions,
  meanwhile: Effect.Effect<never, LeaseError>
): Attempts =>
(message, work) => {
  if (attempts === Infinity) return Effect.asVoid(work)
  const subject = { stream: lease.stream, token: lease.token, message: message.id }

  const bury = Effect.fnUntraced(function*(cause: Cause.Cause<unknown>, count: number) {
    yield* log.error(`A message failed ${count} time(s), and goes to the dead letters`, cause).pipe(
      Effect.annotateLogs(subject)
    )
    yield* retryOutages(lease.deadLetter(message, reasonOf(Cause.pretty(cause))))
    yield* Metric.update(StreamMetrics.deadMessages.failed, 1)
  })

  return Effect.gen(function*() {
    let step:
      | Effect.Success<ReturnType<typeof Schedule.toStep<unknown, Cause.Cause<unknown>, never, never>>>
      | undefined
    for (let count = 1;; count++) {
      const exit = yield* Effect.exit(work)
      if (Exit.isSuccess(exit)) return
      const { cause } = exit
      if (isOwn(cause)) return yield* Effect.failCause(cause)
      // What fails because its lease is over says nothing about the message either
      yield* lease.ensure
      if (count >= attempts) return yield* bury(cause, count)
      step ??= yield* Schedule.toStep(backoff)
      const next = yield* Pull.catchDone(step(yield* Clock.currentTimeMillis, cause), () => Effect.undefined)
      if (next === undefined) return yield* bury(cause, count)
      const pause = next[1]
      yield* log.warning(
        `A message failed (attempt ${count} of ${attempts}); trying again in ${Duration.format(pause)}`,
        cause
      ).pipe(Effect.annotateLogs(subject))
      // Time in a pause is no lack of progress. A row of failures goes on: the next attempt may end this process
      if (lease.failures === 0) yield* lease.progress
      yield* Effect.raceAllFirst([Effect.sleep(pause), Effect.andThen(lease.revoked, lease.yield), meanwhile])
      yield* lease.ensure
    }
  })
}
