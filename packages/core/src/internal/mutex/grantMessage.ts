/**
 * Decides whether a waiter may start on the message of its grant without a request, because the grant is recent
 * enough. `fleetPlace` calls it; `placePlan` has made sure that the reply is the latest one, and that no gap followed
 * it.
 *
 * A grant lasts a whole lease if the waiter was fresh: then there is nothing to confirm, unless its own lease differs.
 * Otherwise it lasts a confirm period, and a confirmation is sent before the work starts.
 */
import type { LeaseId } from "../../MutexName.ts"
import type { Grant } from "../../MutexStore.ts"
import type { Instant } from "../lease/instant.ts"
import { marginMillis } from "../optionChecks.ts"
import type { Refused } from "./attempt.ts"
import { HeldLease } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"

/** How far the two clocks may differ without one having been set. */
const roundingMillis = 10

/**
 * The lease of a grant that is younger than `refused`: its token is larger. The backend's clock alone says by how much,
 * so no clock of the waiter is involved. Returns undefined if a request must decide.
 */
export const leaseOfGrant = (
  grant: Grant,
  { sent, stamp }: Refused,
  waiter: LocalWaiter,
  { id, now }: { readonly id: LeaseId; readonly now: Instant }
): HeldLease | undefined => {
  if (stamp === undefined || grant.token <= stamp.token) return undefined
  // Below zero, the backend's clock was set back
  const after = (grant.micros - stamp.micros) / 1000
  if (after < 0) return undefined
  const { mutex, settings } = waiter.attempt
  // Only the wall clock shows a suspension, unless it was set back since
  if (now.wall - sent.wall < now.monotonic - sent.monotonic - roundingMillis) return undefined
  const lease = new HeldLease(mutex, id, grant.token, settings, {
    monotonic: Math.min(sent.monotonic + after, now.monotonic),
    wall: Math.min(sent.wall + after, now.wall)
  })
  // The clocks may have run at different rates during the wait
  lease.grantedFor(grant.millis, grant.millis - marginMillis(after + grant.millis))
  // The confirmation, or the first renewal of a whole lease, needs the other half (docs/protocol.md)
  return lease.left(now) < grant.millis / 2 ? undefined : lease
}
