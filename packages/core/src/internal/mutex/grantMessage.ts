/**
 * Decides whether a message that grants the mutex is recent enough for the waiter to start work without a request.
 * Called by `fleetPlace`. `placePlan` ensures that the reply is the latest one and that no later message may have been
 * missed. The confirm period is `confirmTimeout` in `Mutex.Options`.
 *
 * If a waiter queued within the last confirm period, it is granted a whole lease, which needs no confirmation unless
 * the waiter wants a different duration. Any other grant lasts one confirm period, and a confirmation is sent before
 * the work starts.
 */
import type { LeaseId } from "../../MutexName.ts"
import type { Grant } from "../../MutexStore.ts"
import type { Instant } from "../lease/instant.ts"
import { marginMillis } from "../optionChecks.ts"
import type { Refused } from "./attempt.ts"
import { HeldLease } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"

/** How far the wall clock may fall behind the monotonic clock without having been set back. */
const roundingMillis = 10

/**
 * Computes the lease for a grant that came after the `Refused` reply, as its larger token shows. Both contain the
 * backend's time, because only the backend's clock can measure the time between them. Returns undefined if the waiter
 * has to ask the backend.
 */
export const leaseOfGrant = (
  grant: Grant,
  { sent, stamp }: Refused,
  waiter: LocalWaiter,
  { id, now }: { readonly id: LeaseId; readonly now: Instant }
): HeldLease | undefined => {
  if (stamp === undefined || grant.token <= stamp.token) return undefined
  // The difference is negative if the backend's clock was set back
  const after = (grant.micros - stamp.micros) / 1000
  if (after < 0) return undefined
  const { mutex, settings } = waiter.attempt
  // Only the wall clock reveals a suspension, and it may have been set back in the meantime
  if (now.wall - sent.wall < now.monotonic - sent.monotonic - roundingMillis) return undefined
  const lease = new HeldLease(mutex, id, grant.token, settings, {
    monotonic: Math.min(sent.monotonic + after, now.monotonic),
    wall: Math.min(sent.wall + after, now.wall)
  })
  // The clocks may have run at different rates during the wait
  lease.grantedFor(grant.millis, grant.millis - marginMillis(after + grant.millis))
  // Keep half of the grant for the confirmation, or for the first renewal of a whole lease (docs/protocol.md)
  return lease.left(now) < grant.millis / 2 ? undefined : lease
}
