/**
 * Validated `Mutex.Options`, for stores and for layers that build on `Mutex.layer`.
 *
 * This module is unstable: it may change in any release. The package's index does not export it, so import it by its
 * path.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as names from "./internal/nameRules.ts"
import { checkOptions, checkPeriods, notNegative, positive, refuse } from "./internal/optionChecks.ts"
import { processName } from "./internal/processIdentity.ts"
import * as MutexSchedule from "./MutexSchedule.ts"

/**
 * Validated options, with the defaults filled in.
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
  readonly processName: string
  readonly guard: MutexSchedule.MutexSchedule
  readonly metricsByMutex: boolean
  readonly localTurn: Duration.Duration
}

/** The options as callers pass them. `Mutex.Options` documents each one. */
type Unchecked =
  & { readonly [Option in keyof Periods]?: Duration.Input | undefined }
  & { readonly [Option in Exclude<keyof MutexConfig, keyof Periods | "processName">]?: MutexConfig[Option] | undefined }
  & { readonly processName?: string | undefined }

type Periods = Pick<
  MutexConfig,
  "ttl" | "transition" | "confirmTimeout" | "commandTimeout" | "releaseTimeout" | "localTurn"
>

/**
 * Fills in the defaults and validates the options.
 *
 * **Details**
 *
 * Fails with an `InvalidConfig` that names the invalid option.
 *
 * **Example** (Computing how long a takeover after a crash may take)
 *
 * ```ts
 * import * as MutexConfig from "@effect-simba/core/MutexConfig"
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
export const make = Effect.fnUntraced(function*(options: Unchecked = {}) {
  yield* checkOptions(options)
  const commandTimeout = yield* positive("commandTimeout", options.commandTimeout ?? "1 second")
  const guard = options.guard ?? MutexSchedule.guard
  if (!Schedule.isSchedule(guard)) return yield* refuse("guard", "it is not a Schedule")
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
    guard,
    metricsByMutex: options.metricsByMutex === true,
    localTurn: yield* notNegative("localTurn", options.localTurn ?? "10 millis")
  }
  return config
})

const checkProcessName = names.checked<string>("process", names.contenderProblem)
