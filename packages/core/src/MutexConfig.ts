/**
 * How long things last. Checked when the layer is built.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as MutexName from "./MutexName.ts"
import { InvalidConfig, type LeaseLost } from "./SimbaError.ts"

/**
 * - `ttl` (default 10 seconds): how long an owner works before it renews, or an eighth less together with another lease.
 * - `transition` (default 6 seconds): grace after `ttl` in which the owner may still renew and nobody else takes over.
 *   Renewals that fail are tried again within it. It must exceed the safety margin plus `commandTimeout`.
 * - `confirm` (default 1.5 seconds): how long a waiter that was handed the mutex has to say that it is there.
 * - `commandTimeout` (default 1 second): how long one attempt to renew may take before it counts as failed.
 * - `releaseTimeout` (default 2 seconds): the longest that a closing scope, or the closing layer, waits for releases.
 * - `contender` (default `<pid>@<host>`): the name under which this process appears in the backend.
 * - `onOverrun` (default: log an error): what to do about work that was interrupted because its lease was lost, and is
 *   still running when the server's lease has ended, so that somebody else may be working too. See `Overrun`.
 * - `metricsByMutex` (default false): label the metrics of `MutexMetrics` with the name of the mutex, too. Switch it on
 *   only where the names are few: each makes time series of its own, for as long as the process lives.
 * - `maxLocalHandOffs` (default 0; a whole number up to 10,000): how often in a row a lease may go from fiber to fiber of this
 *   layer without the backend. `LeaseOptions` has the details.
 *
 * **Example** (Short leases, for work that must be taken over soon)
 *
 * ```ts
 * import { Mutex, type MutexConfig } from "@effect-simba/core"
 *
 * const options: MutexConfig.Options = { ttl: "2 seconds", transition: "2 seconds", commandTimeout: "500 millis" }
 *
 * const MutexLive = Mutex.layer(options)
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly ttl?: Duration.Input | undefined
  readonly transition?: Duration.Input | undefined
  readonly confirmTimeout?: Duration.Input | undefined
  readonly commandTimeout?: Duration.Input | undefined
  readonly releaseTimeout?: Duration.Input | undefined
  readonly contender?: string | undefined
  readonly onOverrun?: Overrun | undefined
  readonly metricsByMutex?: boolean | undefined
  readonly maxLocalHandOffs?: number | undefined
}

/**
 * Checked options.
 *
 * @see {@link make}
 * @category models
 * @since 0.1.0
 */
export interface MutexConfig {
  readonly ttl: Duration.Duration
  readonly transition: Duration.Duration
  readonly confirmTimeout: Duration.Duration
  readonly commandTimeout: Duration.Duration
  readonly releaseTimeout: Duration.Duration
  readonly contender: MutexName.ContenderName
  readonly onOverrun: Overrun | undefined
  readonly metricsByMutex: boolean
  readonly maxLocalHandOffs: number
}

/**
 * The hard stop. Protected work that lost its lease is interrupted at the local deadline, a safety margin before the
 * server's lease ends. Where it is uninterruptible, or its finalizers take longer than the margin, it overlaps with the
 * next holder. Nothing within a process can stop it then; the process itself can be ended:
 *
 * Run once for each such lease: at the end of the server's lease where the lease ran out, otherwise (another owner, no
 * owner) a margin after the loss was noticed. Not run any more once the layer is closed. What it fails with is logged.
 *
 * **Example** (Ending the process)
 *
 * ```ts
 * import { Mutex, type MutexConfig } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const onOverrun: MutexConfig.Overrun = (loss) =>
 *   Effect.andThen(
 *     Effect.logFatal(`work without its lease: ${loss.message}`),
 *     Effect.sync(() => process.exit(1))
 *   )
 *
 * const MutexLive = Mutex.layer({ onOverrun })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export type Overrun = (loss: LeaseLost) => Effect.Effect<void>

/**
 * What an owner gives up of its lease at the end, so that it stops before anybody else may start: 5 % of ttl plus
 * transition, at least 100 milliseconds. It covers clocks whose rates differ by as much.
 *
 * **Example** (When an owner stops at the latest)
 *
 * ```ts
 * import { MutexConfig } from "@effect-simba/core"
 * import { Duration } from "effect"
 *
 * const [ttl, transition] = [Duration.seconds(10), Duration.seconds(6)]
 *
 * // 15.2 seconds after its last renewal
 * const stopsAfter = Duration.subtract(Duration.sum(ttl, transition), MutexConfig.margin(ttl, transition))
 * ```
 *
 * @category combinators
 * @since 0.1.0
 */
export const margin = (ttl: Duration.Duration, transition: Duration.Duration): Duration.Duration =>
  Duration.max(Duration.millis(100), Duration.times(Duration.sum(ttl, transition), 0.05))

/** @internal */
export const positive = (option: string, input: Duration.Input): Effect.Effect<Duration.Duration, InvalidConfig> => {
  const duration = Duration.fromInput(input)
  const problem = duration._tag === "None"
    ? `${JSON.stringify(input)} is not a duration`
    : !Duration.isFinite(duration.value)
    ? "it must be finite"
    : Duration.toMillis(duration.value) < 1
    ? "it must be at least 1 millisecond"
    : undefined
  return problem === undefined && duration._tag === "Some"
    ? Effect.succeed(Duration.millis(Math.ceil(Duration.toMillis(duration.value))))
    : Effect.fail(new InvalidConfig({ option, problem: problem! }))
}

