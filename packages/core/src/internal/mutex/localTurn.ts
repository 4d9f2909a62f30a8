/**
 * Decides who gets the mutex when a fiber releases it: the next fiber in the same process, as part of the same turn, or
 * the next place in the fleet's queue. A pure function, used by `localQueue`.
 */
import type { Instant } from "../lease/instant.ts"
import type { HeldLease } from "./heldLease.ts"
import type { LeaseSettings } from "./leaseOptions.ts"

/**
 * Returns whether the lease passes to the next fiber in line, which wants `settings`. The turn began at `began`, in
 * monotonic milliseconds.
 */
export const continues = (began: number, lease: HeldLease, settings: LeaseSettings, now: Instant): boolean =>
  now.monotonic - began < Math.min(lease.options.localTurnMillis, settings.localTurnMillis) && lease.isFresh(now) &&
  lease.fits(settings)
