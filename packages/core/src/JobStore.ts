/**
 * Storage port behind the jobs of a fleet: which period was given to whom, and what an operator asked for.
 *
 * A store decides by the backend's own time, and gives a run only to the owner of the mutex.
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
 * How a run ended. `unstarted` is a run that was given out and never began.
 *
 * @category models
 * @since 0.1.0
 */
export type RunOutcome = "success" | "failure" | "defect" | "interrupted" | "unstarted"

/**
 * What the fleet knows of a job. Instants are in milliseconds since 1970 by the backend's time.
 *
 * @category models
 * @since 0.1.0
 */
export interface JobRecord {
  /** Every scheduled instant up to this one is decided: run, or missed. */
  readonly at: number
  /** When the job runs, as its code says. Unknown before a leader looked. */
  readonly schedule: string | undefined
  /** When the job runs instead, as an operator said. */
  readonly override: string | undefined
  /** What was in force before the last change of the schedule, and when that was. */
  readonly former: string | undefined
  readonly changed: number | undefined
  readonly isPaused: boolean
  /** When an operator asked for a run that has not begun yet. */
  readonly wanted: number | undefined
  /** The last run: who has it, under which token, for which instant, and how often that instant was begun. */
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
  /** How many instants nobody ran, and why the last one was missed. */
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
 * Reads all jobs of a mutex, and makes known those that are named.
 *
 * @category models
 * @since 0.1.0
 */
export interface LookRequest {
  readonly mutex: MutexName
  /** The schedules of the named jobs count if this is the owner. */
  readonly id?: LeaseId | undefined
  readonly jobs: ReadonlyArray<{
    readonly name: string
    readonly schedule: string
    /** A job that the fleet does not know begins with the present period of so many milliseconds, otherwise now. */
    readonly every?: number | undefined
    /** How long the fleet remembers the job from now on. */
    readonly keep: Duration.Duration
  }>
}

/**
 * Asks for a run, or decides that instants are missed.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClaimRequest {
  readonly mutex: MutexName
  readonly job: string
  readonly id: LeaseId
  readonly token: FencingToken
  /** Unique to this run. A caller that got no reply asks again with the same, and gets the same. */
  readonly claim: string
  /**
   * - `run`: a run for the instant `at`.
   * - `manual`: the run that an operator asked for at `at`.
   * - `miss`: nobody runs the instants up to `at`.
   */
  readonly mode: "run" | "manual" | "miss"
  readonly at: number
  /** So many instants are missed by this decision, for this reason. */
  readonly missed: number
  readonly cause: string
  /** The least time since the last run began. */
  readonly minInterval: Duration.Duration
  /** How often a run may begin for one instant. */
  readonly attempts: number
}

/**
 * The answer to a `ClaimRequest`.
 *
 * **Details**
 *
 * - `Claimed`: the caller, and nobody else, is to run the job, or the instants are noted as missed.
 * - `NotOwner`: the caller is not the owner, or a later owner had a run.
 * - `Taken`: the instant is decided, or nobody asked for a run.
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
 * Notes how a run ended.
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
 * What an operator asks for. Without a job it concerns all jobs of the mutex.
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
  readonly look: (request: LookRequest) => Effect.Effect<JobsRecord, StoreError>
  readonly claim: (request: ClaimRequest) => Effect.Effect<ClaimResult, StoreError>
  /** The backend's time of the end. Without effect where another run has begun. */
  readonly end: (request: EndRequest) => Effect.Effect<number, StoreError>
  /** Whether there was such a job, or a leader to step down. */
  readonly steer: (mutex: MutexName, order: JobOrder) => Effect.Effect<boolean, StoreError>
}
