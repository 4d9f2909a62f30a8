/**
 * Which data streams a member hands over, once `rebalancePlan` has decided how many. `rebalancer` revokes the chosen
 * ones. A handler that waits for messages can end at once without a message being processed twice, so such data streams
 * come first.
 */
import type { OwnedStream } from "./ownedStream.ts"

type Candidate = Pick<OwnedStream, "arrival" | "hasRead" | "isBusy">

/** The order of choice. A handler that never read through its lease may be processing a message. */
const ranks = ["waits", "never read", "processing"] as const

const rankOf = ({ hasRead, isBusy }: Candidate): typeof ranks[number] =>
  !isBusy ? "waits" : hasRead ? "processing" : "never read"

/** Newest first. Data streams that were handed over to this member come after the others. */
const ofRank = <C extends Candidate>(movable: ReadonlyArray<C>, rank: typeof ranks[number]): ReadonlyArray<C> => {
  const all = movable.filter((candidate) => rankOf(candidate) === rank).reverse()
  return [...all.filter(({ arrival }) => arrival === undefined), ...all.filter(({ arrival }) => arrival !== undefined)]
}

/**
 * Chooses at most `count`, of which at most `busy` are processing a message. `movable` is in the order of their leases.
 */
export const choose = <C extends Candidate>(
  movable: ReadonlyArray<C>,
  count: number,
  busy: number
): ReadonlyArray<C> => {
  const chosen = [...ofRank(movable, "waits"), ...ofRank(movable, "never read")].slice(0, count)
  return [...chosen, ...ofRank(movable, "processing").slice(0, Math.max(0, busy - chosen.length))]
}
