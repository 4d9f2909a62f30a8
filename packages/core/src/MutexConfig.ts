/**
 * Options of the mutexes of one layer, checked when the layer is built.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as names from "./internal/nameRules.ts"
import { checkOptions, checkPeriods, handOffs, positive, refuse } from "./internal/optionChecks.ts"
import { processName } from "./internal/processIdentity.ts"
import type * as MutexName from "./MutexName.ts"
import * as MutexSchedule from "./MutexSchedule.ts"
import type { LeaseLost } from "./SimbaError.ts"

/**
 * Options of `Mutex.layer`.
 *
 * **Example** (Short leases, and the end of the process as the hard stop)
 *
 * ```ts
 * import { Mutex, type MutexConfig } from "@effect-simba/core"
 * import { Effect } from "effect"
 *
 * const options: MutexConfig.Options = {
 *   ttl: "2 seconds",
 *   transition: "2 seconds",
 *   commandTimeout: "500 millis",
 *   onOverrun: (loss) =>
 *     Effect.andThen(
 *       Effect.logFatal(`work without its lease: ${loss.message}`),
 *       Effect.sync(() => process.exit(1))
 *     )
 * }
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
  readonly processName?: string | undefined
  /**
   * Reacts to work that is still running after the server's lease has ended. Protected work is interrupted at the local
   * deadline, a safety margin before that end. Uninterruptible work, and finalizers that take longer than the margin,
   * overlap with the next holder. Nothing inside a process can stop them, but the process itself can end.
   *
   * It runs once for each such lease: at the end of the server's lease if the lease ran out, otherwise a margin after the
   * loss was noticed. It does not run after the layer has closed. A failure of it is logged. Default: log an error.
   */
  readonly onOverrun?: ((loss: LeaseLost) => Effect.Effect<void>) | undefined
  /**
   * When owners renew. Default: `MutexSchedule.guard`, which renews `ttl` after a renewal, and soon after an attempt that
   * failed.
   */
  readonly guard?: MutexSchedule.MutexSchedule | undefined
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
  readonly processName: MutexName.ProcessName
  readonly onOverrun: Options["onOverrun"]
  readonly guard: MutexSchedule.MutexSchedule
  readonly metricsByMutex: boolean
  readonly maxLocalHandOffs: number
}

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
  yield* checkOptions(options)
  const commandTimeout = yield* positive("commandTimeout", options.commandTimeout ?? "1 second")
  const guard = options.guard ?? MutexSchedule.guard
  if (!Schedule.isSchedule(guard)) return yield* refuse("guard", "it is not a Schedule")
  const maxLocalHandOffs = yield* handOffs(options.maxLocalHandOffs ?? 0)
  const config: MutexConfig = {
    ...yield* checkPeriods({
      ttl: options.ttl ?? "10 seconds",
      transition: options.transition ?? "6 seconds",
      commandTimeout
    }),
    confirmTimeout: yield* positive("confirmTimeout", options.confirmTimeout ?? "1500 millis"),
    commandTimeout,
    releaseTimeout: yield* positive("releaseTimeout", options.releaseTimeout ?? "2 seconds"),
    processName: yield* checkProcessName(options.processName ?? processName()).pipe(
      Effect.catch(({ problem }) => refuse("processName", problem))
    ),
    onOverrun: options.onOverrun,
    guard,
    metricsByMutex: options.metricsByMutex === true,
    maxLocalHandOffs
  }
  return config
})

const checkProcessName = names.checked<MutexName.ProcessName>("process", names.contenderProblem)
