/**
 * What mutexes measure about themselves, as Effect metrics: any exporter of Effect's (Prometheus, OTLP) shows them.
 *
 * The labels are the few words named here, never a mutex or a contender, unless `metricsByMutex` asks for the mutex.
 * Durations are in milliseconds. All that a layer measures goes to the registry, and carries the attributes, that were in
 * force when it was built.
 *
 * **Example** (Reading one)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const held = yield* Metric.value(MutexMetrics.held)
 *   const timeouts = yield* Metric.value(MutexMetrics.attempts.timeout)
 *   yield* Effect.log(`${held.value} leases held, ${timeouts.count} acquires timed out`)
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import type { LossReason } from "./SimbaError.ts"

const counter = (id: string, description: string, attributes?: Record<string, string>) =>
  Metric.counter(id, { description, incremental: true, ...(attributes === undefined ? {} : { attributes }) })

/** From a tenth of a millisecond to some minutes, or from one to some days. */
const milliseconds = (id: string, description: string, start: number) =>
  Metric.histogram(id, {
    description,
    attributes: { time_unit: "milliseconds" },
    boundaries: Metric.exponentialBoundaries({ start, factor: 2, count: 22 })
  })

/**
 * How an attempt to acquire ended.
 *
 * @see {@link attempts}
 * @category models
 * @since 0.1.0
 */
export type AttemptOutcome = "granted" | "refused" | "timeout" | "interrupted" | "error"

const attempt = (outcome: AttemptOutcome) =>
  counter("simba_mutex_acquire_attempts", "Attempts to acquire a mutex, by outcome", { outcome })

/**
 * Attempts to acquire by outcome. `refused` is the answer to one that would not wait. What was refused for its arguments
 * alone is not an attempt.
 *
 * **Example** (The share of attempts that time out)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const share = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.attempts.timeout), Metric.value(MutexMetrics.attempts.granted)]),
 *   ([timeout, granted]) => timeout.count / Math.max(1, timeout.count + granted.count)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const attempts: { readonly [Outcome in AttemptOutcome]: Metric.Counter<number> } = {
  granted: attempt("granted"),
  refused: attempt("refused"),
  timeout: attempt("timeout"),
  interrupted: attempt("interrupted"),
  error: attempt("error")
}

/**
 * How long one acquiring request took, there and back, whatever the answer: the backend's latency.
 *
 * **Example** (Its mean)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const meanMillis = Effect.map(
 *   Metric.value(MutexMetrics.acquireLatency),
 *   ({ count, sum }) => sum / Math.max(1, count)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const acquireLatency: Metric.Histogram<number> = milliseconds(
  "simba_mutex_acquire_latency",
  "Round trip of an acquiring request",
  0.1
)

/**
 * How long attempts waited that did not get the mutex at once, however the wait ended.
 *
 * **Example** (The longest wait)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const longestMillis = Effect.map(Metric.value(MutexMetrics.waitTime), ({ max }) => max)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const waitTime: Metric.Histogram<number> = milliseconds(
  "simba_mutex_wait_time",
  "Time spent waiting for a mutex that was not free",
  1
)

/**
 * How long leases lasted, from just before the granting request to the release or loss.
 *
 * **Example** (Whether work outgrows the ttl)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isRenewed = Effect.map(Metric.value(MutexMetrics.holdTime), ({ max }) => max > 10_000)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const holdTime: Metric.Histogram<number> = milliseconds(
  "simba_mutex_hold_time",
  "Time from the grant of a lease to its release or loss",
  1
)

/**
 * How an attempt to renew went. `failed`: no usable answer; `lost`: the backend says that the lease is over;
 * `notAlive`: not sent, because the lease's own probe did not say that its holder is alive.
 *
 * @see {@link guards}
 * @category models
 * @since 0.1.0
 */
export type GuardOutcome = "renewed" | "failed" | "lost" | "notAlive"

const guard = (outcome: GuardOutcome) =>
  counter("simba_mutex_guards", "Attempts to renew a lease, by outcome", { outcome })

