/**
 * Mutex, leadership and job metrics for any Effect exporter (Prometheus, OTLP).
 *
 * Labels take only the values listed here. They never name a contender, and name a mutex only if `metricsByMutex` is
 * set. A single job's metrics always name the mutex and the job. Durations are in milliseconds. A layer uses the metric
 * registry and the attributes of the context in which it was built.
 *
 * **Example** (Reading two metrics)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const held = yield* Metric.value(MutexMetrics.mutex.held)
 *   const timeouts = yield* Metric.value(MutexMetrics.mutex.attempts.timeout)
 *   yield* Effect.log(`${held.value} leases held, ${timeouts.count} acquires timed out`)
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import { counter, counters } from "./internal/metrics.ts"

/**
 * The largest boundary is about a million times `start`: 105 seconds for 0.1 milliseconds, 17 minutes for 1
 * millisecond.
 */
const milliseconds = (id: string, description: string, start: number) =>
  Metric.histogram(id, {
    description,
    attributes: { time_unit: "milliseconds" },
    boundaries: Metric.exponentialBoundaries({ start, factor: 2, count: 22 })
  })

const jobGauge = (id: string, description: string): Metric.Gauge<number> =>
  Metric.gauge(id, { description, attributes: { time_unit: "milliseconds" } })

/**
 * Mutex metrics: acquire attempts, waits and leases.
 *
 * **Example** (Computing the share of attempts that timed out)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const share = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.mutex.attempts.timeout), Metric.value(MutexMetrics.mutex.attempts.granted)]),
 *   ([timeout, granted]) => timeout.count / Math.max(1, timeout.count + granted.count)
 * )
 * ```
 *
 * **Example** (Warning when a renewal came close to the deadline)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const warn = Effect.flatMap(
 *   Metric.value(MutexMetrics.mutex.timeLeftAtRenewal),
 *   ({ count, min }) => count > 0 && min < 1000 ? Effect.logWarning(`renewed ${min} ms before the end`) : Effect.void
 * )
 * ```
 *
 * **Example** (Counting losses that no operator caused)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const { ForcedRelease: _, ...unwanted } = MutexMetrics.mutex.losses
 *
 * const total = Effect.map(
 *   Effect.forEach(Object.values(unwanted), (metric) => Metric.value(metric)),
 *   (states) => states.reduce((sum, { count }) => sum + count, 0)
 * )
 * ```
 *
 * **Example** (Computing the average number of holders per turn)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const perTurn = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.mutex.localHandOffs), Metric.value(MutexMetrics.mutex.attempts.granted)]),
 *   ([local, granted]) => granted.count / Math.max(1, granted.count - local.count)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const mutex = {
  /**
   * Counts attempts to acquire, by outcome.
   *
   * `refused` counts attempts that found the mutex taken and did not wait. Attempts with invalid arguments are not
   * counted.
   */
  attempts: counters(
    "simba_mutex_acquire_attempts",
    "Attempts to acquire a mutex, by outcome",
    "outcome",
    ["granted", "refused", "timeout", "interrupted", "error"]
  ),
  /** Measures the round trip of acquire requests, which is the backend's latency. */
  acquireLatency: milliseconds(
    "simba_mutex_acquire_latency",
    "Round trip of an acquire request",
    0.1
  ),
  /** Measures how long attempts waited for a mutex that was not free, whether or not they acquired it. */
  waitTime: milliseconds(
    "simba_mutex_wait_time",
    "Time spent waiting for a mutex that was not free",
    1
  ),
  /** Shows how many attempts are waiting. */
  waiters: Metric.gauge("simba_mutex_waiters", {
    description: "Attempts waiting for a mutex"
  }),
  /** Shows how many leases are held. */
  held: Metric.gauge("simba_mutex_held", { description: "Leases held" }),
  /** Measures how long leases lasted, from the grant (or just before its request was sent) to the release or loss. */
  holdTime: milliseconds(
    "simba_mutex_hold_time",
    "Time from the grant of a lease to its release or loss",
    1
  ),
  /**
   * Counts attempts to renew a lease, by outcome. A batch counts once for each of its leases.
   *
   * - `failed`: there was no valid reply.
   * - `lost`: the backend reported that the lease had ended.
   * - `notAlive`: nothing was sent, because `isAlive` did not return `true`.
   */
  renewals: counters(
    "simba_mutex_renewals",
    "Attempts to renew a lease, by outcome",
    "outcome",
    ["renewed", "failed", "lost", "notAlive"]
  ),
  /**
   * Measures how much time was left until the local deadline when a renewal succeeded.
   *
   * Normally this is the transition minus the safety margin. Values near zero predict losses.
   *
   * A batch of up to 500 renewals is recorded once, with its minimum. With `metricsByMutex`, each lease is recorded.
   */
  timeLeftAtRenewal: milliseconds(
    "simba_mutex_time_left_at_renewal",
    "Minimum time left until a local deadline when a renewal succeeded",
    1
  ),
  /** Counts lost leases, by reason. Using a lease after releasing it (`Released`) does not count. */
  losses: counters(
    "simba_mutex_losses",
    "Leases lost, by reason",
    "reason",
    ["Expired", "TakenOver", "Vanished", "BackendGone", "ForcedRelease"]
  ),
  /**
   * Counts leases that ended on the server while their protected work was still running. See `onOverrun` in
   * `Mutex.Options`.
   */
  overruns: counter(
    "simba_mutex_overruns",
    "Protected work that outlived the server's lease"
  ),
  /** Counts grants to this process's waiters that a release caused, by handing over or freeing the mutex. */
  handOffs: counter("simba_mutex_hand_offs", "Grants caused by a release"),
  /** Counts releases that handed the lease to another fiber in this process, without the backend. See `localTurn`. */
  localHandOffs: counter(
    "simba_mutex_local_hand_offs",
    "Leases handed on within the process, without the backend"
  ),
  /**
   * Counts messages that could not be read. They are logged and skipped, because other programs may publish on these
   * channels.
   */
  malformedMessages: counter(
    "simba_malformed_messages",
    "Messages on a channel that could not be read"
  )
} as const

