/**
 * Decides whether a message that grants the mutex is recent enough for the waiter to start work without a request.
 * `fleetPlace` calls it; `placePlan` has made sure that the reply is the latest one, and that no gap followed it.
 *
 * A waiter that has queued within the last confirm period is granted a whole lease: then there is nothing to confirm,
 * unless the waiter's own lease has another length. Any other grant lasts a confirm period, and a confirmation is sent
 * before the work starts.
 */
import type { LeaseId } from "../../MutexName.ts"
import type { Grant } from "../../MutexStore.ts"
import type { Instant } from "../lease/instant.ts"
import { marginMillis } from "../optionChecks.ts"
import type { Refused } from "./attempt.ts"
import { HeldLease } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"

/** How far the two clocks may differ although neither was set. */
const roundingMillis = 10

/**
 * The lease of a grant that came after the `Refused` reply, as its larger token shows. Both carry the time of the
 * backend's clock, which alone measures the time between them. Returns undefined if a request must decide.
 */
export const leaseOfGrant = (
  grant: Grant,
  { sent, stamp }: Refused,
  waiter: LocalWaiter,
  { id, now }: { readonly id: LeaseId; readonly now: Instant }
): HeldLease | undefined => {
  if (stamp === undefined || grant.token <= stamp.token) return undefined
  // Negative if the backend's clock was set back
  const after = (grant.micros - stamp.micros) / 1000
  if (after < 0) return undefined
  const { mutex, settings } = waiter.attempt
  // Only the wall clock shows a suspension, and it may have been set back since
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
