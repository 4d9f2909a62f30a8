/**
 * Metrics of mutexes and leaderships, for any exporter of Effect (Prometheus, OTLP).
 *
 * Labels have only the values named here, and never a mutex or a contender, unless `metricsByMutex` adds the mutex.
 * The metrics of a single job always name the mutex and the job. Durations are in milliseconds. A layer uses the
 * registry and the attributes of the context in which it was built.
 *
 * **Example** (Reading two of them)
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

/** From a tenth of a millisecond to several minutes, or from one millisecond to several days. */
const milliseconds = (id: string, description: string, start: number) =>
  Metric.histogram(id, {
    description,
    attributes: { time_unit: "milliseconds" },
    boundaries: Metric.exponentialBoundaries({ start, factor: 2, count: 22 })
  })

const jobGauge = (id: string, description: string): Metric.Gauge<number> =>
  Metric.gauge(id, { description, attributes: { time_unit: "milliseconds" } })

/**
 * Metrics of mutexes: attempts to acquire, waits, leases and their ends.
 *
 * **Example** (The share of attempts that time out)
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
 * **Example** (How near a loss was)
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
 * **Example** (All losses but those that an operator caused)
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
 * **Example** (How many holders share one turn in the fleet's queue)
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
   * `refused` counts attempts that found the mutex taken and did not wait. An attempt with invalid arguments does not
   * count.
   */
  attempts: counters(
    "simba_mutex_acquire_attempts",
    "Attempts to acquire a mutex, by outcome",
    "outcome",
    ["granted", "refused", "timeout", "interrupted", "error"]
  ),
  /** Measures the round trip of acquiring requests, which is the latency of the backend. */
  acquireLatency: milliseconds(
    "simba_mutex_acquire_latency",
    "Round trip of an acquiring request",
    0.1
  ),
  /** Measures how long attempts waited for a mutex that was not free, however the wait ended. */
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
  held: Metric.gauge("simba_mutex_held", { description: "Leases that are held" }),
  /** Measures how long leases lasted, from just before the granting request to the release or loss. */
  holdTime: milliseconds(
    "simba_mutex_hold_time",
    "Time from the grant of a lease to its release or loss",
    1
  ),
  /**
   * Counts attempts to renew, once for each lease, by outcome.
   *
   * - `failed`: no valid reply.
   * - `lost`: the backend reports that the lease is over.
   * - `notAlive`: not sent, because the option `isAlive` did not return `true`.
   */
  renewals: counters(
    "simba_mutex_renewals",
    "Attempts to renew a lease, by outcome",
    "outcome",
    ["renewed", "failed", "lost", "notAlive"]
  ),
  /**
   * Measures the time until the local deadline when a renewal succeeded.
   *
   * Normally this is the transition minus the safety margin. Values that approach zero predict losses.
   *
   * Leases that are renewed together, up to 500, count once, with the minimum. With `metricsByMutex` each lease counts.
   */
  timeLeftAtRenewal: milliseconds(
    "simba_mutex_time_left_at_renewal",
    "Minimum time left until a local deadline when a renewal succeeded",
    1
  ),
  /** Counts lost leases, by reason. Use of a lease after its own release (`Released`) does not count. */
  losses: counters(
    "simba_mutex_losses",
    "Leases lost, by reason",
    "reason",
    ["Expired", "TakenOver", "Vanished", "BackendGone", "ForcedRelease"]
  ),
  /**
   * Counts protected work that was still running when its server's lease had ended. See `onOverrun` of `Mutex.Options`.
   */
  overruns: counter(
    "simba_mutex_overruns",
    "Protected work that outlived the server's lease"
  ),
  /**
   * Counts grants to waiters of this process that followed from a release: it passed the mutex on, or freed it for
   * them.
   */
  handOffs: counter("simba_mutex_hand_offs", "Grants that a release passed on"),
  /** Counts releases that handed the lease to another fiber of the process, without the backend. See `localTurn`. */
  localHandOffs: counter(
    "simba_mutex_local_hand_offs",
    "Grants that a release passed on within the process"
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
 * Metrics of leaderships.
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
    "Leaderships that ended, by how",
    "how",
    ["lost", "released"]
  )
} as const

/**
 * Metrics of jobs.
 *
 * **Example** (The runs that failed)
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
   * Counts runs of jobs, by outcome.
   *
   * - `failure`, `defect`: the run failed or died. A run that interrupts itself counts as failed.
   * - `interrupted`: the end of the leadership interrupted it.
   */
  runs: counters(
    "simba_job_runs",
    "Runs of jobs, by outcome",
    "outcome",
    ["success", "failure", "defect", "interrupted"]
  ),
  /**
   * Counts the missed instants of jobs, by cause, with the labels `mutex` and `job_name`.
   *
   * - `noLeader`: there was no leader.
   * - `running`: the previous run had not ended.
   * - `paused`: an operator paused the job.
   * - `outage`: the backend did not reply in time.
   */
  missed: counters(
    "simba_job_missed",
    "Scheduled instants that nobody ran, by cause",
    "cause",
    ["noLeader", "running", "paused", "outage"]
  ),
  /**
   * Shows when the last run of a job started in the fleet, in milliseconds since 1970, with the labels `mutex` and
   * `job_name`. Each leader reports it, so take the maximum.
   */
  lastStart: jobGauge("simba_job_last_start", "When the last run of a job began"),
  /** Shows when the last successful run of a job ended in the fleet, as `lastStart` does. */
  lastSuccess: jobGauge(
    "simba_job_last_success",
    "When the last successful run of a job ended"
  ),
  /** Shows since when a job has been running on this node, in milliseconds since 1970, or 0 if it is not running. */
  runningSince: jobGauge("simba_job_running_since", "Since when a job runs, or 0")
} as const
