/**
 * What consumers of data streams measure about themselves, as Effect metrics: any exporter of Effect's shows them.
 *
 * The labels are the few words named here, never a data stream or a consumer. Durations are in milliseconds. All that a
 * client measures goes to the registry, and carries the attributes, that were in force when its layer was built.
 *
 * **Example** (Reading one)
 *
 * ```ts
 * import { StreamMetrics } from "@effect-simba/core/streams"
 * import { Effect, Metric } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const owned = yield* Metric.value(StreamMetrics.owned)
 *   const expired = yield* Metric.value(StreamMetrics.losses.Expired)
 *   yield* Effect.log(`${owned.value} data streams owned, ${expired.count} leases ran out`)
 * })
 * ```
 *
 * **Example** (What a dashboard of a fleet shows)
 *
 * ```ts
 * import { StreamMetrics } from "@effect-simba/core/streams"
 *
 * const contention = (outcome: StreamMetrics.TakeOutcome) => StreamMetrics.takes[outcome]
 * const moves = (source: StreamMetrics.Source) => StreamMetrics.acquisitions[source]
 * const renewals = (outcome: StreamMetrics.RenewOutcome) => StreamMetrics.renewals[outcome]
 * const ends = (outcome: StreamMetrics.EndOutcome) => StreamMetrics.ends[outcome]
 * const handlers = (outcome: StreamMetrics.HandlerOutcome) => StreamMetrics.processingTime[outcome]
 *
 * const health = [StreamMetrics.timeLeftAtRenewal, StreamMetrics.sweeps, StreamMetrics.heard.dropped]
 * const work = [StreamMetrics.holdTime, StreamMetrics.queued, StreamMetrics.malformed]
 * ```
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import type { StreamLossReason } from "./StreamError.ts"

const counter = (id: string, description: string, attributes?: Record<string, string>) =>
  Metric.counter(id, { description, incremental: true, ...(attributes === undefined ? {} : { attributes }) })

const gauge = (id: string, description: string) => Metric.gauge(id, { description })

/** From one millisecond to some days. */
const milliseconds = (id: string, description: string, attributes: Record<string, string> = {}) =>
  Metric.histogram(id, {
    description,
    attributes: { time_unit: "milliseconds", ...attributes },
    boundaries: Metric.exponentialBoundaries({ start: 1, factor: 2, count: 28 })
  })

/**
 * How an attempt to take a data stream ended. `occupied` is contention: somebody holds a lease on it.
 *
 * @category models
 * @since 0.1.0
 */
export type TakeOutcome = "taken" | "occupied" | "recent" | "gone" | "buried" | "failed"

const take = (outcome: TakeOutcome) =>
  counter("simba_stream_takes", "Attempts to take a data stream, by outcome", { outcome })

/**
 * Attempts to take a data stream, by outcome.
 *
 * @category metrics
 * @since 0.1.0
 */
export const takes: { readonly [Outcome in TakeOutcome]: Metric.Counter<number> } = {
  taken: take("taken"),
  occupied: take("occupied"),
  recent: take("recent"),
  gone: take("gone"),
  buried: take("buried"),
  failed: take("failed")
}

/**
 * What brought a data stream to this consumer: a new announcement (`intake`), its own unfinished ones after a restart
 * (`start`), a `sweep`, the news that a lease ran out (`expiry`) or was given back (`hint`), a `claim` by name, or another
 * consumer that handed it over (`given`).
 *
 * @category models
 * @since 0.1.0
 */
export type Source = "intake" | "start" | "sweep" | "expiry" | "hint" | "claim" | "given"

const acquisition = (source: Source) =>
  counter("simba_stream_acquisitions", "Data streams that came to be owned, by what brought them", { source })

/**
 * Data streams that came to be owned, by what brought them. All but `intake` and `claim` are recoveries and moves.
 *
 * @category metrics
 * @since 0.1.0
 */
export const acquisitions: { readonly [Kind in Source]: Metric.Counter<number> } = {
  intake: acquisition("intake"),
  start: acquisition("start"),
  sweep: acquisition("sweep"),
  expiry: acquisition("expiry"),
  hint: acquisition("hint"),
  claim: acquisition("claim"),
  given: acquisition("given")
}

/**
 * How an attempt to renew went. `failed`: no usable answer; `lost`: the backend says that the lease is over.
 *
 * @category models
 * @since 0.1.0
 */
export type RenewOutcome = "renewed" | "failed" | "lost"

const renewal = (outcome: RenewOutcome) =>
  counter("simba_stream_renewals", "Attempts to renew a stream lease, by outcome", { outcome })

