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

/** Gives a period of scheduled work to the first that asks. */
export const claimPeriod = script<
  readonly [claimed: string],
  readonly [period: number, at: number | "", onlyIfKnown: "0" | "1"]
>(lua.claimPeriod)