/**
 * Attempts to renew by outcome, counted by lease.
 *
 * **Example** (Renewals that found no answer)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const failed = Effect.map(Metric.value(MutexMetrics.guards.failed), ({ count }) => count)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const guards: { readonly [Outcome in GuardOutcome]: Metric.Counter<number> } = {
  renewed: guard("renewed"),
  failed: guard("failed"),
  lost: guard("lost"),
  notAlive: guard("notAlive")
}

/**
 * Time that was left until the local deadline when a renewal succeeded. It is transition minus margin when all is well;
 * values that drift towards zero announce losses.
 *
 * **Example** (How near a loss was)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const warn = Effect.flatMap(
 *   Metric.value(MutexMetrics.timeLeftAtRenewal),
 *   ({ count, min }) => count > 0 && min < 1000 ? Effect.logWarning(`renewed ${min} ms before the end`) : Effect.void
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const timeLeftAtRenewal: Metric.Histogram<number> = milliseconds(
  "simba_mutex_time_left_at_renewal",
  "Time left until the local deadline when a renewal succeeded",
  1
)

const loss = (reason: LossReason) => counter("simba_mutex_losses", "Leases lost, by reason", { reason })

/**
 * Leases lost, by reason. `Released` is none: it is what a holder is told that goes on after its own release.
 *
 * **Example** (All losses but those that an operator caused)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const { ForcedRelease: _, ...unwanted } = MutexMetrics.losses
 *
 * const total = Effect.map(
 *   Effect.forEach(Object.values(unwanted), (metric) => Metric.value(metric)),
 *   (states) => states.reduce((sum, { count }) => sum + count, 0)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const losses: { readonly [Reason in Exclude<LossReason, "Released">]: Metric.Counter<number> } = {
  Expired: loss("Expired"),
  TakenOver: loss("TakenOver"),
  Vanished: loss("Vanished"),
  BackendGone: loss("BackendGone"),
  ForcedRelease: loss("ForcedRelease")
}

/**
 * Grants that a release passed on through the backend: the mutex was handed over to a waiter, or freed for it.
 *
 * **Example** (The share of grants for which somebody waited)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const contended = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.handOffs), Metric.value(MutexMetrics.attempts.granted)]),
 *   ([handOffs, granted]) => handOffs.count / Math.max(1, granted.count)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const handOffs: Metric.Counter<number> = counter("simba_mutex_hand_offs", "Grants that a release passed on")

/**
 * Grants that a release passed on within the process, without the backend: see `maxLocalHandOffs` of `LeaseOptions`.
 *
 * **Example** (How many holders share one turn in the fleet's queue)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const perTurn = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.localHandOffs), Metric.value(MutexMetrics.attempts.granted)]),
 *   ([local, granted]) => granted.count / Math.max(1, granted.count - local.count)
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const localHandOffs: Metric.Counter<number> = counter(
  "simba_mutex_local_hand_overs",
  "Grants that a release passed on within the process"
)

/**
 * Protected work that was still running when its server's lease had ended. See `MutexConfig.Overrun`.
 *
 * **Example** (A reason to wake somebody up)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const alarm = Effect.map(Metric.value(MutexMetrics.overruns), ({ count }) => count > 0)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const overruns: Metric.Counter<number> = counter(
  "simba_mutex_overruns",
  "Protected work that outlived the server's lease"
)

/**
 * Messages that could not be read. They are logged and passed over.
 *
 * **Example** (Whether something else publishes on these channels)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isDisturbed = Effect.map(Metric.value(MutexMetrics.malformedMessages), ({ count }) => count > 0)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const malformedMessages: Metric.Counter<number> = counter(
  "simba_malformed_messages",
  "Messages on a channel that could not be read"
)

/**
 * How many wait at present.
 *
 * **Example** (Not taking more work than there is a mutex for)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isReady = Effect.map(Metric.value(MutexMetrics.waiters), ({ value }) => value < 1000)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const waiters: Metric.Gauge<number> = Metric.gauge("simba_mutex_waiters", {
  description: "Attempts that wait for a mutex"
})

/**
 * How many leases are held at present.
 *
 * **Example** (Whether a process may be stopped)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isIdle = Effect.map(Metric.value(MutexMetrics.held), ({ value }) => value === 0)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const held: Metric.Gauge<number> = Metric.gauge("simba_mutex_held", { description: "Leases that are held" })

/**
 * Leaderships that began.
 *
 * **Example** (How often the leader changed)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const changes = Effect.map(Metric.value(MutexMetrics.leadershipsGained), ({ count }) => count)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const leadershipsGained: Metric.Counter<number> = counter("simba_leadership_gained", "Leaderships that began")

/**
 * How a leadership ended. `lost`: its lease was lost; `released`: it stepped down, was stopped, or its scope closed.
 *
 * @see {@link leadershipsEnded}
 * @category models
 * @since 0.1.0
 */
export type LeadershipEnd = "lost" | "released"

const end = (how: LeadershipEnd) => counter("simba_leadership_ended", "Leaderships that ended, by how", { how })

/**
 * Leaderships that ended.
 *
 * **Example** (Leaderships that were taken away)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isUnstable = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.leadershipsEnded.lost), Metric.value(MutexMetrics.leadershipsEnded.released)]),
 *   ([lost, released]) => lost.count > released.count
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const leadershipsEnded: { readonly [How in LeadershipEnd]: Metric.Counter<number> } = {
  lost: end("lost"),
  released: end("released")
}

/**
 * How a run of scheduled work ended. `failure`, `defect`: it failed, or died; `interrupted`: it was interrupted, by the
 * end of the leadership or otherwise; `skipped`: it was not run, because its period was taken by an earlier run
 * somewhere in the fleet, or nobody could be asked about that in time.
 *
 * @see {@link leaderRuns}
 * @category models
 * @since 0.1.0
 */
export type LeaderRunOutcome = "success" | "failure" | "defect" | "interrupted" | "skipped"

const run = (outcome: LeaderRunOutcome) =>
  counter("simba_leadership_runs", "Runs of scheduled work, by outcome", { outcome })

/**
 * Runs of scheduled work by outcome.
 *
 * **Example** (The runs that went wrong)
 *
 * ```ts
 * import { MutexMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const wrong = Effect.map(
 *   Effect.all([Metric.value(MutexMetrics.leaderRuns.failure), Metric.value(MutexMetrics.leaderRuns.defect)]),
 *   ([failures, defects]) => failures.count + defects.count
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const leaderRuns: { readonly [Outcome in LeaderRunOutcome]: Metric.Counter<number> } = {
  success: run("success"),
  failure: run("failure"),
  defect: run("defect"),
  interrupted: run("interrupted"),
  skipped: run("skipped")
}
