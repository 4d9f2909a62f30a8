/**
 * Storage port for a fleet's jobs: their runs, including missed ones, and operators' requests.
 *
 * A store uses the backend's clock, and grants a run only to the mutex's owner.
 *
 * This port is unstable: it may change in any release. The package's index does not export it, so import it by its
 * path.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FencingToken } from "./FencingToken.ts"
import type { LeaseId, MutexName } from "./MutexName.ts"
import type { ProtocolError, StoreError } from "./SimbaError.ts"

/**
 * How a run ended. An `unstarted` run was claimed but never started.
 *
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = "success" | "failure" | "defect" | "interrupted" | "unstarted"

/**
 * The state of a job in the fleet. Scheduled times are in milliseconds since 1970, by the backend's clock.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobRecord {
  /**
   * Each scheduled time up to this one had a run, was missed, or predates the job. Only the last run may still be
   * retried.
   */
  readonly at: number
  /** The schedule from the code; unknown until a leader has registered it. */
  readonly schedule: string | undefined
  /** The schedule that an operator has set instead. */
  readonly override: string | undefined
  /** The previous schedules, oldest first, each with the time at which it was replaced. */
  readonly former: ReadonlyArray<{ readonly schedule: string; readonly until: number }>
  readonly isPaused: boolean
  /** When an operator requested a run that has not started yet. */
  readonly wanted: number | undefined
  /** The last run: its leader, claim and scheduled time, and the number of attempts for that time. */
  readonly run: {
    readonly id: string
    readonly claim: string
    readonly token: number
    readonly scheduledAt: number
    readonly attempt: number
    readonly start: number
    readonly end: number | undefined
    readonly outcome: RunOutcome | undefined
  } | undefined
  /** When the last successful run ended. */
  readonly success: number | undefined
  /** The number of missed runs, and the cause of the last one. */
  readonly missed: number
  readonly cause: string | undefined
}

/**
 * A snapshot of all of a mutex's jobs.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobsRecord {
  /** The backend's time, in milliseconds since 1970. */
  readonly now: number
  /** Whether all of the mutex's jobs are paused. */
  readonly isPaused: boolean
  /** The id of the leader that was asked to step down. */
  readonly leaving: string | undefined
  readonly jobs: ReadonlyMap<string, JobRecord>
  /** Jobs whose state cannot be read, each with the reason. `jobs` does not contain them. */
  readonly malformed: ReadonlyMap<string, ProtocolError>
}

/**
 * A request to read all of a mutex's jobs and to register the jobs in `jobs`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReadJobsRequest {
  readonly mutex: MutexName
  /** The caller's lease. Schedules are stored only if the caller owns the mutex. */
  readonly id?: LeaseId | undefined
  readonly jobs: ReadonlyArray<{
    readonly name: string
    readonly schedule: string
    /**
     * The period in milliseconds, if it is constant. A new job with a period starts with the current period; any other
     * new job starts now.
     */
    readonly every?: number | undefined
    /** How long from now the store must remember the job. */
    readonly keep: Duration.Duration
  }>
}

/**
 * A request to claim a run, or to mark runs as missed.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClaimRequest {
  readonly mutex: MutexName
  readonly job: string
  readonly id: LeaseId
  readonly token: FencingToken
  /**
   * Unique to this run. A caller that got no reply repeats the request with the same value. If the run was granted and
   * has not ended, the caller gets the same reply.
   */
  readonly claim: string
  /**
   * - `run`: a run for the scheduled time `at`.
   * - `manual`: the run that an operator requested at `at`.
   * - `miss`: marks the runs up to `at` as missed.
   */
  readonly mode: "run" | "manual" | "miss"
  readonly at: number
  /** The `at` of the record that the caller has read. Ignored for a `manual` run. */
  readonly after: number
  /** How many runs this request marks as missed, and why. */
  readonly missed: number
  readonly cause: string
  /** Minimum time since the start of the last run. */
  readonly minInterval: Duration.Duration
  /** Maximum number of attempts for one scheduled time. */
  readonly attempts: number
  /** The time of the last schedule change that the caller has read, or 0. Ignored for a `manual` run. */
  readonly changed: number
}

/**
 * The reply to a `ClaimRequest`.
 *
 * **Details**
 *
 * - `Claimed`: only the caller runs the job. In `miss` mode, the runs are recorded as missed.
 * - `NotOwner`: the caller is not the owner, or a later owner has already claimed a run.
 * - `Taken`: the scheduled time already had a run or was missed, or nobody requested a run.
 * - `Running`: this owner's last run of the job has not ended.
 * - `Paused`: the job is paused.
 * - `Early`: the scheduled time, or the end of `minInterval`, is `wait` milliseconds away.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClaimResult {
  readonly _tag: "Claimed" | "NotOwner" | "Taken" | "Running" | "Paused" | "Early"
  /** The backend's time, in milliseconds since 1970. */
  readonly now: number
  /** The attempt number for the scheduled time, starting with 1, or 0 if no run was claimed. */
  readonly attempt: number
  /** In milliseconds. 0 unless `Early`. */
  readonly wait: number
}

/**
 * A request to record how a run ended.
 *
 * @category models
 * @since 0.1.0
 */
export interface EndRequest {
  readonly mutex: MutexName
  readonly job: string
  readonly claim: string
  readonly outcome: RunOutcome
}

/**
 * An operator's request. Without `job`, it applies to all jobs of the mutex.
 *
 * @category models
 * @since 0.1.0
 */
export type JobOrder =
  | { readonly _tag: "Run"; readonly job: string }
  | { readonly _tag: "Pause" | "Resume"; readonly job?: string | undefined }
  | { readonly _tag: "Reschedule"; readonly job: string; readonly schedule: string | undefined }
  | { readonly _tag: "StepDown" }

/**
 * A `MutexStore`'s job operations.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobStore {
  readonly read: (request: ReadJobsRequest) => Effect.Effect<JobsRecord, StoreError>
  readonly claim: (request: ClaimRequest) => Effect.Effect<ClaimResult, StoreError>
  /** Records the end of a run, unless another run has started since. Returns the backend's time. */
  readonly end: (request: EndRequest) => Effect.Effect<number, StoreError>
  /** Carries out an operator's request. Returns false if there is no such job, or no leader to step down. */
  readonly steer: (mutex: MutexName, order: JobOrder) => Effect.Effect<boolean, StoreError>
}
