/** One run of a job, from its start under the lease until its end is recorded. Called by `jobRunner` after a claim. */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import type { EndRequest, RunOutcome } from "../../JobStore.ts"
import type { Job } from "../../Leadership.ts"
import type { Lease } from "../../Lease.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"
import type { MutexName } from "../../MutexName.ts"
import * as log from "../log.ts"
import type { JobHost } from "./jobHost.ts"
import * as jobMetrics from "./jobMetrics.ts"
import type { JobSpec } from "./jobSpec.ts"

/** How long to wait for the backend to record the end of a run. */
const noteTimeoutMillis = 1000

interface Claimed<R> {
  readonly host: JobHost
  readonly lease: Lease
  readonly spec: JobSpec
  readonly run: Job<unknown, R>["run"]
  readonly mutex: MutexName
  readonly note: (outcome: RunOutcome) => Effect.Effect<void>
  /** Called when the run takes over the claim. After this call, `note` records how the claim ended. */
  readonly taken: () => void
  /** In milliseconds since 1970 by the backend's clock, as is `start`. */
  readonly scheduledAt: number
  readonly start: number
  readonly isCatchUp: boolean
  readonly attempt: number
  readonly periodMillis: number
}

const outcomeOf = (exit: Exit.Exit<unknown, unknown>): Exclude<RunOutcome, "unstarted"> =>
  Exit.isSuccess(exit)
    ? "success"
    : Cause.hasFails(exit.cause)
    ? "failure"
    : Cause.hasDies(exit.cause)
    ? "defect"
    : "interrupted"

/** Records the end of a run. If the record is lost, `jobRunner` sends it again. */
export const noteEnd = (host: JobHost, request: EndRequest): Effect.Effect<void> =>
  host.store.jobs.end(request).pipe(
    Effect.timeout(noteTimeoutMillis),
    Effect.asVoid,
    Effect.catchCause((cause) => log.warning(`Cannot record how a run of "${request.job}" ended:`, log.why(cause)))
  )

export const execute = <R>(claimed: Claimed<R>): Effect.Effect<void, never, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function*() {
      const { attempt, host, isCatchUp, lease, mutex, note, scheduledAt, spec } = claimed
      const { name } = spec
      claimed.taken()
      // Check and start in one step: nothing must start under a lease that has ended
      let ended: (() => void) | undefined
      const begin = Effect.suspend(() => {
        ended = host.startRun(lease)
        if (ended === undefined) return Effect.void
        const scheduled = { scheduledAt: DateTime.makeUnsafe(scheduledAt), isCatchUp, attempt, lease }
        return typeof claimed.run === "function" ? claimed.run(scheduled) : claimed.run
      })
      const exit = yield* Effect.exit(restore(watched(begin, claimed)))
      yield* jobMetrics.noteRunning(mutex, name, 0)
      if (ended === undefined) return yield* note("unstarted")
      ended()
      // Only the end of the leadership counts as an interruption. If a run interrupts itself, it has failed
      const isOver = Exit.isFailure(yield* Effect.exit(restore(Effect.void)))
      const outcome = isOver || outcomeOf(exit) !== "interrupted" ? outcomeOf(exit) : "failure"
      yield* Metric.update(MutexMetrics.jobs.runs[outcome], 1)
      if (Exit.isFailure(exit) && outcome !== "interrupted") yield* log.error(`Run of "${name}" failed`, exit.cause)
      yield* note(outcome)
      if (Exit.isSuccess(exit)) return
      // Stops here if the leadership has ended. Runs of other jobs that are due at the same time start first
      yield* restore(Effect.yieldNow)
      if (spec.onError === "stepDown") host.resign(lease)
    })
  )

/** Runs the work, warns if it exceeds the job's period, and fails it after `maxRun`. */
const watched = <R>(work: Effect.Effect<unknown, unknown, R>, { mutex, periodMillis, spec, start }: Claimed<R>) =>
  Effect.scoped(Effect.gen(function*() {
    yield* jobMetrics.noteRunning(mutex, spec.name, start)
    const warning = log.warning(
      `"${spec.name}" has been running for longer than its period of ${Duration.format(Duration.millis(periodMillis))}`
    )
    yield* Effect.forkScoped(Effect.delay(warning, periodMillis))
    return yield* spec.maxRun === undefined ? work : Effect.timeout(work, spec.maxRun)
  }))
