/**
 * What leadership measures about itself, as Effect metrics, in the manner of `MutexMetrics`. The labels are the few words
 * named here.
 *
 * **Example** (Reading one)
 *
 * ```ts
 * import { LeadershipMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const gained = yield* Metric.value(LeadershipMetrics.gained)
 *   const failures = yield* Metric.value(LeadershipMetrics.runs.failure)
 *   yield* Effect.log(`led ${gained.count} times, ${failures.count} runs failed`)
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"

const counter = (id: string, description: string, attributes?: Record<string, string>) =>
  Metric.counter(id, { description, incremental: true, ...(attributes === undefined ? {} : { attributes }) })

/**
 * Leaderships that began.
 *
 * **Example** (How often the leader changed)
 *
 * ```ts
 * import { LeadershipMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const changes = Effect.map(Metric.value(LeadershipMetrics.gained), ({ count }) => count)
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const gained: Metric.Counter<number> = counter("simba_leadership_gained", "Leaderships that began")

/**
 * How a leadership ended. `lost`: its lease was lost; `released`: it stepped down, was stopped, or its scope closed.
 *
 * @see {@link ended}
 * @category models
 * @since 0.1.0
 */
export type EndOfLeadership = "lost" | "released"

const end = (how: EndOfLeadership) => counter("simba_leadership_ended", "Leaderships that ended, by how", { how })

/**
 * Leaderships that ended.
 *
 * **Example** (Leaderships that were taken away)
 *
 * ```ts
 * import { LeadershipMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const isUnstable = Effect.map(
 *   Effect.all([Metric.value(LeadershipMetrics.ended.lost), Metric.value(LeadershipMetrics.ended.released)]),
 *   ([lost, released]) => lost.count > released.count
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const ended: { readonly [How in EndOfLeadership]: Metric.Counter<number> } = {
  lost: end("lost"),
  released: end("released")
}

/**
 * How a run of scheduled work ended. `failure`, `defect`: it failed, or died; `interrupted`: it was interrupted, by the
 * end of the leadership or otherwise; `skipped`: it was not run, because its period was taken by an earlier run
 * somewhere in the fleet, or nobody could be asked about that in time.
 *
 * @see {@link runs}
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = "success" | "failure" | "defect" | "interrupted" | "skipped"

const run = (outcome: RunOutcome) => counter("simba_leadership_runs", "Runs of scheduled work, by outcome", { outcome })

/**
 * Runs of scheduled work by outcome.
 *
 * **Example** (The runs that went wrong)
 *
 * ```ts
 * import { LeadershipMetrics } from "@effect-simba/core"
 * import { Effect, Metric } from "effect"
 *
 * const wrong = Effect.map(
 *   Effect.all([Metric.value(LeadershipMetrics.runs.failure), Metric.value(LeadershipMetrics.runs.defect)]),
 *   ([failures, defects]) => failures.count + defects.count
 * )
 * ```
 *
 * @category metrics
 * @since 0.1.0
 */
export const runs: { readonly [Outcome in RunOutcome]: Metric.Counter<number> } = {
  success: run("success"),
  failure: run("failure"),
  defect: run("defect"),
  interrupted: run("interrupted"),
  skipped: run("skipped")
}
