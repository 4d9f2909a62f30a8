/**
 * Chooses which data streams a member hands over, once `rebalancePlan` has decided how many. `rebalancer` revokes them.
 * Data streams whose handlers are waiting for messages come first: those handlers can stop immediately, and no message
 * is processed twice.
 */
import type { OwnedStream } from "./ownedStream.ts"

type Candidate = Pick<OwnedStream, "arrival" | "hasRead" | "isBusy">

/** In order of preference. A handler that never read through its lease may or may not be processing a message. */
const ranks = ["waits", "never read", "processing"] as const

const rankOf = ({ hasRead, isBusy }: Candidate): typeof ranks[number] =>
  !isBusy ? "waits" : hasRead ? "processing" : "never read"

/** Newest first. Data streams that were handed over to this member come last. */
const ofRank = <C extends Candidate>(movable: ReadonlyArray<C>, rank: typeof ranks[number]): ReadonlyArray<C> => {
  const all = movable.filter((candidate) => rankOf(candidate) === rank).reverse()
  return [...all.filter(({ arrival }) => arrival === undefined), ...all.filter(({ arrival }) => arrival !== undefined)]
}

/**
 * Chooses at most `count` data streams. Streams that are processing a message are added only while fewer than `busy`
 * streams are chosen. `movable` is sorted by lease, oldest first.
 */
export const choose = <C extends Candidate>(
  movable: ReadonlyArray<C>,
  count: number,
  busy: number
): ReadonlyArray<C> => {
  const chosen = [...ofRank(movable, "waits"), ...ofRank(movable, "never read")].slice(0, count)
  return [...chosen, ...ofRank(movable, "processing").slice(0, Math.max(0, busy - chosen.length))]
}
