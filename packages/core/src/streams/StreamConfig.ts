/**
 * Options of a client of data streams, checked when its layer is built.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as names from "../internal/nameRules.ts"
import { margin, notNegative, positive, refuse } from "../internal/optionChecks.ts"
import * as host from "../internal/processIdentity.ts"
import { InvalidConfig } from "../SimbaError.ts"
import type * as StreamName from "./StreamName.ts"

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
   * The id of this consumer, which consumer groups know as `redis-consumer-<id>`. No two living clients should share one.
   * Default: `<pid>@<host>`.
   */
  readonly consumer?: string | undefined
  /** How many data streams it takes at most, besides those that it claims by name. Default: 64. */
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
   * what its handlers need. A row ends after so long without a failure. Default: 1 hour.
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
}

/**
 * Checked options, with their defaults.
 *
 * @see {@link make}
 * @category models
 * @since 0.1.0
 */
export interface StreamConfig {
  readonly service: StreamName.ServiceName
  readonly consumer: StreamName.ConsumerName
  readonly capacity: number
  readonly leaseDuration: Duration.Duration
  readonly heartbeatInterval: Duration.Duration
  readonly commandTimeout: Duration.Duration
  readonly sweepInterval: Duration.Duration
  readonly gracePeriod: Duration.Duration
  readonly releaseTimeout: Duration.Duration
  readonly maxFailures: number
  readonly deadLetterAfter: Duration.Duration
  readonly rebalance: boolean
  readonly confirmTimeout: Duration.Duration
  readonly progressTimeout: Duration.Duration | undefined
  readonly enableEvents: boolean
  readonly reapAfter: Duration.Duration
}

const positiveInt = (option: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1
    ? Effect.succeed(value)
    : refuse(option, `it must be a positive integer, not ${value}`)

const boolean = (option: string, value: boolean) =>
  typeof value === "boolean" ? Effect.succeed(value) : refuse(option, "it must be true or false")

const named = <A>(option: string, name: Effect.Effect<A, { readonly problem: string }>) =>
  Effect.mapError(name, ({ problem }) => new InvalidConfig({ option, problem }))

const checkService = names.checked<StreamName.ServiceName>("service", names.anyProblem)

/** The name in the consumer group of the consumer with this id. */
const checkConsumer = (id: string) =>
  names.checked<StreamName.ConsumerName>("consumer", (name) => names.anyProblem(id) ?? names.consumerProblem(name))(
    `redis-consumer-${id}`
  )

/**
 * Fills in the defaults and checks the options.
 *
 * **Details**
 *
 * Fails with `InvalidConfig` that names the option.
 *
 * **Example** (How long an orphan waits at most)
 *
 * ```ts
 * import { StreamConfig } from "@effect-simba/core/streams"
 * import { Duration, Effect } from "effect"
 *
 * const orphanWaits = Effect.map(
 *   StreamConfig.make({ service: "orders", leaseDuration: "5 seconds", heartbeatInterval: "2 seconds" }),
 *   ({ leaseDuration, sweepInterval }) => Duration.sum(leaseDuration, Duration.times(sweepInterval, 1.2))
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(options: Options): Effect.fn.Return<StreamConfig, InvalidConfig> {
  const lease = yield* positive("leaseDuration", options.leaseDuration ?? "2 seconds")
  const heartbeat = yield* positive("heartbeatInterval", options.heartbeatInterval ?? "1 second")
  const commandTimeout = yield* positive("commandTimeout", options.commandTimeout ?? "500 millis")
  const needed = Duration.sum(Duration.sum(heartbeat, commandTimeout), margin(lease))
  if (Duration.isGreaterThanOrEqualTo(needed, lease)) {
    return yield* refuse(
      "leaseDuration",
      `${Duration.format(lease)} leaves no time to renew: it must exceed heartbeatInterval ` +
        `(${Duration.format(heartbeat)}) plus commandTimeout (${Duration.format(commandTimeout)}) plus the safety ` +
        `margin (${Duration.format(margin(lease))})`
    )
  }
  const confirm = yield* positive("confirmTimeout", options.confirmTimeout ?? "1500 millis")
  if (Duration.isLessThanOrEqualTo(confirm, commandTimeout)) {
    return yield* refuse("confirmTimeout", `it must exceed commandTimeout (${Duration.format(commandTimeout)})`)
  }
  return {
    service: yield* named("service", checkService(options.service)),
    consumer: yield* named("consumer", checkConsumer(options.consumer ?? `${host.pid()}@${host.name()}`)),
    capacity: yield* positiveInt("capacity", options.capacity ?? 64),
    leaseDuration: lease,
    heartbeatInterval: heartbeat,
    commandTimeout,
    sweepInterval: yield* positive("sweepInterval", options.sweepInterval ?? "2 seconds"),
    gracePeriod: yield* notNegative("gracePeriod", options.gracePeriod ?? "5 seconds"),
    releaseTimeout: yield* positive("releaseTimeout", options.releaseTimeout ?? "2 seconds"),
    maxFailures: yield* positiveInt("maxFailures", options.maxFailures ?? 10),
    deadLetterAfter: yield* notNegative("deadLetterAfter", options.deadLetterAfter ?? "1 hour"),
    rebalance: yield* boolean("rebalance", options.rebalance ?? true),
    confirmTimeout: confirm,
    progressTimeout: options.progressTimeout === undefined
      ? undefined
      : yield* positive("progressTimeout", options.progressTimeout),
    enableEvents: yield* boolean("enableEvents", options.enableEvents ?? false),
    reapAfter: yield* positive("reapAfter", options.reapAfter ?? "10 minutes")
  }
})

/**
 * Reads the id of the consumer from `POD_NAME`, else from `POD_IP`; none if both are missing.
 *
 * **Example** (The same in a program of one's own)
 *
 * ```ts
 * import { StreamClient, StreamConfig } from "@effect-simba/core/streams"
 * import { Effect, Layer } from "effect"
 *
 * const Orders = Layer.unwrap(
 *   Effect.map(StreamConfig.config, ({ consumer }) => StreamClient.layer({ service: "orders", consumer }))
 * )
 * ```
 *
 * @category configuration
 * @since 0.1.0
 */
export const config: Config.Config<Pick<Options, "consumer">> = Config.all({
  name: Config.option(Config.NonEmptyString("POD_NAME")),
  ip: Config.option(Config.NonEmptyString("POD_IP"))
}).pipe(Config.map(({ ip, name }) => ({ consumer: Option.getOrUndefined(Option.orElse(name, () => ip)) })))
