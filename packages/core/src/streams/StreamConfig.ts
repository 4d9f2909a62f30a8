/**
 * Options of a client of data streams.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"

/**
 * Options of `StreamClient.layer`.
 *
 * **Example** (A consumer of few data streams)
 *
 * ```ts
 * import { StreamClient, type StreamConfig } from "@effect-simba/core/streams"
 *
 * const options: StreamConfig.Options = { service: "orders", capacity: 8, gracePeriod: "30 seconds" }
 *
 * const Orders = StreamClient.layer(options)
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** The service whose data streams are shared. Its load-balancer stream is `<service>-input`. */
  readonly service: string
  /**
   * The name of this process, whose consumer is `simba-consumer-<name>`. No two running clients of a service should share
   * one. Default: `<pid>@<host>`.
   */
  readonly processName?: string | undefined
  /** How many data streams it takes at most, besides those that it acquires by name. Default: 64. */
  readonly capacity?: number | undefined
  /** How long an owner that has fallen silent stays the owner. Default: 2 seconds. */
  readonly leaseDuration?: Duration.Input | undefined
  /**
   * How often an owner renews. Together with `commandTimeout` and the safety margin (5 % of `leaseDuration`, at least 100
   * milliseconds) it must stay below `leaseDuration`. Default: 1 second.
   */
  readonly heartbeatInterval?: Duration.Input | undefined
  /** How long one attempt to renew or take may last. Default: 500 milliseconds. */
  readonly commandTimeout?: Duration.Input | undefined
  /**
   * How often, varied by a fifth, it looks for data streams without an owner. A consumer with room takes an orphan within
   * `leaseDuration` plus `sweepInterval`. Default: 2 seconds.
   */
  readonly sweepInterval?: Duration.Input | undefined
  /** How long a handler may go on after its data stream was revoked. Default: 5 seconds. */
  readonly gracePeriod?: Duration.Input | undefined
  /**
   * After all handlers have ended, closing releases data streams in batches of 200. This is the longest that it waits for
   * one batch, and it gives up after the first that takes longer. An `onError` whose handler failed while it was
   * interrupted has as long. Default: 2 seconds.
   */
  readonly releaseTimeout?: Duration.Input | undefined
  /**
   * How many failures of its handlers in a row, without a commit or progress in between, send an announcement to the dead
   * letters, if they last for `deadLetterAfter`. Default: 10.
   */
  readonly maxFailures?: number | undefined
  /**
   * How long a row of failures lasts at least before it sends an announcement to the dead letters: longer than an outage of
   * what its handlers need. A row ends after an hour without a failure, or after `deadLetterAfter` if that is longer.
   * Default: 1 hour.
   */
  readonly deadLetterAfter?: Duration.Input | undefined
  /**
   * Whether it hands data streams over, and gets some, so that all have an even share. Without it, orphans and new data
   * streams are taken all the same. Default: true.
   */
  readonly rebalance?: boolean | undefined
  /** How long a consumer that was handed a data stream has to confirm it. Default: 1.5 seconds. */
  readonly confirmTimeout?: Duration.Input | undefined
  /**
   * How long a handler with something to do may neither commit nor report progress before it loses its data stream. Waiting
   * in `messagesAfter` is no lack of progress. Default: no limit.
   */
  readonly progressTimeout?: Duration.Input | undefined
  /**
   * Whether to complete the server's setting for keyspace events, so that it publishes expiries, to consumers of
   * redis-stream-client-go too. Without these events, only sweeps find orphans. Default: false.
   */
  readonly enableEvents?: boolean | undefined
  /** How long a consumer with nothing pending may be silent before it is removed. Default: 10 minutes. */
  readonly reapAfter?: Duration.Input | undefined
  /**
   * How long the checkpoint of a data stream is kept after its last commit, and after the last day on which it was owned.
   * Longer than the pauses between its announcements: without a checkpoint its handler begins at the first message.
   * At least, and by default, 7 days.
   */
  readonly checkpointRetention?: Duration.Input | undefined
}
