/**
 * Storage port behind the jobs of a fleet: who ran which period, and what an operator requested.
 *
 * A store decides by the backend's own time, and hands a run only to the owner of the mutex.
 *
 * This port is unstable: it may change in any release. The package's index leaves it out, so import it by its path.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { FencingToken } from "./FencingToken.ts"
import type { LeaseId, MutexName } from "./MutexName.ts"
import type { StoreError } from "./SimbaError.ts"

/**
 * How a run ended. `unstarted` is a run that was claimed but never started.
 *
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = "success" | "failure" | "defect" | "interrupted" | "unstarted"

/**
 * The state of a job in the fleet. Instants are in milliseconds since 1970 by the backend's time.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobRecord {
  /** Every scheduled instant up to this one is settled: run, or missed. */
  readonly at: number
  /** The schedule in the code. Unknown before a leader has registered it. */
  readonly schedule: string | undefined
  /** The schedule that an operator has set instead. */
  readonly override: string | undefined
  /** The schedule before the last change, and the time of that change. */
  readonly former: string | undefined
  readonly changed: number | undefined
  readonly isPaused: boolean
  /** When an operator requested a run that has not started yet. */
  readonly wanted: number | undefined
  /** The last run: who runs it, under which token, for which instant, and the number of attempts for that instant. */
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
  /** How many instants were missed, and the cause of the last one. */
  readonly missed: number
  readonly cause: string | undefined
}

/**
 * All jobs of a mutex at one moment.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobsRecord {
  /** The backend's time, in milliseconds since 1970. */
  readonly now: number
  /** Whether all jobs of the mutex are paused. */
  readonly isPaused: boolean
  /** The id of the leader that is asked to step down. */
  readonly leaving: string | undefined
  readonly jobs: ReadonlyMap<string, JobRecord>
}

/**
 * Reads all jobs of a mutex, and registers the named ones.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReadJobsRequest {
  readonly mutex: MutexName
  /** Only the owner sets the schedules of the named jobs. */
  readonly id?: LeaseId | undefined
  readonly jobs: ReadonlyArray<{
    readonly name: string
    readonly schedule: string
    /** The period of the job in milliseconds: a new job then begins with the current period, otherwise now. */
    readonly every?: number | undefined
    /** How long the job is remembered from now on. */
    readonly keep: Duration.Duration
  }>
}

/**
 * Requests a run, or marks instants as missed.
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
   * Unique to this run. A caller that got no reply repeats the request with the same value, and gets the same reply.
   */
  readonly claim: string
  /**
   * - `run`: a run for the instant `at`.
   * - `manual`: the run that an operator requested at `at`.
   * - `miss`: marks the instants up to `at` as missed.
   */
  readonly mode: "run" | "manual" | "miss"
  readonly at: number
  /** The number of instants that this request marks as missed, and the cause. */
  readonly missed: number
  readonly cause: string
  /** The minimum time since the start of the last run. */
  readonly minInterval: Duration.Duration
  /** The number of attempts for one instant. */
  readonly attempts: number
}

/**
 * The reply to a `ClaimRequest`.
 *
 * **Details**
 *
 * - `Claimed`: the caller alone runs the job, or the instants are recorded as missed.
 * - `NotOwner`: the caller is not the owner, or a later owner had a run.
 * - `Taken`: the instant is settled, or nobody requested a run.
 * - `Running`: this owner has a run of the job that has not ended.
 * - `Paused`: the job is paused.
 * - `Early`: `wait` milliseconds are left until the instant, or until `minInterval` is over.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClaimResult {
  readonly _tag: "Claimed" | "NotOwner" | "Taken" | "Running" | "Paused" | "Early"
  /** The backend's time, in milliseconds since 1970. */
  readonly now: number
  readonly attempt: number
  readonly wait: number
}

/**
 * Records how a run ended.
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
 * An operator's request. Without a job, it concerns all jobs of the mutex.
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
 * The jobs of a `MutexStore`.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobStore {
  readonly read: (request: ReadJobsRequest) => Effect.Effect<JobsRecord, StoreError>
  readonly claim: (request: ClaimRequest) => Effect.Effect<ClaimResult, StoreError>
  /** Returns the backend's time. Changes nothing if another run has started. */
  readonly end: (request: EndRequest) => Effect.Effect<number, StoreError>
  /** Returns whether there was such a job, or a leader to step down. */
  readonly steer: (mutex: MutexName, order: JobOrder) => Effect.Effect<boolean, StoreError>
}