/** @internal */
export const handoverProblem = (input: number): string | undefined =>
  Number.isInteger(input) && input >= 0 && input <= 10_000
    ? undefined
    : "it must be a whole number from 0 to 10,000"

/** @internal */
export const checkPeriods = Effect.fnUntraced(function*(options: {
  readonly ttl: Duration.Input
  readonly transition: Duration.Input
  readonly commandTimeout: Duration.Duration
  /** Whether a liveness probe is asked, for as long as `commandTimeout`, before a renewal is sent. */
  readonly probed?: boolean
}) {
  const ttl = yield* positive("ttl", options.ttl)
  const transition = yield* positive("transition", options.transition)
  const timeouts = options.probed === true ? 2 : 1
  const needed = Duration.sum(margin(ttl, transition), Duration.times(options.commandTimeout, timeouts))
  if (Duration.isLessThanOrEqualTo(transition, needed)) {
    return yield* new InvalidConfig({
      option: "transition",
      problem: `${Duration.format(transition)} leaves no time to renew: it must exceed the safety margin ` +
        `(${Duration.format(margin(ttl, transition))}) plus ${timeouts === 2 ? "twice " : ""}commandTimeout ` +
        `(${Duration.format(options.commandTimeout)})`
    })
  }
  return { ttl, transition }
})

/**
 * Fills in the defaults and checks the options; fails with `InvalidConfig` that names the option.
 *
 * **Example** (What a crash costs at most)
 *
 * ```ts
 * import { MutexConfig } from "@effect-simba/core"
 * import { Duration, Effect } from "effect"
 *
 * const takeOver = Effect.map(
 *   MutexConfig.make({ ttl: "5 seconds", transition: "3 seconds" }),
 *   ({ confirmTimeout, transition, ttl }) => Duration.sum(Duration.sum(ttl, transition), confirmTimeout)
 * )
 * ```
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function*(options: Options = {}) {
  const commandTimeout = yield* positive("commandTimeout", options.commandTimeout ?? "1 second")
  const maxLocalHandOffs = options.maxLocalHandOffs ?? 0
  const problem = handoverProblem(maxLocalHandOffs)
  if (problem !== undefined) return yield* new InvalidConfig({ option: "maxLocalHandOffs", problem })
  const config: MutexConfig = {
    ...yield* checkPeriods({
      ttl: options.ttl ?? "10 seconds",
      transition: options.transition ?? "6 seconds",
      commandTimeout
    }),
    confirmTimeout: yield* positive("confirmTimeout", options.confirmTimeout ?? "1500 millis"),
    commandTimeout,
    releaseTimeout: yield* positive("releaseTimeout", options.releaseTimeout ?? "2 seconds"),
    contender: options.contender === undefined
      ? yield* MutexName.contenderByHost
      : yield* MutexName.contenderName(options.contender).pipe(
        Effect.mapError((error) => new InvalidConfig({ option: "contender", problem: error.problem }))
      ),
    onOverrun: options.onOverrun,
    metricsByMutex: options.metricsByMutex === true,
    maxLocalHandOffs: maxLocalHandOffs
  }
  return config
})

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours" } as const

/** A duration as Effect writes it, or as Simba's own configuration does: `10s`. */
const DurationText = Schema.String.pipe(Schema.decodeTo(
  Schema.Duration,
  SchemaTransformation.transformEffect({
    decode: (text: string, options) => {
      const short = /^(\d+)\s*(ms|s|m|h)$/.exec(text.trim())
      const input = short === null ? text.trim() : `${short[1]} ${units[short[2] as keyof typeof units]}`
      return Option.match(Duration.fromInput(input as Duration.Input), {
        onNone: () =>
          Effect.fail(
            new SchemaIssue.InvalidValue(
              { message: `expected a duration such as "10 seconds" or "10s"` },
              text,
              options
            )
          ),
        onSome: Effect.succeed
      })
    },
    encode: (duration: Duration.Duration) => Effect.succeed(`${Duration.toMillis(duration)} millis`)
  })
))

/**
 * Reads the two durations that operators set: `SIMBA_REDIS_TTL` (default 10 seconds) and `SIMBA_REDIS_TRANSITION`
 * (default 6 seconds), as `10 seconds` or `10s`.
 *
 * **Example** (Durations that operators set, and one that they do not)
 *
 * ```ts
 * import { Mutex, MutexConfig } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Layer.unwrap(
 *   Effect.map(MutexConfig.config, (periods) => Mutex.layer({ ...periods, confirmTimeout: "2 seconds" }))
 * )
 * ```
 *
 * @category config
 * @since 0.1.0
 */
export const config: Config.Config<Pick<Options, "ttl" | "transition">> = Config.flatMap(
  // Made when it is read, for the sake of programs that never do
  Config.succeed(undefined),
  () =>
    Config.all({
      ttl: Config.schema(DurationText, "SIMBA_REDIS_TTL").pipe(Config.withDefault(Duration.seconds(10))),
      transition: Config.schema(DurationText, "SIMBA_REDIS_TRANSITION").pipe(Config.withDefault(Duration.seconds(6)))
    })
)
