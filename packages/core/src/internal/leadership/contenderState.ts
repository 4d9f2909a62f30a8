/** Computes a contender's state from its last poll and its own lease. `contender` polls and keeps the results. */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { State } from "../../Contender.ts"
import type { Lease } from "../../Lease.ts"
import { LeaseLost } from "../../SimbaError.ts"
import type { Instant } from "../lease/instant.ts"

/** The result of the last poll. */
interface Observation extends Pick<State, "before" | "after" | "isInTtl" | "isInTransition"> {
  /** When the owner's lease ends by the wall clock, in milliseconds. */
  readonly until: number | undefined
}

export const unobserved: Observation = {
  before: undefined,
  after: undefined,
  isInTtl: false,
  isInTransition: false,
  until: undefined
}

/** `end` is when the owner's lease ends, in monotonic milliseconds. */
export const observe = (
  last: Observation,
  owner: string | undefined,
  end: number,
  now: Instant,
  transition: number
): Observation => {
  const left = end - now.monotonic
  return {
    before: owner === last.after ? last.before : last.after,
    after: owner,
    isInTtl: owner !== undefined && left > transition,
    isInTransition: owner !== undefined && left <= transition && left >= 0,
    until: owner !== undefined && Number.isFinite(left) ? now.wall + left : undefined
  }
}

export const isLossOf = (lease: Lease, cause: Cause.Cause<unknown>) => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return error instanceof LeaseLost && error.id === lease.id && error.token === lease.token
}

/** Whether the lease is still held, according to the clock. Does not yield. */
export const holds = (lease: Lease): boolean => Effect.runSync(lease.isHeld)

/** Computes the state. The contender's own lease decides whether it leads; the last poll shows any other owner. */
export const stateOf = (
  { until, ...observed }: Observation,
  lease: Lease | undefined,
  isWanted: boolean,
  phases: { readonly transition: number; readonly margin: number }
): State => {
  const { after } = observed
  if (lease !== undefined && holds(lease)) {
    const isInTtl = Duration.toMillis(Effect.runSync(lease.timeLeft)) + phases.margin > phases.transition
    const before = after === lease.id ? observed.before : after
    return { _tag: "Leading", lease, before, after: lease.id, isInTtl, isInTransition: !isInTtl }
  }
  if (!isWanted) return { _tag: "Stopped", ...observed }
  if (after === undefined) return { _tag: "Vacant", ...observed }
  return {
    _tag: "Following",
    ...observed,
    leader: after,
    until: until === undefined ? undefined : DateTime.makeUnsafe(until)
  }
}

export const isSame = (a: State, b: State): boolean =>
  a._tag === b._tag && a.before === b.before && a.after === b.after && a.isInTtl === b.isInTtl &&
  a.isInTransition === b.isInTransition