/**
 * Attempts to renew by outcome, counted by lease.
 *
 * @category metrics
 * @since 0.1.0
 */
export const renewals: { readonly [Outcome in RenewOutcome]: Metric.Counter<number> } = {
  renewed: renewal("renewed"),
  failed: renewal("failed"),
  lost: renewal("lost")
}

/**
 * Time that was left until the local deadline when a renewal succeeded. Values that drift towards zero announce losses.
 *
 * @category metrics
 * @since 0.1.0
 */
export const timeLeftAtRenewal: Metric.Histogram<number> = milliseconds(
  "simba_stream_time_left_at_renewal",
  "Time left until the local deadline when a renewal succeeded"
)

const loss = (reason: StreamLossReason) => counter("simba_stream_losses", "Stream leases lost, by reason", { reason })

/**
 * Stream leases lost, by reason.
 *
 * @category metrics
 * @since 0.1.0
 */
export const losses: { readonly [Reason in Exclude<StreamLossReason, "Released">]: Metric.Counter<number> } = {
  Expired: loss("Expired"),
  TakenOver: loss("TakenOver"),
  Vanished: loss("Vanished"),
  BackendGone: loss("BackendGone"),
  Stalled: loss("Stalled")
}

/**
 * How a holding ended in order.
 *
 * @category models
 * @since 0.1.0
 */
export type EndOutcome = "done" | "released" | "handedOver" | "buried"

const end = (outcome: EndOutcome) => counter("simba_stream_ends", "Holdings that ended in order, by how", { outcome })

/**
 * Holdings that ended in order, by how.
 *
 * @category metrics
 * @since 0.1.0
 */
export const ends: { readonly [Outcome in EndOutcome]: Metric.Counter<number> } = {
  done: end("done"),
  released: end("released"),
  handedOver: end("handedOver"),
  buried: end("buried")
}

/**
 * How long data streams were held, from just before the taking to the end or loss.
 *
 * @category metrics
 * @since 0.1.0
 */
export const holdTime: Metric.Histogram<number> = milliseconds(
  "simba_stream_hold_time",
  "Time from the taking of a data stream to its end or loss"
)

/**
 * How one run of a handler ended. `interrupted`: it lost its data stream, or did not stop in time when asked.
 *
 * @category models
 * @since 0.1.0
 */
export type HandlerOutcome = "success" | "failure" | "handedBack" | "interrupted"

const processing = (outcome: HandlerOutcome) =>
  milliseconds("simba_stream_processing_time", "Time that one run of a handler took, by outcome", { outcome })

/**
 * How long runs of handlers took, by outcome; their counts are the counts of runs.
 *
 * @category metrics
 * @since 0.1.0
 */
export const processingTime: { readonly [Outcome in HandlerOutcome]: Metric.Histogram<number> } = {
  success: processing("success"),
  failure: processing("failure"),
  handedBack: processing("handedBack"),
  interrupted: processing("interrupted")
}

const news = (outcome: "used" | "dropped" | "gap") =>
  counter("simba_stream_news", "News that a data stream is free, by what was made of them", { outcome })

/**
 * News that a data stream is free (expired leases, hints of other consumers): `used` led to an attempt, `dropped` did not
 * (there was no room; the sweep will find it), `gap` says that some may have been missed.
 *
 * @category metrics
 * @since 0.1.0
 */
export const heard: { readonly [Outcome in "used" | "dropped" | "gap"]: Metric.Counter<number> } = {
  used: news("used"),
  dropped: news("dropped"),
  gap: news("gap")
}

/**
 * Sweeps for data streams without an owner.
 *
 * @category metrics
 * @since 0.1.0
 */
export const sweeps: Metric.Counter<number> = counter("simba_stream_sweeps", "Sweeps for orphaned data streams")

/**
 * Announcements that could not be read. They are in the dead letters.
 *
 * @category metrics
 * @since 0.1.0
 */
export const malformed: Metric.Counter<number> = counter(
  "simba_stream_malformed_announcements",
  "Announcements that could not be read"
)

/**
 * How many data streams are owned at present.
 *
 * @category metrics
 * @since 0.1.0
 */
export const owned: Metric.Gauge<number> = gauge("simba_stream_owned", "Data streams that are owned")

/**
 * How many notifications wait to be read at present.
 *
 * @category metrics
 * @since 0.1.0
 */
export const queued: Metric.Gauge<number> = gauge("simba_stream_notifications_queued", "Notifications that wait")
