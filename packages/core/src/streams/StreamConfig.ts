/**
 * How a consumer of data streams behaves, and how long things last. Checked when the layer is built.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as host from "../internal/processIdentity.ts"
import { positive } from "../MutexConfig.ts"
import { InvalidConfig } from "../SimbaError.ts"
import * as StreamName from "./StreamName.ts"

/**
 * - `service`: the service whose data streams are shared. Its load-balancer stream is `<service>-input`.
 * - `consumer` (default `<pid>@<host>`): the id of this consumer, known to the backend as `redis-consumer-<id>`. No two
 *   living clients should share one.
 * - `capacity` (default 64): how many data streams it takes at most. What is claimed by name comes on top.
 * - `lease` (default 2 seconds): how long an owner that has fallen silent stays the owner.
 * - `heartbeat` (default 1 second): how often an owner renews. With `commandTimeout` and the safety margin it must stay
 *   below `lease`.
 * - `commandTimeout` (default 500 milliseconds): how long one attempt to renew or take may last.
 * - `sweep` (default 2 seconds, varied by a fifth): how often it looks for data streams without an owner. An orphan is
 *   taken within `lease` plus `sweep` by whoever has room.
 * - `block` (default 1 second): how long one read of new announcements waits in the backend.
 * - `grace` (default 5 seconds): how long a handler that was asked to give its data stream back may go on.
 * - `releaseTimeout` (default 2 seconds): the longest that closing waits for the backend, after all handlers have ended;
 *   and for an `onError` that is told of one that failed as it was interrupted.
 * - `maxFailures` (default 10): an announcement whose handlers failed as often, without a commit in between, goes to the
 *   dead letters.
 * - `balance` (default true): take part in sharing evenly, by handing data streams over and being handed some. Without
 *   it, orphans and new data streams are taken all the same.
 * - `confirm` (default 1.5 seconds): how long a consumer that was handed a data stream has to say that it is there.
 * - `progressTimeout` (default: no limit): a handler that neither commits nor reports progress for so long, while it has
 *   something to do, loses its data stream. Waiting for messages in `messagesAfter` is not a lack of progress.
 * - `enableEvents` (default false): let the backend publish expiries, by adding to the server's setting what is missing.
 *   Without events, orphans are found by sweeps alone.
 * - `reapAfter` (default 10 minutes): consumers with nothing pending that were silent for so long are removed.
 * - `notifications` (default 256): how many unread notifications make the reader of announcements wait.
 *
 * @see {@link make}
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly service: string
  readonly consumer?: string | undefined
  readonly capacity?: number | undefined
  readonly leaseDuration?: Duration.Input | undefined
  readonly heartbeatInterval?: Duration.Input | undefined
  readonly commandTimeout?: Duration.Input | undefined
  readonly sweepInterval?: Duration.Input | undefined
  readonly gracePeriod?: Duration.Input | undefined
  readonly releaseTimeout?: Duration.Input | undefined
  readonly maxFailures?: number | undefined
  readonly rebalance?: boolean | undefined
  readonly confirmTimeout?: Duration.Input | undefined
  readonly progressTimeout?: Duration.Input | undefined
  readonly enableEvents?: boolean | undefined
  readonly reapAfter?: Duration.Input | undefined
}

/**
 * Checked options.
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
  readonly rebalance: boolean
  readonly confirmTimeout: Duration.Duration
  readonly progressTimeout: Duration.Duration | undefined
  readonly enableEvents: boolean
  readonly reapAfter: Duration.Duration
}

/**
 * What an owner gives up of its lease at the end, so that it stops before anybody else may start: 5 % of the lease, at
 * least 100 milliseconds.
 *
 * **Example** (When a silent owner stops at the latest)
 *
 * ```ts
 * import { StreamConfig } from "@effect-simba/core/streams"
 * import { Duration } from "effect"
 *
 * const lease = Duration.seconds(2)
 *
 * // 1.9 seconds after its last renewal
 * const stopsAfter = Duration.subtract(lease, StreamConfig.margin(lease))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const margin = (lease: Duration.Duration): Duration.Duration =>
  Duration.max(Duration.millis(100), Duration.times(lease, 0.05))

const refuse = (option: string, problem: string) => Effect.fail(new InvalidConfig({ option, problem }))

const positiveInt = (option: string, value: number) =>
  Number.isSafeInteger(value) && value >= 1
    ? Effect.succeed(value)
    : refuse(option, `it must be a positive integer, not ${value}`)

const boolean = (option: string, value: boolean) =>
  typeof value === "boolean" ? Effect.succeed(value) : refuse(option, "it must be true or false")

/** Not negative: zero is an answer too. */
const period = (option: string, input: Duration.Input) => {
  const duration = Duration.fromInput(input)
  return Option.isSome(duration) && Duration.isZero(duration.value)
    ? Effect.succeed(Duration.zero)
    : positive(option, input)
}

const named = <A>(option: string, name: Effect.Effect<A, { readonly problem: string }>) =>
  Effect.mapError(name, ({ problem }) => new InvalidConfig({ option, problem }))

/**
 * Fills in the defaults and checks the options; fails with `InvalidConfig` that names the option.
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
    return yield* new InvalidConfig({
      option: "leaseDuration",
      problem: `${Duration.format(lease)} leaves no time to renew: it must exceed heartbeatInterval ` +
        `(${Duration.format(heartbeat)}) plus commandTimeout (${Duration.format(commandTimeout)}) plus the safety ` +
        `margin (${Duration.format(margin(lease))})`
    })
  }
  const confirm = yield* positive("confirmTimeout", options.confirmTimeout ?? "1500 millis")
  if (Duration.isLessThanOrEqualTo(confirm, commandTimeout)) {
    return yield* refuse("confirmTimeout", `it must exceed commandTimeout (${Duration.format(commandTimeout)})`)
  }
  return {
    service: yield* named("service", StreamName.serviceName(options.service)),
    consumer: yield* named(
      "consumer",
      StreamName.consumerName(options.consumer ?? `${host.pid()}@${host.name()}`)
    ),
    capacity: yield* positiveInt("capacity", options.capacity ?? 64),
    leaseDuration: lease,
    heartbeatInterval: heartbeat,
    commandTimeout,
    sweepInterval: yield* positive("sweepInterval", options.sweepInterval ?? "2 seconds"),
    gracePeriod: yield* period("gracePeriod", options.gracePeriod ?? "5 seconds"),
    releaseTimeout: yield* positive("releaseTimeout", options.releaseTimeout ?? "2 seconds"),
    maxFailures: yield* positiveInt("maxFailures", options.maxFailures ?? 10),
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
 * Reads what a platform says of a consumer: its id from `POD_NAME`, else from `POD_IP`; none if both are missing.
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
 * @category config
 * @since 0.1.0
 */
export const config: Config.Config<Pick<Options, "consumer">> = Config.all({
  name: Config.option(Config.NonEmptyString("POD_NAME")),
  ip: Config.option(Config.NonEmptyString("POD_IP"))
}).pipe(Config.map(({ ip, name }) => ({ consumer: Option.getOrUndefined(Option.orElse(name, () => ip)) })))
