/**
 * Options of the mutexes of one layer, checked when the layer is built.
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
import * as names from "./internal/nameRules.ts"
import { checkPeriods, handOffsProblem, positive, refuse } from "./internal/optionChecks.ts"
import * as MutexName from "./MutexName.ts"
import { InvalidConfig, type LeaseLost } from "./SimbaError.ts"

/**
 * Options of `Mutex.layer`.
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
 * @category options
 * @since 0.1.0
 */
export interface Options {
  /** How long an owner works before it renews, up to an eighth less together with other leases. Default: 10 seconds. */
  readonly ttl?: Duration.Input | undefined
  /**
   * Grace after `ttl`, in which the owner may still renew and nobody else takes over. Failed renewals are tried again
   * within it. It must exceed the safety margin (5 % of `ttl` plus `transition`, at least 100 milliseconds) plus
   * `commandTimeout`. Default: 6 seconds.
   */
  readonly transition?: Duration.Input | undefined
  /** How long a waiter that was handed the mutex has to confirm it. Default: 1.5 seconds. */
  readonly confirmTimeout?: Duration.Input | undefined
  /** How long one attempt to renew may take before it counts as failed. Default: 1 second. */
  readonly commandTimeout?: Duration.Input | undefined
  /** The longest that a closing scope or layer waits for releases. Default: 2 seconds. */
  readonly releaseTimeout?: Duration.Input | undefined
  /** The name of this process in the backend. Default: `<pid>@<host>`. */
  readonly contender?: string | undefined
  /** Runs for work that outlives the server's lease. Default: log an error. */
  readonly onOverrun?: Overrun | undefined
  /**
   * Whether `MutexMetrics` carry the name of the mutex as a label. Each name makes time series that stay for the life of
   * the process. Default: false.
   */
  readonly metricsByMutex?: boolean | undefined
  /** How often in a row a lease may stay within this layer, see `LeaseOptions`. From 0 to 10,000. Default: 0. */
  readonly maxLocalHandOffs?: number | undefined
}

/**
 * Checked options, with their defaults.
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
 * Reacts to work that is still running after the server's lease has ended.
 *
 * **When to use**
 *
 * Use as the hard stop: nothing inside a process can stop uninterruptible work, but the process itself can end.
 *
 * **Details**
 *
 * Protected work is interrupted at the local deadline, a safety margin before the server's lease ends. Uninterruptible
 * work, or finalizers that take longer than the margin, overlap with the next holder.
 *
 * The effect runs once for each such lease: at the end of the server's lease if the lease ran out, otherwise a margin
 * after the loss was noticed. It does not run after the layer has closed. A failure of it is logged.
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
 * Fills in the defaults and checks the options.
 *
 * **Details**
 *
 * Fails with `InvalidConfig` that names the option.
 *
 * **Example** (How long a crash stops the work at most)
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
  const problem = handOffsProblem(maxLocalHandOffs)
  if (problem !== undefined) return yield* refuse("maxLocalHandOffs", problem)
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
      : yield* checkContender(options.contender).pipe(
        Effect.mapError(({ problem }) => new InvalidConfig({ option: "contender", problem }))
      ),
    onOverrun: options.onOverrun,
    metricsByMutex: options.metricsByMutex === true,
    maxLocalHandOffs
  }
  return config
})

const checkContender = names.checked<MutexName.ContenderName>("contender", names.contenderProblem)

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

const period = (variable: string, seconds: number) =>
  Config.schema(DurationText, variable).pipe(Config.withDefault(Duration.seconds(seconds)))

/**
 * Reads the two durations that operators set, `SIMBA_REDIS_TTL` and `SIMBA_REDIS_TRANSITION`.
 *
 * **Details**
 *
 * Both are written as `10 seconds` or `10s`, and default to 10 and 6 seconds.
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
 * @category configuration
 * @since 0.1.0
 */
export const config: Config.Config<Pick<Options, "ttl" | "transition">> = Config.flatMap(
  // Made when it is read, for the sake of programs that never do
  Config.succeed(undefined),
  () => Config.all({ ttl: period("SIMBA_REDIS_TTL", 10), transition: period("SIMBA_REDIS_TRANSITION", 6) })
)

/**
 * Reads the options that are not given from the environment. A variable that is not needed may be unreadable.
 *
 * **Example** (Options in code, and the rest from the environment)
 *
 * ```ts
 * import { Mutex, MutexConfig } from "@effect-simba/core"
 * import { Effect, Layer } from "effect"
 *
 * const MutexLive = Layer.unwrap(Effect.map(MutexConfig.fromEnv({ ttl: "5 seconds" }), Mutex.layer))
 * ```
 *
 * @category configuration
 * @since 0.1.0
 */
export const fromEnv = (given: Options = {}): Effect.Effect<Options, Config.ConfigError> =>
  Effect.gen(function*() {
    const ttl = given.ttl ?? (yield* period("SIMBA_REDIS_TTL", 10))
    const transition = given.transition ?? (yield* period("SIMBA_REDIS_TRANSITION", 6))
    return { ...given, ttl, transition }
  })
