/** The scripts of the mutex. Each decides by the time of the server, and touches no key that is not in KEYS. */
import { type Each, script } from "../client/script.ts"
import * as lua from "./scripts.generated.ts"

/** Which waiters without a subscriber a script skips: all, those of ours, or none. */
export type SkipDead = "1" | "ours" | "0"

/**
 * Does acquires and releases, any number in one call.
 *
 * **Gotchas**
 *
 * An operation on the mutex of the one before it has no keys of its own.
 */
export const acquireAndRelease = script<
  readonly [...each: Each<[owner: string, queue: string, fence: string, reserved: string]>],
  readonly [
    codes: string,
    skipDead: SkipDead,
    plainLease: string,
    plainConfirm: string,
    ...operands: ReadonlyArray<string>
  ]
>(lua.acquireAndRelease)

/** Renews leases, any number in one call. Replies for those that were not renewed. */
export const renewLeases = script<
  readonly [...each: Each<[owner: string]>],
  readonly [...idsAndLeases: ReadonlyArray<string>]
>(lua.renewLeases)

/** Reads the owner of a mutex. */
export const readOwner = script<readonly [owner: string], readonly []>(lua.readOwner)

/** Takes a mutex from its owner and hands it over as a release does. Replies the ownership before. */
export const forceRelease = script<
  readonly [owner: string, queue: string, fence: string, reserved: string],
  readonly [confirm: number, skipDead: SkipDead]
>(lua.forceRelease)

/** Reads all jobs of a mutex, and makes known those that are named. */
export const lookAtJobs = script<
  readonly [owner: string, jobs: string],
  readonly [id: string, ...named: ReadonlyArray<string | number>]
>(lua.lookAtJobs)

/** Gives a run of a job to the owner of the mutex, once, or notes that nobody runs some instants. */
export const claimRun = script<
  readonly [owner: string, jobs: string],
  readonly [
    id: string,
    token: number,
    job: string,
    claim: string,
    mode: "run" | "manual" | "miss",
    at: number,
    missed: number,
    cause: string,
    minInterval: number,
    attempts: number
  ]
>(lua.claimRun)

/** Notes how a run ended. */
export const endRun = script<
  readonly [jobs: string],
  readonly [job: string, claim: string, outcome: string]
>(lua.endRun)

/** Does what an operator asks for. */
export const steerJobs = script<
  readonly [owner: string, jobs: string],
  readonly [order: string, job: string, schedule: string]
>(lua.steerJobs)