/**
 * Leadership metrics.
 *
 * @category metrics
 * @since 0.1.0
 */
export const leadership = {
  /** Counts leaderships that began. */
  gained: counter("simba_leadership_gained", "Leaderships that began"),
  /**
   * Counts leaderships that ended.
   *
   * - `lost`: the lease was lost.
   * - `released`: the contender stepped down or was stopped, or its scope closed.
   */
  ended: counters(
    "simba_leadership_ended",
    "Leaderships that ended, by outcome",
    "how",
    ["lost", "released"]
  )
} as const

/**
 * Job metrics.
 *
 * **Example** (Counting failed runs)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const wrong = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.jobs.runs.failure), Metric.value(MutexMetrics.jobs.runs.defect)]),
 *   ([failures, defects]) => failures.count + defects.count
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const jobs = {
  /**
   * Counts job runs, by outcome.
   *
   * - `failure`, `defect`: the run failed or died. A run that interrupts itself counts as failed.
   * - `interrupted`: the leadership ended during the run.
   */
  runs: counters(
    "simba_job_runs",
    "Runs of jobs, by outcome",
    "outcome",
    ["success", "failure", "defect", "interrupted"]
  ),
  /**
   * Counts missed job runs, by cause, with the labels `mutex` and `job_name`.
   *
   * - `noLeader`: there was no leader.
   * - `running`: the previous run had not ended, or `minInterval` had not passed.
   * - `paused`: an operator paused the job.
   * - `outage`: the backend did not reply in time, or the leader's process was paused.
   */
  missed: counters(
    "simba_job_missed",
    "Scheduled times that passed without a run, by cause",
    "cause",
    ["noLeader", "running", "paused", "outage"]
  ),
  /**
   * Shows when the last run of a job started in the fleet, in milliseconds since 1970, with the labels `mutex` and
   * `job_name`. Each leader reports it, so take the maximum.
   */
  lastStart: jobGauge("simba_job_last_start", "When the last run of a job began"),
  /** Shows when the last successful run of a job ended in the fleet, with the same unit and labels as `lastStart`. */
  lastSuccess: jobGauge(
    "simba_job_last_success",
    "When the last successful run of a job ended"
  ),
  /**
   * Shows when a job's current run started on this node, in milliseconds since 1970, or 0 if the job is not running.
   */
  runningSince: jobGauge("simba_job_running_since", "Start of a job's current run, or 0")
} as const
