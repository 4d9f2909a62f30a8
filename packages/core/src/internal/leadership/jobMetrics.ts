/** Updates the metrics of a single job, for `jobRunner` and `jobRun`. */
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import type { JobRecord } from "../../JobStore.ts"
import * as MutexMetrics from "../../MutexMetrics.ts"

const of = <Input, State>(metric: Metric.Metric<Input, State>, mutex: string, job: string) =>
  Metric.withAttributes(metric, { mutex, job_name: job })

/** Reports the last start and the last success in the fleet, on any node. */
export const note = (mutex: string, job: string, record: JobRecord | undefined): Effect.Effect<void> =>
  Effect.gen(function*() {
    if (record?.run !== undefined) yield* Metric.update(of(MutexMetrics.jobs.lastStart, mutex, job), record.run.start)
    if (record?.success !== undefined) {
      yield* Metric.update(of(MutexMetrics.jobs.lastSuccess, mutex, job), record.success)
    }
  })

/** `since` is 0 if the job is not running. */
export const noteRunning = (mutex: string, job: string, since: number): Effect.Effect<void> =>
  Metric.update(of(MutexMetrics.jobs.runningSince, mutex, job), since)

export const countMissed = (
  mutex: string,
  job: string,
  cause: keyof typeof MutexMetrics.jobs.missed,
  missed: number
): Effect.Effect<void> => Metric.update(of(MutexMetrics.jobs.missed[cause], mutex, job), missed)
