/** When a message that tells of a grant is believed: its lease begins at once. */
import type { LeaseId, MutexName } from "../../MutexName.ts"
import type { Grant } from "../../MutexStore.ts"
import { marginMillis } from "../optionChecks.ts"
import type { AttemptContext, Refused } from "./attempt.ts"
import { HeldLease, type LeaseOwner } from "./heldLease.ts"
import type { LocalWaiter } from "./localWaiter.ts"

/** How far the two clocks may be apart without one having been set. */
const roundingMillis = 10

export interface GrantOwner extends LeaseOwner {
  readonly mutex: MutexName
  readonly context: AttemptContext
}

/**
 * The lease of a grant that is younger than `refused`: its token is larger. The backend's own clock says by how much, so
 * it is compared with no clock of the waiter. Returns nothing where a request is to decide.
 */
export const leaseOfGrant = (
  grant: Grant,
  { sent, stamp }: Refused,
  waiter: LocalWaiter,
  { id, queue }: { readonly id: LeaseId; readonly queue: GrantOwner }
): HeldLease | undefined => {
  if (stamp === undefined || grant.token <= stamp.token) return undefined
  // Below zero the backend's clock was set back
  const after = (grant.micros - stamp.micros) / 1000
  if (after < 0) return undefined
  const { terms } = waiter.attempt
  const now = queue.context.now()
  // Only the wall clock shows a suspension, unless it was set back since
  if (now.wall - sent.wall < now.monotonic - sent.monotonic - roundingMillis) return undefined
  const lease = new HeldLease(queue.mutex, id, grant.token, terms, {
    monotonic: Math.min(sent.monotonic + after, now.monotonic),
    wall: Math.min(sent.wall + after, now.wall)
  }, queue)
  // The rates of the clocks may differ for as long as it waited
  lease.grantedFor(grant.millis, grant.millis - marginMillis(after + grant.millis))
  return lease.left(now) < grant.millis / 2 ? undefined : lease
}
