/**
 * Data-stream consumer metrics for any Effect exporter (Prometheus, OTLP).
 *
 * Labels take only the values listed here, and never name a data stream or a consumer. Durations are in milliseconds. A
 * client uses the metric registry and the attributes of the context in which its layer was built.
 *
 * **Example** (Reading two metrics)
 *
 * ```ts
 * import { StreamMetrics } from "@effect-simba/core/streams"
 * import { Effect, Metric } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const owned = yield* Metric.value(StreamMetrics.stream.owned)
 *   const expired = yield* Metric.value(StreamMetrics.stream.losses.Expired)
 *   yield* Effect.log(`${owned.value} data streams owned, ${expired.count} leases expired`)
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Metric from "effect/Metric"
import { counter, counters } from "../internal/metrics.ts"

const gauge = (id: string, description: string) => Metric.gauge(id, { description })

/** Buckets from 1 millisecond to about 19 hours. */
const milliseconds = (id: string, description: string, attributes: Record<string, string> = {}) =>
  Metric.histogram(id, {
    description,
    attributes: { time_unit: "milliseconds", ...attributes },
    boundaries: Metric.exponentialBoundaries({ start: 1, factor: 2, count: 28 })
  })

const processing = (outcome: "success" | "failure" | "yielded" | "interrupted") =>
  milliseconds("simba_stream_processing_time", "Duration of a handler run, by outcome", { outcome })

/**
 * Metrics for the data streams that this process takes, owns and reads.
 *
 * @category metrics
 * @since 0.1.0
 */
export const stream = {
  /**
   * Counts attempts to take a data stream, by outcome. `occupied` is contention: another consumer has a lease on the
   * stream. `notIdle`: the announcement was delivered or renewed too recently, or not delivered yet.
   */
  takes: counters(
    "simba_stream_takes",
    "Attempts to take a data stream, by outcome",
    "outcome",
    ["taken", "occupied", "notIdle", "gone", "deadLettered", "failed"]
  ),
  /**
   * Counts data streams taken by this consumer, by cause.
   *
   * - `announcement`: a new announcement.
   * - `start`: an unfinished stream of the same consumer, after a restart.
   * - `sweep`: a sweep found the stream without an owner.
   * - `expiry`: the backend published that its lease expired.
   * - `signal`: another consumer published that it was released.
   * - `name`: it was acquired by name.
   * - `handOver`: another consumer handed it over.
   */
  acquisitions: counters(
    "simba_stream_acquisitions",
    "Data streams taken, by source",
    "source",
    ["announcement", "start", "sweep", "expiry", "signal", "name", "handOver"]
  ),
  /** Shows how many data streams are currently owned. */
  owned: gauge("simba_stream_owned", "Data streams owned"),
  /** Measures how long data streams were owned, from just before the claim to the end or loss. */
  holdTime: milliseconds(
    "simba_stream_hold_time",
    "Time from the claim of a data stream to its end or loss"
  ),
  /**
   * Counts attempts to renew a lease, by outcome. A batch counts once for each of its leases.
   *
   * - `failed`: no valid reply.
   * - `lost`: the backend reported that the lease has ended.
   */
  renewals: counters(
    "simba_stream_renewals",
    "Attempts to renew a stream lease, by outcome",
    "outcome",
    ["renewed", "failed", "lost"]
  ),
  /**
   * Measures how much time was left until the local deadline when a renewal succeeded. Values near zero predict losses.
   * A batch of renewals is recorded once, with its minimum.
   */
  timeLeftAtRenewal: milliseconds(
    "simba_stream_time_left_at_renewal",
    "Minimum time left until a local deadline when a renewal succeeded"
  ),
  /** Counts lost data streams, by reason. */
  losses: counters(
    "simba_stream_losses",
    "Stream leases lost, by reason",
    "reason",
    ["Expired", "TakenOver", "Vanished", "BackendGone", "Stalled"]
  ),
  /** Counts data streams whose ownership ended normally, by outcome. */
  ends: counters(
    "simba_stream_ends",
    "Leases that ended normally, by outcome",
    "outcome",
    ["done", "released", "handedOver", "deadLettered"]
  ),
  /**
   * Measures how long handlers ran, by outcome. Each run is one observation.
   *
   * - `yielded`: the handler yielded the data stream.
   * - `interrupted`: the handler lost its data stream, did not stop within the grace period, or was stopped by `done`
   *   or `release`.
   */
  processingTime: {
    success: processing("success"),
    failure: processing("failure"),
    yielded: processing("yielded"),
    interrupted: processing("interrupted")
  } as const,
  /**
   * Shows how many messages follow the checkpoints of the data streams that this client owns, read every 30 seconds.
   * The `service` label names the service.
   */
  lag: gauge(
    "simba_stream_lag",
    "Messages after the checkpoints of owned data streams"
  ),
  /**
   * Shows how long the oldest message after a checkpoint has waited, in milliseconds, computed from its id and the
   * backend's time.
   */
  lagAge: Metric.gauge("simba_stream_lag_age", {
    description: "How long the oldest message after a checkpoint has waited",
    attributes: { time_unit: "milliseconds" }
  }),
  /**
   * Counts gaps in data streams: messages that were deleted before they were read, recreated data streams, and newest
   * messages lost in a failover. See `Gap`.
   */
  gaps: counter(
    "simba_stream_gaps",
    "Gaps that readers found in data streams"
  ),
  /**
   * Counts messages that `StreamMessages` dead-lettered, by reason: `undecodable` (the message does not match the
   * schema, or user code such as `key` threw on it) or `failed` (the handler failed on every attempt).
   */
  deadMessages: counters(
    "simba_stream_dead_messages",
    "Dead-lettered messages, by reason",
    "reason",
    ["undecodable", "failed"]
  ),
  /**
   * Counts signals that a data stream may be free: expired leases, and releases by other consumers.
   *
   * - `used`: the signal led to an attempt.
   * - `dropped`: there was no free capacity, so a sweep will find the stream.
   * - `gap`: signals may have been missed.
   */
  signals: counters(
    "simba_stream_signals",
    "Signals that a data stream is free, by outcome",
    "outcome",
    ["used", "dropped", "gap"]
  ),
  /** Counts sweeps for data streams without an owner. */
  sweeps: counter("simba_stream_sweeps", "Sweeps for orphaned data streams"),
  /** Counts announcements that could not be read. They are dead-lettered. */
  malformedAnnouncements: counter(
    "simba_stream_malformed_announcements",
    "Announcements that could not be read"
  ),
  /** Shows how many notifications are waiting to be read. */
  queued: gauge("simba_stream_notifications_queued", "Notifications waiting to be read")
} as const
